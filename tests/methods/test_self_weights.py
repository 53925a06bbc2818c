"""Self-loops that make up for the sums over neighbours that are not read."""

import pytest
import torch

import gst
from graphs import random_graph
from gst import Deploy
from gst.after.drift import drift
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.self_weights import SHARES, TIE, USUAL, with_self_loops

QUICK = {"hidden": 8, "anchor_epochs": 8, "sparse_epochs": 8, "cache": False, "backbone": "gin", "compensate": True}


@pytest.fixture(scope="module", params=[{}, {"loops": True, "weighted": True, "directed": True}])
def fitted(request):
    data = random_graph(nodes=40, edges=160, **request.param)
    data.edge_attr = torch.rand(data.num_edges, 2)
    return data, Deploy(sparsity=0.9, **QUICK).fit(data)


def test_the_model_on_the_returned_graph_gives_what_was_measured(fitted, tmp_path):
    data, est = fitted
    result, graph = est.result_, est.result_.graph
    logits = result.model(graph.x, graph.edge_index, graph.edge_weight)
    assert torch.allclose(logits, est.found_.logits, atol=1e-5)
    result.save(tmp_path)
    again = gst.Result.load(tmp_path)
    assert again.metrics == result.metrics and torch.equal(again.graph.edge_weight, graph.edge_weight)
    assert torch.allclose(again.compile()(), logits, atol=1e-4)
    assert torch.allclose(torch.as_tensor(again.engine()(torch.arange(40))), logits, atol=1e-4)
    assert drift(again, data, shares=(0.5,), epochs=(1,))[0]["agreement"] == result.metrics["agreement"]
    with pytest.raises(gst.InputError, match="run it again"):
        again.extend(data)


def test_removed_stays_removed_and_the_loops_come_last(fitted):
    data, est = fitted
    result, graph = est.result_, est.result_.graph
    kept = data.edge_index[:, result.edge_mask]
    assert torch.equal(graph.edge_index[:, : kept.shape[1]], kept)
    more = graph.edge_index[:, kept.shape[1] :]
    assert torch.equal(more[0], more[1]) and more.shape[1] == result.metrics["self_weights"] > 0
    before = data.get("edge_weight", torch.ones(data.num_edges))[result.edge_mask]
    assert torch.equal(graph.edge_weight[: kept.shape[1]], before) and graph.edge_attr.shape == (graph.num_edges, 2)


def test_each_node_has_the_weight_that_is_best_without_edges(fitted):
    """By deletion of all edges and the model itself, one share after another."""
    data, est = fitted
    run, model = est.run(data), est.result_.model
    wanted, target = run.dense.logits, Target.of(run.dense.logits)
    index, weight = data.edge_index, data.get("edge_weight", torch.ones(data.num_edges))
    own = index[0] == index[1]
    degree = torch.zeros(40).index_add(0, index[1][~own], weight[~own])
    nodes, losses = torch.arange(40).expand(2, -1), []
    for share in SHARES:
        loops = share * degree + torch.zeros(40).index_add(0, index[1][own], weight[own])
        losses.append(target.loss(wanted, model(data.x, nodes, loops)).detach() + TIE * abs(share - USUAL))
    losses = torch.stack(losses)
    graph = est.result_.graph
    found = torch.zeros(40)
    more = graph.num_edges - est.result_.metrics["self_weights"]
    found[graph.edge_index[0, more:]] = graph.edge_weight[more:]
    share = (torch.tensor(SHARES)[:, None] * degree - found).abs().argmin(0)
    assert torch.allclose(losses.gather(0, share[None])[0], losses.amin(0), atol=1e-3)


def test_only_for_networks_that_sum():
    for backbone in ("gcn", "gat", "sage"):
        with pytest.raises(gst.InputError, match="compensate is for networks that sum"):
            Deploy(sparsity=0.5, **{**QUICK, "backbone": backbone}).fit(random_graph(nodes=40, edges=160))


def test_nothing_is_added_to_a_whole_graph():
    data = random_graph(nodes=40, edges=160)
    assert torch.equal(Deploy(sparsity=0.0, **QUICK).fit(data).result_.graph.edge_index, data.edge_index)
    assert with_self_loops(data, torch.zeros(40)).num_edges == data.num_edges
