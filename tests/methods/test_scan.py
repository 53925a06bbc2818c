import pytest
import torch
from hypothesis import given
from test_triangles import REAL, by_networkit, dense, real_edges

from graphs import graphs, pairs
from gst.graph.edgeset import EdgeSet
from gst.methods.scan import SCAN, scan_scores


@given(graphs())
def test_formula(data):
    edges = EdgeSet.from_data(data)
    with_self = dense(edges) + torch.eye(edges.num_nodes, dtype=torch.int64)
    u, v = edges.pairs
    # neighbourhoods that include the node itself: of two neighbours, their intersection has both of them besides the
    # triangles' third nodes, and SCAN as it is counted everywhere takes them as one
    common = (with_self[u] * with_self[v]).sum(1) - 1
    expected = common / (with_self[u].sum(1) * with_self[v].sum(1)).double().sqrt()
    assert torch.allclose(scan_scores(edges), expected, rtol=1e-14)


def test_an_edge_in_a_clique_stays_before_a_bridge():
    ends = [*torch.combinations(torch.arange(4)).tolist(), *torch.combinations(torch.arange(4, 8)).tolist(), [3, 4]]
    kept = SCAN(keep=12)(pairs(*ends, nodes=8))
    assert [3, 4] not in kept.edge_index.t().tolist()
    assert repr(SCAN(keep=12)) == "SCAN(keep=12)"


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
def test_equals_networkit_to_the_last_bit(name):
    edges = real_edges(name)
    expected = by_networkit(edges, lambda nk, *given: nk.SCANStructuralSimilarityScore(*given).run().scores())
    assert torch.equal(scan_scores(edges), expected)
