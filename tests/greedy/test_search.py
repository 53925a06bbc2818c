import pytest
import torch
from brute import TARGET, divergence, trials
from hypothesis import given, settings

from graphs import KINDS, graphs, random_graph
from gst.graph import EdgeSet
from gst.greedy.engine import Search
from gst.nn.backbones import BACKBONES
from gst.nn.network import NativeNetwork

NAMES = ["gcn", "gin", "sage", "cluster-gcn"]


def network_of(name, data, layers=2, seed=0):
    torch.manual_seed(seed)
    module = BACKBONES[name](data.x.shape[1], 6, 3, layers=layers).double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return NativeNetwork(module, data.x.double())


def setting(name, layers=2, **kind):
    data = random_graph(nodes=12, edges=16, **kind)
    edges, network = EdgeSet.from_data(data), network_of(name, data, layers)
    return edges, network, network.logits(edges).detach()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_every_step_takes_the_best_edge(name, layers, kind):
    edges, network, wanted = setting(name, layers, **kind)
    order, paid = Search([network], edges, [wanted], TARGET).add(edges.num_edges, tolerance=0)
    keep = torch.zeros(edges.num_edges, dtype=torch.bool)
    for e, delta in zip(order.tolist(), paid.tolist(), strict=True):
        brute = trials(network, edges, keep, wanted, 1)
        assert delta == pytest.approx(float(brute[e]), abs=1e-5)
        assert float(brute[e]) <= float(brute.min()) + 1e-5
        keep[e] = True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_step_drops_the_least_needed_edge(name, kind):
    edges, network, wanted = setting(name, **kind)
    keep = torch.ones(edges.num_edges, dtype=torch.bool)
    order, paid = Search([network], edges, [wanted], TARGET, keep=keep).drop(edges.num_edges, tolerance=0)
    for e, delta in zip(order.tolist(), paid.tolist(), strict=True):
        brute = trials(network, edges, keep, wanted, -1)
        assert delta == pytest.approx(float(brute[e]), abs=1e-5)
        assert float(brute[e]) <= float(brute.min()) + 1e-5
        keep[e] = False


@settings(max_examples=25)
@given(graphs())
def test_divergence_is_that_of_the_kept_graph(data):
    edges = EdgeSet.from_data(data)
    for name in NAMES:
        network = network_of(name, data)
        wanted = network.logits(edges).detach() + torch.randn(data.num_nodes, 3, dtype=torch.float64)
        search = Search([network], edges, [wanted], TARGET)
        search.add((edges.num_edges + 1) // 2)
        search.drop(edges.num_edges // 4)
        expected = divergence(network, edges, torch.from_numpy(search.keep), wanted)
        assert search.divergence() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_mean_of_two_models_and_prior():
    edges, network, wanted = setting("gcn")
    other = network_of("gcn", random_graph(nodes=12, edges=16), seed=1)
    targets = [wanted, other.logits(edges).detach()]
    prior = torch.rand(edges.num_edges, dtype=torch.float64)
    keep = torch.rand(edges.num_edges) < 0.5
    brute = [trials(n, edges, keep, w, 1) for n, w in zip([network, other], targets, strict=True)]
    best = ((brute[0] + brute[1]) / 2 - prior).argmin()
    order, _ = Search([network, other], edges, targets, TARGET, prior=prior, keep=keep).add(1)
    assert int(order[0]) == int(best)


@pytest.mark.parametrize("name", NAMES)
def test_numbering_of_nodes_does_not_matter(name):
    data = random_graph(nodes=12, edges=16)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    shuffle = torch.randperm(12)
    renamed = data.clone()
    renamed.x[shuffle], renamed.edge_index = data.x, shuffle[data.edge_index]
    others = EdgeSet.from_data(renamed)
    other = NativeNetwork(network.module, renamed.x.double())
    order = Search([network], edges, [network.logits(edges)], TARGET).add(edges.num_edges)[0]
    again = Search([other], others, [other.logits(others)], TARGET).add(edges.num_edges)[0]
    pairs = shuffle[edges.pairs[:, order]].sort(dim=0).values
    assert torch.equal(pairs, others.pairs[:, again])
