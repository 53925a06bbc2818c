"""SCAN, and what all methods that score the graph alone have in common."""

import pytest
import torch
from contract import check_graph_of, check_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphs import KINDS, graphs, random_graph
from gst.graph import EdgeSet
from gst.select import budget, top_k
from gst.sparsifiers.dspar import DSpar
from gst.sparsifiers.effective_resistance import EffectiveResistance
from gst.sparsifiers.local_similarity import LocalSimilarity
from gst.sparsifiers.scan import SCAN, scan_scores
from gst.sparsifiers.spectral_radius import SpectralRadius
from test_triangles import REAL, by_networkit, dense, real_edges

METHODS = {
    "scan": SCAN,
    "local-similarity": LocalSimilarity,
    "dspar": DSpar,
    "dspar-highest": lambda **amount: DSpar(sample=False, **amount),
    "resistance": EffectiveResistance,
    "resistance-exact": lambda **amount: EffectiveResistance(projections=None, **amount),
    "resistance-highest": lambda **amount: EffectiveResistance(projections=None, sample=False, **amount),
    "spectral-radius": SpectralRadius,
}


def pairs(*ends: tuple[int, int], nodes: int, directed: bool = False) -> Data:
    index = torch.tensor(ends).t()
    return Data(edge_index=index if directed else torch.cat([index, index.flip(0)], dim=1), num_nodes=nodes)


SHAPES = {
    "star": pairs(*((0, leaf) for leaf in range(1, 8)), nodes=8),
    "clique": pairs(*torch.combinations(torch.arange(6)).tolist(), nodes=6),
    "components": pairs((0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (4, 6), (8, 9), (9, 10), nodes=12),
    "one edge": pairs((1, 3), nodes=5),
    "two nodes": pairs((0, 1), nodes=2),
    "one arc": pairs((1, 0), nodes=2, directed=True),
    "no cycle": pairs((0, 1), (0, 2), (1, 2), (2, 3), nodes=5, directed=True),
    "cycles": pairs((0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), nodes=7, directed=True),
}


def check(method, data: Data, **amount) -> None:
    """Mask, sparse graph and scores belong together."""
    edges = EdgeSet.from_data(data)
    keep, scores = method.select(edges)
    mask = edges.to_columns(keep, True)
    check_mask(data, mask, **amount)
    check_graph_of(data, method(data), mask)
    assert scores.dtype == torch.float64 and not bool(scores.isnan().any())
    assert torch.equal(keep, top_k(scores, budget(edges.num_edges, **amount)))
    assert torch.equal(method.score(data), edges.to_columns(scores, torch.inf))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_contract_on_graphs_of_every_kind(name, kind):
    data = random_graph(nodes=25, edges=60, **kind)
    for sparsity in (0.0, 0.1, 0.5, 0.9):
        check(METHODS[name](sparsity=sparsity), data, sparsity=sparsity)
    for keep in (0, 1):
        check(METHODS[name](keep=keep), data, keep=keep)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", METHODS)
def test_contract_on_graphs_of_odd_shape(name, shape):
    for sparsity in (0.0, 0.5, 0.9):
        check(METHODS[name](sparsity=sparsity), SHAPES[shape], sparsity=sparsity)


@settings(max_examples=40)
@pytest.mark.parametrize("name", METHODS)
@given(data=graphs(), sparsity=st.floats(0, 0.99))
def test_contract_on_any_graph(name, data, sparsity):
    check(METHODS[name](sparsity=sparsity), data, sparsity=sparsity)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["scan", "dspar-highest", "resistance-highest", "spectral-radius"])
def test_names_of_nodes_do_not_matter(name, kind):
    data = random_graph(nodes=25, edges=60, **kind)
    renamed = data.clone()
    renamed.edge_index = torch.randperm(25, generator=torch.Generator().manual_seed(1))[data.edge_index]
    method = METHODS[name](sparsity=0.5)
    assert torch.allclose(method.score(data), method.score(renamed), rtol=1e-6, atol=1e-12)


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
