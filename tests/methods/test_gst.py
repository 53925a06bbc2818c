import pytest
import torch
from contract import same
from torch import nn
from torch_geometric.nn import GCNConv, GraphConv
from torch_geometric.nn.models import GAT, GCN, GIN, GraphSAGE
from torch_geometric.utils import degree

import gst
from graphs import random_graph
from gst import GST, InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods.gst import Criteria
from gst.nn.backbones import BACKBONES
from gst.storage.cache import Cache
from gst.train.task import Task

QUICK = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 9, "interval": 2, "cache": False}


def fit(data=None, **kwargs):
    return GST(sparsity=0.5, **{**QUICK, **kwargs}).fit(random_graph(nodes=40, edges=120) if data is None else data)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_same_seed_same_bits_and_another_seed_other_ones(backbone):
    first, second = fit(backbone=backbone), fit(backbone=backbone)
    assert same(first, second)
    assert not torch.equal(first.found_.logits, fit(backbone=backbone, seed=1).found_.logits)


def test_global_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit()
    assert torch.equal(torch.rand(3), expected)


def test_cached_anchor_gives_the_same_bits_and_serves_every_sparsity(tmp_path, monkeypatch):
    data, cache = random_graph(nodes=40, edges=120), Cache(tmp_path)
    fresh = fit(data, cache=cache)
    assert sorted(p.name.split("-")[0] for p in tmp_path.iterdir()) == ["anchor", "topology"]
    seen = []
    again = fit(data, cache=cache, callbacks=lambda step: seen.append(step.phase))
    assert same(fresh, again) and set(seen) == {"sparse"}
    other = GST(sparsity=0.8, **{**QUICK, "cache": cache}, callbacks=lambda step: seen.append(step.phase)).fit(data)
    assert set(seen) == {"sparse"} and torch.equal(other.anchor_.mask, fresh.anchor_.mask)
    fit(data, cache=cache, seed=3, callbacks=lambda step: seen.append(step.phase))
    assert "anchor" in seen
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:100])  # damaged files count as none
    assert same(fresh, fit(data, cache=cache))


def test_anchor_holds_copies_of_the_best_epoch():
    data = random_graph(nodes=40, edges=120)
    vals = []
    est = fit(data, callbacks=lambda step: vals.append(step.val) if step.phase == "anchor" else None)
    assert est.anchor_.val == max(vals) and est.anchor_.epoch == vals.index(max(vals)) + 1
    network = gst.train.models.build_network(None, "gcn", data, 3, est.result_.training)
    network.module.load_state_dict(est.anchor_.model)
    network.module.eval()
    logits = network.logits(EdgeSet.from_data(data), est.anchor_.mask)
    assert torch.allclose(logits, est.anchor_.logits, atol=1e-6)


def test_no_tuning_keeps_the_one_shot_mask():
    est = fit(tune=False)
    assert torch.equal(est.found_.keep_mask, top_k(est.anchor_.mask, int(est.found_.keep_mask.sum())))
    assert all(step["swapped"] == 0 for step in est.found_.history)


def test_updates_follow_the_schedule():
    est = GST(sparsity=0.5, **{**QUICK, "sparse_epochs": 10, "interval": 3}).fit(random_graph(nodes=40, edges=120))
    kept = int(est.found_.keep_mask.sum())
    pruned = est.edges_.num_edges - kept
    expected = {3 * mu: int(0.3 * (1 - mu / 4) * min(kept, pruned)) for mu in (1, 2, 3)}
    assert {step["epoch"]: step["swapped"] for step in est.found_.history if step["swapped"]} == expected


@pytest.mark.parametrize(("off", "other"), [("semantic", "topology"), ("topology", "semantic")])
def test_ablations_use_one_criterion_alone(off, other, monkeypatch):
    called = []
    for name in ("semantic_scores", "topology_scores"):
        real = getattr(gst.methods.gst, name)
        monkeypatch.setattr(
            gst.methods.gst, name, lambda *a, real=real, name=name, **k: called.append(name) or real(*a, **k)
        )
    fit(**{off: False})
    assert set(called) == {f"{other}_scores"}


def test_result_is_what_the_returned_model_gives_on_the_returned_graph():
    data = random_graph(nodes=40, edges=120, loops=True, duplicates=True)
    est = fit(data)
    sparse, task = est.transform(data), Task.from_data(data)
    est.result_.model.eval()
    with torch.no_grad():
        logits = est.result_.model(sparse.x, sparse.edge_index)
    assert torch.allclose(logits, est.found_.logits, atol=1e-5)
    assert est.found_.val == task.score(logits[task.val], "val")


class Tutorial(nn.Module):
    """A hand-written layer as in PyG's tutorial: degrees inside forward."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = HandWritten(inputs, 8), HandWritten(8, outputs)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class HandWritten(gst.nn.own_model.MessagePassing):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(inputs, outputs)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(self, x, edge_index):
        norm = degree(edge_index[1], x.shape[0], dtype=x.dtype).clamp(min=1).pow(-0.5).view(-1, 1)
        return self.propagate(edge_index, x=self.lin(x), norm=norm) + x.mean()

    def message(self, x_j, norm_i, norm_j):
        return norm_i * norm_j * x_j


class Stack(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.a, self.b = GraphConv(inputs, 8, aggr="mean"), GraphConv(8, outputs)

    def forward(self, x, edge_index, edge_weight=None):
        return self.b(self.a(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


OWN = {
    "GCN": lambda: GCN(5, 8, 2, 3),
    "GAT": lambda: GAT(5, 8, 2, 3, heads=2),
    "GraphSAGE": lambda: GraphSAGE(5, 8, 2, 3),
    "GIN": lambda: GIN(5, 8, 2, 3),
    "GraphConv": lambda: Stack(5, 3),
    "hand-written": lambda: Tutorial(5, 3),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", OWN)
def test_own_models_end_to_end(name, directed):
    data = random_graph(nodes=40, edges=120, directed=directed)
    torch.manual_seed(0)
    model = OWN[name]()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    result = gst.sparsify(data, "gst", model=model, sparsity=0.5, dense=True, retrain=True, **QUICK)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items()), "the user's own changed"
    assert result.metrics["edges_kept"] == result.metrics["edges_total"] - round(0.5 * result.metrics["edges_total"])
    result.model.eval()
    with torch.no_grad():
        logits = result.model(result.graph.x, result.graph.edge_index)
    task = Task.from_data(data)
    assert result.metrics["test"] == task.score(logits[task.test], "test")
    assert {"dense_test", "retrain_test"} <= result.metrics.keys()


def test_own_model_and_native_backbone_agree_on_the_same_task():
    """PyG's GCN with our weights gives our logits: the compatibility path computes the same thing."""
    data = random_graph(nodes=40, edges=120)
    native = fit(data, backbone="gcn")
    own = GCN(5, 8, 2, 3)
    for ours, theirs in zip(native.result_.model.layers, own.convs, strict=True):
        theirs.lin.weight.data, theirs.bias.data = ours.weight.data.t().contiguous(), ours.bias.data
    sparse = native.transform(data)
    assert torch.allclose(own.eval()(sparse.x, sparse.edge_index), native.found_.logits, atol=1e-5)


def test_what_cannot_work_is_refused_with_a_reason():
    data = random_graph(nodes=40, edges=120)

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(5, 3, cached=True)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    with pytest.raises(InputError, match="caches the graph that it sees first"):
        GST(Cached(), sparsity=0.5, **QUICK).fit(data)
    with pytest.raises(InputError, match="MessagePassing"):
        GST(nn.Linear(5, 3), sparsity=0.5, **QUICK).fit(data)


def test_settings_are_checked_before_any_work():
    for bad, words in [
        ({"sparsity": 1.0}, "outside \\[0, 1\\)"),
        ({}, "either sparsity= .* or keep="),
        ({"sparsity": 0.5, "lr": -1}, "lr = -1: .*greater than 0"),
        ({"sparsity": 0.5, "matrix": "hessian"}, "matrix = 'hessian'"),
        ({"sparsity": 0.5, "eigenpairs": 0}, "eigenpairs = 0"),
        ({"sparsity": 0.5, "matrix": "adjacency", "eigenpairs": "all"}, "needs a number of eigenpairs"),
        ({"sparsity": 0.5, "semantic": False, "topology": False}, "both off"),
    ]:
        with pytest.raises(InputError, match=words):
            GST(**bad)
    with pytest.raises(InputError, match="unknown argument 'anchor_epoch' of method gst"):
        gst.sparsify(random_graph(), "gst", sparsity=0.5, anchor_epoch=3)
    with pytest.raises(InputError, match="unknown argument 'anchor_epoch' of GST"):
        GST(sparsity=0.5).set_params(anchor_epoch=3)
    with pytest.raises(InputError, match="device 'moon'"):
        GST(sparsity=0.5, device="moon", **QUICK).fit(random_graph())
    with pytest.raises(InputError, match="unknown backbone 'gnc': did you mean"):
        GST(sparsity=0.5, backbone="gnc", **QUICK).fit(random_graph())


def test_matrix_without_eigenpairs_takes_the_paper_s_twenty():
    assert GST(sparsity=0.5, matrix="adjacency").config(Criteria).eigenpairs == 20


def test_transform_wants_the_fitted_graph():
    with pytest.raises(InputError, match="has not been fitted"):
        GST(sparsity=0.5).transform(random_graph())
    with pytest.raises(InputError, match="transform takes the graph that fit has seen"):
        fit().transform(random_graph())
