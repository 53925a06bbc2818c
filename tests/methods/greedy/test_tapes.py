"""The search on recognised models: every trial is exact, and a path is the best edge after the best edge."""

import pytest
import torch
from brute import TARGET, divergence, trials

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.network_arrays import all_known
from gst.methods.greedy.path import Path as GreedyPath
from gst.methods.greedy.path import Search, extend_path, make_search
from gst.nn.recognise import TapeNetwork, native
from recognised import KNOWN, graph, trained

GRAPHS = pytest.mark.parametrize(("directed", "by"), [(False, "pairs"), (False, "arcs"), (True, "arcs")])


def case(name, directed=False, by="arcs", seed=0):
    """In double precision, as the kernels compute."""
    data = graph(directed=directed, seed=seed)
    data.x = data.x.double()
    network = native(trained(name).double(), data)
    assert network is not None
    edges = EdgeSet.from_data(data, by)
    with torch.no_grad():
        return edges, network, network.logits(edges)


@GRAPHS
@pytest.mark.parametrize("name", KNOWN)
def test_trials_equal_whole_passes(name, directed, by):
    edges, network, wanted = case(name, directed, by)
    keep_mask = torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(1)) < 0.4
    search = Search([network], edges, [wanted], TARGET, keep_mask=keep_mask)
    assert search.divergence() == pytest.approx(divergence(network, edges, keep_mask, wanted), abs=1e-7)
    for sign, walk in ((1, search.add), (-1, search.drop)):
        order, deltas = walk(4, tolerance=0)
        for edge, delta in zip(order.tolist(), deltas.tolist(), strict=True):
            brute = trials(network, edges, keep_mask, wanted, sign)
            assert delta == pytest.approx(float(brute[edge]), abs=1e-6)
            assert float(brute[edge]) <= float(brute.min()) + 1e-6
            keep_mask[edge] = sign > 0


def test_networks_that_differ_in_their_features_share_a_search():
    edges, network, wanted = case("GIN")
    other = TapeNetwork(network.module, network.tape, network.x.flip(0))
    assert all_known([network, other]) and not all_known([network, case("GCN")[1]])
    with torch.no_grad():
        answers = [wanted, other.logits(edges)]
    search = Search([network, other], edges, answers, TARGET)
    order, deltas = search.add(6, tolerance=0)
    keep_mask = torch.zeros(edges.num_edges, dtype=torch.bool)
    for edge, delta in zip(order.tolist(), deltas.tolist(), strict=True):
        both = [trials(n, edges, keep_mask, w, 1) for n, w in zip([network, other], answers, strict=True)]
        assert delta == pytest.approx(float((both[0] + both[1])[edge]) / 2, abs=1e-6)
        keep_mask[edge] = True


@pytest.mark.parametrize("name", ["GIN", "GATv2"])
def test_an_extended_path_is_the_path_in_one_go(name):
    edges, network, wanted = case(name)
    whole, path = GreedyPath(), GreedyPath()
    extend_path(make_search([network], edges, [wanted], TARGET, path=whole), whole, 30)
    for steps in (10, 30):
        extend_path(make_search([network], edges, [wanted], TARGET, path=path), path, steps)
    assert torch.equal(whole.order, path.order)


@pytest.mark.parametrize("name", ["GCN", "GAT"])
def test_a_path_down(name):
    edges, network, wanted = case(name)
    path = GreedyPath.for_budget(edges.num_edges - 5, edges, network)
    assert path.down
    extend_path(make_search([network], edges, [wanted], TARGET, path=path), path, 5)
    keep_mask = path.scores(edges.num_edges - 5, edges.num_edges) > 0
    assert int(keep_mask.sum()) == edges.num_edges - 5
