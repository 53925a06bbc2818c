import math

import pytest
import torch
from brute import TARGET, trials
from torch_geometric.nn import GCN, GraphSAGE

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods.greedy import path as greedy_path
from gst.methods.greedy.batched import BatchedSearch, num_hops
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import Path, Search, deploy, make_search, mean_rows_per_trial
from gst.nn.backbones import BACKBONES
from gst.nn.network import NativeNetwork, OwnNetwork


def network_of(name, data):
    torch.manual_seed(1)
    if name in BACKBONES:
        extra = {"heads": 2} if name == "gat" else {}
        return NativeNetwork(BACKBONES[name](5, 6, 3, **extra).eval(), data.x)
    return OwnNetwork({"own-gcn": GCN, "own-sage": GraphSAGE}[name](5, 6, 2, 3).eval(), data)


def test_no_more_edges_are_asked_for_than_there_are():
    data = random_graph(nodes=12, edges=30)
    edges = EdgeSet.from_data(data)
    network = network_of("gcn", data)
    search = Search([network], edges, [network.logits(edges).detach()], TARGET)
    with pytest.raises(InputError, match=f"{edges.num_edges + 1} edges cannot be added: there are {edges.num_edges}"):
        search.add(edges.num_edges + 1)
    search.add(5)
    with pytest.raises(InputError, match="6 edges cannot be dropped: there are 5"):
        search.drop(6)
    assert search.drop(5)[0].numel() == 5


def check_steps(steps, network, edges, wanted, sign):
    """Every step, up from no edge (sign 1) or down from all (−1), is the best one, and its δ is exact."""
    order, deltas = steps
    assert order.numel() == 8
    keep_mask = torch.full((edges.num_edges,), sign < 0)
    for e, delta in zip(order.tolist(), deltas.tolist(), strict=True):
        brute = trials(network, edges, keep_mask, wanted, sign)
        assert delta == pytest.approx(float(brute[e]), abs=1e-3)
        assert float(brute[e]) <= float(brute.min()) + 1e-3
        keep_mask[e] = sign > 0


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["gcn", "gat", "own-gcn", "own-sage"])
def test_batched_rounds_of_one_edge_take_the_best(name, directed):
    data = random_graph(nodes=12, edges=16, directed=directed)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    with torch.no_grad():
        wanted = network.logits(edges)
    steps = BatchedSearch([network], edges, [wanted], TARGET).add(8, round_share=0, breadth=edges.num_edges)
    check_steps(steps, network, edges, wanted, 1)


@pytest.mark.parametrize("name", ["gcn", "gin", "gat", "own-sage"])
def test_deploy_keeps_the_budget_and_does_not_change_the_network(name):
    data = random_graph(nodes=30, edges=80)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    before = {key: value.clone() for key, value in network.module.state_dict().items()}
    with torch.no_grad():
        logits = network.logits(edges)
    keep_mask, scores = deploy(network, edges, logits, 20)
    assert int(keep_mask.sum()) == 20
    assert torch.equal(keep_mask, top_k(scores, 20))
    again, _ = deploy(network, edges, logits, 20)
    assert torch.equal(keep_mask, again)
    assert all(torch.equal(value, before[key]) for key, value in network.module.state_dict().items())


@pytest.mark.parametrize(("name", "kind"), [*((name, Search) for name in BACKBONES), ("own-gcn", BatchedSearch)])
def test_native_networks_are_searched_by_kernels(name, kind):
    data = random_graph(nodes=12, edges=16)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    assert type(make_search([network], edges, [network.logits(edges).detach()], TARGET)) is kind


def test_networks_unknown_to_the_kernels_are_searched_in_batches():
    data = random_graph(nodes=12, edges=16)
    edges, network = EdgeSet.from_data(data), network_of("gat", data)
    network.module.activation = torch.relu
    assert type(make_search([network], edges, [network.logits(edges).detach()], TARGET)) is BatchedSearch


def test_smaller_budgets_are_a_prefix():
    data = random_graph(nodes=30, edges=80)
    edges, network = EdgeSet.from_data(data), network_of("gcn", data)
    logits = network.logits(edges).detach()
    _, scores = deploy(network, edges, logits, 30)
    for k in (1, 7, 29):
        assert torch.equal(top_k(scores, k), deploy(network, edges, logits, k)[0])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["gcn", "gin", "sage", "gat"])
def test_every_step_of_a_path_down_drops_the_least_needed_edge(name, directed):
    data = random_graph(nodes=12, edges=16, directed=directed)
    edges, network = EdgeSet.from_data(data), network_of(name, data)
    with torch.no_grad():
        wanted = network.logits(edges)
    search = make_search([network], edges, [wanted], TARGET, path=Path(down=True))
    check_steps(search.drop(8, tolerance=0), network, edges, wanted, -1)


def test_direction_of_a_path(monkeypatch):
    data = random_graph(nodes=30, edges=80)
    edges = EdgeSet.from_data(data)
    total = edges.num_edges
    least = math.ceil(0.65 * total)
    for name, num_kept, down in [
        ("gcn", least, True),
        ("gcn", least - 1, False),
        ("gat", least, True),
        ("own-gcn", least, False),
    ]:
        path = Path.for_budget(num_kept, edges, network_of(name, data))
        assert path.down == down and path.steps(path.steps(num_kept, total), total) == num_kept
    monkeypatch.setattr(greedy_path, "ROWS_PER_STEP", 10)
    assert not Path.for_budget(least, edges, network_of("gcn", data)).down, "too costly"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_mean_rows_per_trial_counts_walks(depth):
    edges = EdgeSet.from_data(random_graph(nodes=12, edges=30))
    source, target = edges.arcs
    adjacency = torch.zeros(12, 12, dtype=torch.float64)
    adjacency[target, source] = 1
    degree = adjacency.sum(1)
    expected = degree @ torch.linalg.matrix_power(adjacency, depth - 1) @ degree / edges.num_edges
    assert mean_rows_per_trial(edges, depth) == pytest.approx(float(expected))


def test_temperature_scales_with_the_logits():
    logits = torch.randn(50, 4)
    assert Target.of(7 * logits).temperature == pytest.approx(7 * Target.of(logits).temperature)


def test_num_hops_counts_message_passing():
    data = random_graph()
    assert num_hops(network_of("own-gcn", data), EdgeSet.from_data(data)) == 2


def test_damped_divergence_of_one_node_is_below_that_of_many():
    wanted = torch.tensor([[10.0, 0.0]]).double().expand(40, 2)
    one, many = wanted.clone(), wanted.clone()
    one[0], many[:20] = torch.tensor([-90.0, 0.0]), torch.tensor([0.0, 4.0])
    for damped, sign in ((True, 1), (False, -1)):
        target = Target(1.0, damped=damped)
        assert sign * (target.loss(wanted, many).sum() - target.loss(wanted, one).sum()) > 0


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage", "gat"])
@pytest.mark.parametrize("by", ["arcs", "pairs"])
def test_a_lazy_walk_misses_nothing(backbone, by):
    """Bounds of gains are never exceeded: at tolerance 0 every step is as good as one that tries all candidates."""
    run = gst.Deploy(
        sparsity=0.5, backbone=backbone, hidden=8, by=by, anchor_epochs=10, sparse_epochs=10, cache=False
    ).run(random_graph(nodes=40, edges=100, weighted=True))
    network, logits = run.network(), run.dense.logits
    network.module.load_state_dict(run.dense.model)
    network.module.eval()
    searches = [Search([network], run.edges, [logits], Target.of(logits), lazy=lazy) for lazy in (True, False)]
    (order, deltas), (_, expected) = (search.add(run.edges.num_edges // 2, tolerance=0.0) for search in searches)
    assert order.unique().numel() == order.numel()
    assert torch.allclose(deltas, expected, atol=1e-6)


def test_a_lazy_walk_is_resumed_to_the_last_bit():
    run = gst.Deploy(sparsity=0.5, hidden=8, anchor_epochs=10, sparse_epochs=10, cache=False).run(random_graph(60, 200))
    network, logits = run.network(), run.dense.logits
    network.module.load_state_dict(run.dense.model)
    network.module.eval()
    whole, first, second = (Search([network], run.edges, [logits], Target.of(logits), lazy=True) for _ in range(3))
    order = torch.cat([whole.add(40)[0], whole.add(100)[0]])
    begun = first.add(40)[0]
    second.resume(begun, first.memory())
    assert torch.equal(torch.cat([begun, second.add(100)[0]]), order)
