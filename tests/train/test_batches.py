"""Mini-batches: what a step sees, and that a step which sees everything is the step of a full batch."""

import pytest
import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import new_run, random_graph, taken
from gst import InputError
from gst.base.randomness import seeded
from gst.nn.backbones import BACKBONES
from gst.nn.masker import Masker
from gst.train.batches import Clusters, NeighbourSamples
from gst.train.settings import Masking

FEW = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 7, "interval": 2, "lr": 0.01, "cache": False}
CLUSTERS = {"batch": "clusters", "clusters": 5, "clusters_per_batch": 2}
NEIGHBORS = {"batch": "neighbors", "batch_nodes": 4, "fanout": 3}


def gradients(batch, masked, backbone="gcn", **given):
    data = random_graph(nodes=40, edges=150, loops=True)
    run = new_run(data, backbone=backbone, dropout=0.0, hidden=8, cache=False, batch=batch, **given)
    network = run.network()
    network.module.double()
    network.x = data.x.double()
    with seeded(1):
        masker = Masker(5, 6).double() if masked else None
    trainer = run.trainer(network, masker)
    trainer.x = data.x.double()
    trainer.optimizer = torch.optim.SGD(trainer._parameters, lr=0.0)
    with seeded(2):
        trainer.step(run.edges)
    return [p.grad for p in trainer._parameters]


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("masked", [False, True])
def test_all_clusters_at_once_are_the_full_batch(backbone, masked):
    wanted = gradients("full", masked, backbone)
    found = gradients("clusters", masked, backbone, clusters=4, clusters_per_batch=4)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_all_neighbours_of_all_nodes_are_the_full_batch(backbone):
    wanted = gradients("full", False, backbone)
    found = gradients("neighbors", False, backbone, fanout=1000, batch_nodes=1000)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted, strict=True))


def test_every_training_node_has_one_turn_an_epoch():
    data = random_graph(nodes=60, edges=200)
    edges = gst.graph.edgeset.EdgeSet.from_data(data)
    train = data.train_mask.nonzero().flatten()
    part = torch.arange(60) % 7
    for ways in (Clusters(part, train, 3), NeighbourSamples(train, 4, 2)):
        torch.manual_seed(0)
        epochs = [[batch.targets for batch in ways.epoch(edges)] for _ in range(2)]
        for epoch in epochs:
            assert len(epoch) > 1 and torch.equal(torch.cat(epoch).sort().values, train)
        assert not torch.equal(torch.cat(epochs[0]), torch.cat(epochs[1])), "in a new order every time"
    for batch in Clusters(part, train, 3).epoch(edges):
        assert part[batch.nodes].unique().numel() <= 3
        assert torch.equal(batch.nodes, torch.isin(part, part[batch.nodes]).nonzero().flatten())


@pytest.mark.parametrize("given", [CLUSTERS, NEIGHBORS])
@pytest.mark.parametrize("inductive", [False, True])
def test_the_budget_is_exact_and_the_answers_are_those_of_the_whole_sparse_graph(given, inductive):
    data = random_graph(nodes=60, edges=240, loops=True, duplicates=True)
    result = gst.sparsify(data, "gst", backbone="sage", sparsity=0.4, inductive=inductive, **given, **FEW)
    total = result.metrics["edges_total"]
    assert result.metrics["edges_kept"] == total - round(0.4 * total)
    again = gst.sparsify(data, "gst", backbone="sage", sparsity=0.4, inductive=inductive, **given, **FEW)
    assert torch.equal(result.edge_mask, again.edge_mask) and torch.equal(result.scores, again.scores)
    with torch.no_grad():
        logits = result.model.eval()(result.graph.x, result.graph.edge_index)
    task = gst.train.task.Task.from_data(data)
    assert result.metrics["test"] == task.score(logits[task.test], "test")


def test_own_models_take_clusters_and_no_samples():
    data = random_graph(nodes=60, edges=240)
    est = gst.GST(GCN(5, 8, 2, 3), sparsity=0.5, **CLUSTERS, **FEW).fit(data)
    assert int(est.found_.keep_mask.sum()) == est.edges_.num_edges - round(0.5 * est.edges_.num_edges)
    with pytest.raises(InputError, match="batch neighbors is for the backbones of gst"):
        gst.GST(GCN(5, 8, 2, 3), sparsity=0.5, **NEIGHBORS, **FEW).fit(data)


@pytest.mark.parametrize("given", [CLUSTERS, {"inductive": True}])
@pytest.mark.parametrize("method", ["ugs", "wd-glt", "mgspar"])
def test_methods_with_a_value_an_edge_say_that_they_need_it_all(method, given):
    with pytest.raises(InputError, match="takes full batches in the transductive setting"):
        gst.sparsify(random_graph(), method, sparsity=0.5, **given, **taken(method, FEW))


@pytest.mark.parametrize("given", [{}, CLUSTERS, NEIGHBORS])
def test_nothing_hidden_is_seen_in_training(given):
    """With other test nodes, features and edges of theirs, training is the same to the last bit."""
    data = random_graph(nodes=60, edges=240)
    other = data.clone()
    other.x = torch.where(data.test_mask[:, None], 5 - data.x, data.x)
    of_test, some = data.test_mask[data.edge_index].any(0), data.edge_index.sum(0) % 3 == 0
    other.edge_index = data.edge_index[:, ~(of_test & some)]
    assert 0 < other.num_edges < data.num_edges
    found = []
    for graph in (data, other):
        run = new_run(graph, inductive=True, hidden=8, anchor_epochs=3, cache=False, **given)
        with seeded(0):
            found.append(gst.train.anchor.find_anchor(run, Masking()))
    assert found[0].val == found[1].val and found[0].mask.shape != found[1].mask.shape
    for part in ("model", "masker"):
        one, two = (getattr(anchor, part) for anchor in found)
        assert all(torch.equal(one[name], two[name]) for name in one)


def test_inductive_needs_something_to_learn_from():
    data = random_graph(nodes=12, edges=30)
    nodes = torch.arange(12)
    data.train_mask, data.val_mask, data.test_mask = nodes < 4, (nodes >= 4) & (nodes < 8), nodes >= 8
    data.edge_index = data.edge_index[:, (data.edge_index >= 4).any(0)]
    with pytest.raises(InputError, match="no edge joins two nodes that training may see"):
        gst.sparsify(data, "gst", sparsity=0.5, inductive=True, **FEW)
