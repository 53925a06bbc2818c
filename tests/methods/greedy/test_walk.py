import numpy as np
import pytest
import torch
from brute import STEEP, TARGET, divergence, divergence_between, trials
from hypothesis import given, settings

from graphs import KINDS, graphs, random_graph
from gst.base import jit
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.kernels import change
from gst.methods.greedy.path import Search
from gst.methods.greedy.refresh import refresh
from gst.methods.greedy.walk import walk
from gst.nn.backbones import BACKBONES
from gst.nn.network import NativeNetwork

LINEAR = ["gcn", "gin", "sage", "cluster-gcn"]
NAMES = [*LINEAR, "gat"]
BOTH = pytest.mark.parametrize("target", [TARGET, STEEP], ids=["damped", "KL"])


def network_of(name, data, layers=2, seed=0):
    torch.manual_seed(seed)
    heads = {"heads": 3} if name == "gat" else {}
    module = BACKBONES[name](data.x.shape[1], 6, 3, layers=layers, **heads).double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return NativeNetwork(module, data.x.double())


def edges_network_logits(name, layers=2, **kind):
    data = random_graph(nodes=12, edges=16, **kind)
    edges, network = EdgeSet.from_data(data), network_of(name, data, layers)
    return edges, network, network.logits(edges).detach()


@pytest.mark.parametrize(("layers", "kind"), [(1, {}), *((2, kind) for kind in KINDS), (3, KINDS[-1])])
@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_every_step_takes_the_best_edge(name, target, layers, kind):
    edges, network, wanted = edges_network_logits(name, layers, **kind)
    order, deltas = Search([network], edges, [wanted], target).add(edges.num_edges, tolerance=0)
    keep_mask = torch.zeros(edges.num_edges, dtype=torch.bool)
    for e, delta in zip(order.tolist(), deltas.tolist(), strict=True):
        brute = trials(network, edges, keep_mask, wanted, 1, target)
        assert delta == pytest.approx(float(brute[e]), abs=1e-5)
        assert float(brute[e]) <= float(brute.min()) + 1e-5
        keep_mask[e] = True


@pytest.mark.parametrize("kind", KINDS[-2:])
@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_every_step_drops_the_least_needed_edge(name, target, kind):
    edges, network, wanted = edges_network_logits(name, **kind)
    keep_mask = torch.ones(edges.num_edges, dtype=torch.bool)
    order, deltas = Search([network], edges, [wanted], target, keep_mask=keep_mask).drop(edges.num_edges, tolerance=0)
    for e, delta in zip(order.tolist(), deltas.tolist(), strict=True):
        brute = trials(network, edges, keep_mask, wanted, -1, target)
        assert delta == pytest.approx(float(brute[e]), abs=1e-5)
        assert float(brute[e]) <= float(brute.min()) + 1e-5
        keep_mask[e] = False


@pytest.mark.parametrize("sharp", [10.0, 1000.0])
@pytest.mark.parametrize("kind", KINDS[-2:])
def test_trials_are_exact_when_attention_concentrates_on_one_neighbour(kind, sharp):
    """Sums that lose nearly all their weight, or would overflow."""
    edges, network, wanted = edges_network_logits("gat", 3, **kind)
    with torch.no_grad():
        for layer in network.module.layers:
            layer.attend_source *= sharp
            layer.attend_target *= sharp
    search = Search([network], edges, [wanted], TARGET)
    keep_mask = torch.zeros(edges.num_edges, dtype=torch.bool)
    for sign, step in ((1, search.add), (-1, search.drop)):
        for _ in range(edges.num_edges):
            before = divergence(network, edges, keep_mask, wanted)
            (e,), (delta,) = step(1, tolerance=0)
            keep_mask[e] = sign > 0
            now = divergence(network, edges, keep_mask, wanted)
            assert float(delta) == pytest.approx(now - before, rel=1e-6, abs=1e-6 * (1 + now))


@BOTH
@settings(max_examples=10)
@given(data=graphs())
def test_divergence_is_that_of_the_kept_graph(target, data):
    edges = EdgeSet.from_data(data)
    for name in NAMES:
        network = network_of(name, data)
        wanted = network.logits(edges).detach() + torch.randn(data.num_nodes, 3, dtype=torch.float64)
        search = Search([network], edges, [wanted], target)
        search.add((edges.num_edges + 1) // 2)
        search.drop(edges.num_edges // 4)
        expected = divergence(network, edges, torch.from_numpy(search.keep_mask), wanted, target)
        assert search.divergence() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_mean_of_two_models_and_prior(name):
    edges, network, wanted = edges_network_logits(name)
    other = network_of(name, random_graph(nodes=12, edges=16), seed=1)
    targets = [wanted, other.logits(edges).detach()]
    prior = torch.rand(edges.num_edges, dtype=torch.float64)
    keep_mask = torch.rand(edges.num_edges) < 0.5
    brute = [trials(n, edges, keep_mask, w, 1) for n, w in zip([network, other], targets, strict=True)]
    best = ((brute[0] + brute[1]) / 2 - prior).argmin()
    order, _ = Search([network, other], edges, targets, TARGET, prior=prior, keep_mask=keep_mask).add(1)
    assert int(order[0]) == int(best)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_node_numbering_affects_only_ties(name, kind):
    """Directed graphs have many ties, above all between arcs that no answer depends on."""
    data = random_graph(nodes=12, edges=16, **kind)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    shuffle = torch.randperm(12)
    renamed = data.clone()
    renamed.x[shuffle], renamed.edge_index = data.x, shuffle[data.edge_index]
    others = EdgeSet.from_data(renamed)
    other = NativeNetwork(network.module, renamed.x.double())
    order, deltas = Search([network], edges, [network.logits(edges)], TARGET).add(edges.num_edges, tolerance=0)
    search_renamed = Search([other], others, [other.logits(others)], TARGET)
    order_renamed, deltas_renamed = search_renamed.add(edges.num_edges, tolerance=0)
    pairs, theirs = shuffle[edges.pairs[:, order]], others.pairs[:, order_renamed]
    if not edges.directed:
        pairs, theirs = pairs.sort(dim=0).values, theirs.sort(dim=0).values
    differ = (pairs != theirs).any(0).nonzero().flatten().tolist()
    until = differ[0] + 1 if differ else order.numel()
    assert torch.allclose(deltas[:until], deltas_renamed[:until], atol=1e-9)
    assert edges.directed or not differ


@pytest.mark.parametrize("target", [TARGET, STEEP, Target(0.15, True), Target(0.15, True, False)])
@pytest.mark.parametrize("name", LINEAR)
def test_a_refresh_recomputes_the_divergence_and_the_gradients(name, target):
    """Deferred propagation is estimated to first order, which is exact for a faint edge, until a refresh."""
    data = random_graph(nodes=12, edges=30, weighted=True)
    faint = EdgeSet.from_data(data).column_edge == 3
    data.edge_weight = torch.where(faint, 1e-5, data.edge_weight.double()).float()
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    wanted = network.logits(edges).detach() + torch.randn(12, 3, dtype=torch.float64)
    keep_mask = torch.ones(edges.num_edges, dtype=torch.bool)
    keep_mask[3] = False
    search = Search([network], edges, [wanted], target, keep_mask=keep_mask, cap=0)
    refresh(search.lists, *search.model, np.zeros(12))
    without = divergence(network, edges, keep_mask, wanted, target)
    assert search.divergence() == pytest.approx(without, rel=1e-6)
    expected = divergence(network, edges, torch.ones_like(keep_mask), wanted, target) - without
    assert change(3, 1.0, search.lists, *search.model) == pytest.approx(expected, rel=1e-2, abs=1e-9)


def test_attention_accumulates_no_error_over_many_steps():
    """The sum of all pushed differences equals a full forward pass."""
    data = random_graph(nodes=40, edges=250, weighted=True, directed=True)
    edges, network = EdgeSet.from_data(data), network_of("gat", data, layers=3)
    wanted = network.logits(edges).detach()
    search = Search([network], edges, [wanted], TARGET)
    for count in (150, 100, 50):
        search.add(count)
        search.drop(count)
    keep_mask = torch.from_numpy(search.keep_mask)
    assert search.divergence() == pytest.approx(divergence(network, edges, keep_mask, wanted), rel=1e-9)


def test_ties_are_resolved_when_rounding_makes_the_divergence_negative():
    """A negative margin of acceptance would reject each of two equal candidates in favour of the other, forever."""
    data = random_graph()
    edges = EdgeSet.from_data(data)
    divergences = []
    for seed in range(10):
        network = network_of("gcn", data, seed=seed)
        for layer in network.module.layers:
            torch.nn.init.zeros_(layer.weight)  # no edge changes any answer
        wanted = network.logits(edges).detach() + seed  # the same answers but for rounding
        search = Search([network], edges, [wanted], STEEP)
        divergences.append(search.divergence())
        assert search.add(3)[0].unique().numel() == 3
    assert min(divergences) < 0


@pytest.mark.parametrize(("name", "cap"), [("gcn", 2), ("gcn", 1000), ("gat", 2)])
def test_a_resumed_search_equals_an_uninterrupted_one(name, cap):
    data = random_graph(nodes=40, edges=250)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    wanted = network.logits(edges).detach()
    whole = Search([network], edges, [wanted], TARGET, cap=cap)
    expected = whole.add(150)[0]
    first = Search([network], edges, [wanted], TARGET, cap=cap)
    order = torch.cat([first.add(70)[0], first.add(20)[0]])
    second = Search([network], edges, [wanted], TARGET, cap=cap)
    second.resume(order, first.memory())
    assert torch.equal(torch.cat([order, second.add(60)[0]]), expected)
    assert second.divergence() == whole.divergence()


@pytest.mark.parametrize("seed", range(3))
def test_a_search_may_stop_after_every_edge(seed):
    data = random_graph(nodes=40, edges=250, seed=seed)
    edges, network = EdgeSet.from_data(data), network_of("gcn", data)
    wanted = network.logits(edges).detach()
    whole, halting = (Search([network], edges, [wanted], TARGET) for _ in range(2))
    assert torch.equal(whole.add(150)[0], torch.cat([halting.add(1)[0] for _ in range(150)]))


@pytest.mark.parametrize("damped", [True, False])
@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_independent_labels(name, damped):
    edges, network, wanted = edges_network_logits(name)
    target = Target(0.5, True, damped)
    search = Search([network], edges, [wanted], target)
    order, deltas = search.add(edges.num_edges, tolerance=0)
    keep_mask = torch.zeros(edges.num_edges, dtype=torch.bool)

    def total():
        return divergence_between(wanted, network.logits(edges.subset(keep_mask)).detach(), target)

    before = total()
    for e, delta in zip(order.tolist(), deltas.tolist(), strict=True):
        keep_mask[e] = True
        assert delta == pytest.approx(total() - before, abs=1e-6)
        before = total()


def test_the_stamp_of_compiled_walks_covers_every_file_of_kernels():
    """numba itself checks only the file of ``walk``, which calls functions of most other files."""
    modules = jit._kernel_modules(walk.py_func.__globals__)
    called = {"answers", "arrays", "attention", "kernels", "norms", "refresh", "walk"}
    assert {name.rpartition(".")[2] for name in modules} >= called
    assert walk._cache._cache_file._source_stamp == jit.source_stamp(walk.py_func, {})
