"""New nodes after the cut."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn.models import GAT

import gst
from graphs import random_graph, taken
from gst import EdgeSet, InputError
from gst.graph.select import budget
from gst.methods.extend import greedy_scores, old_decisions
from gst.methods.greedy.divergence import Target
from gst.train.models import build_network
from gst.train.settings import Batching, Training

FEW = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 3, "interval": 1, "cache": False}
NODE_LEVEL = ("x", "y", "train_mask", "val_mask", "test_mask")


def grown(nodes=30, old=22, **kind):
    """A graph and what it was before its last nodes came."""
    data = random_graph(nodes=nodes, edges=4 * nodes, **kind)
    inside = (data.edge_index < old).all(0)
    before = Data(edge_index=data.edge_index[:, inside], **{name: data[name][:old] for name in NODE_LEVEL})
    for name in ("edge_weight",):
        if name in data:
            before[name] = data[name][inside]
    return before, data


def pairs_of(graph):
    edges = EdgeSet.from_data(graph)
    return {tuple(pair) for pair in edges.pairs.t().tolist()}


@pytest.mark.parametrize("kind", [{}, {"directed": True}, {"loops": True, "duplicates": True}, {"weighted": True}])
@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("gst", "auto"),
        ("gst", "greedy"),
        ("scan", "auto"),
        ("random", "agreement"),
        ("rigl", "random"),
        ("gst", "local"),
    ],
)
def test_the_budget_is_exact_and_old_decisions_stand(method, rule, kind):
    before, data = grown(**kind)
    result = gst.sparsify(before, method, sparsity=0.4, **taken(method, FEW))
    found = result.extend(data, rule)
    total = EdgeSet.from_data(data).num_edges
    assert found.metrics["edges_total"] == total
    assert found.metrics["edges_kept"] == budget(total, sparsity=result.metrics["sparsity"])
    kept, old = pairs_of(found.graph), pairs_of(result.graph)
    assert len(kept) == found.metrics["edges_kept"]
    assert {pair for pair in kept if max(pair) < 22} == old
    assert torch.equal(found.graph.edge_index, data.edge_index[:, found.edge_mask])
    loops = data.edge_index[0] == data.edge_index[1]
    assert bool(found.edge_mask[loops].all())
    new = (data.edge_index >= 22).any(0) & ~loops
    if bool((found.edge_mask & new).any()) and bool((~found.edge_mask & new).any()):
        assert float(found.scores[found.edge_mask & new].min()) >= float(found.scores[~found.edge_mask & new].max())
    assert found.metrics["extended"]["nodes"] == 8 and found.metrics["extended"]["rule"] != "auto"


@settings(max_examples=15)
@given(share=st.floats(0, 0.99), old=st.integers(3, 29), seed=st.integers(0, 9))
def test_any_share_of_any_growth(share, old, seed):
    data = random_graph(nodes=30, edges=100, seed=seed)
    inside = (data.edge_index < old).all(0)
    if not bool(inside.any()):
        return
    before = Data(edge_index=data.edge_index[:, inside], **{name: data[name][:old] for name in NODE_LEVEL})
    edges = EdgeSet.from_data(before)
    keep = torch.arange(edges.num_edges) < budget(edges.num_edges, sparsity=share)
    metrics = {"method": "scan", "sparsity": 1 - int(keep.sum()) / edges.num_edges, "edges_kept": int(keep.sum())}
    metrics |= {"edges_total": edges.num_edges, "options": {}}
    mask = edges.to_columns(keep, True)
    graph = edges.sparse_graph(before, keep)
    found = gst.Result(graph, mask, mask.double(), metrics, None, Training(), Batching()).extend(data)
    total = EdgeSet.from_data(data).num_edges
    assert found.metrics["edges_kept"] == int(found.graph.num_edges / 2)
    assert found.metrics["edges_kept"] == total - round(metrics["sparsity"] * total)


def brute(network, edges, logits, kept, new, count, temperature):
    """Tries every open new edge in every step."""
    keep, order = kept.clone(), []
    target = (logits.double() / temperature).log_softmax(-1)
    for _ in range(count):
        losses = {}
        for edge in (new & ~keep).nonzero().flatten().tolist():
            trial = keep.clone()
            trial[edge] = True
            with torch.no_grad():
                answer = (network.logits(edges.subset(trial)).double() / temperature).log_softmax(-1)
            apart = functional.kl_div(answer, target, reduction="none", log_target=True).sum(1)
            losses[edge] = float(apart.log1p().sum())
        order.append(min(losses, key=losses.__getitem__))
        keep[order[-1]] = True
    return order, losses


@pytest.mark.parametrize("backbone", ["gcn", "gin"])
def test_greedy_takes_the_edge_that_brings_answers_closest(backbone, monkeypatch):
    monkeypatch.setattr(gst.methods.greedy.path.Search.add, "__defaults__", (0.0,))
    before, data = grown(nodes=20, old=14)
    result = gst.sparsify(before, "gst", sparsity=0.5, backbone=backbone, **FEW)
    edges = EdgeSet.from_data(data)
    kept, new = old_decisions(result.graph, result.metrics, data, edges)
    network = build_network(result.model.double(), backbone, data, 3, result.training)
    network.x = data.x.double()
    network.module.eval()
    with torch.no_grad():
        logits = network.logits(edges)
    scores = greedy_scores(network, edges, logits, kept, new, 6)
    found = sorted(range(edges.num_edges), key=lambda e: -float(scores[e]))[:6]
    wanted, _ = brute(network, edges, logits, kept, new, 6, Target.of(logits).temperature)
    assert found == wanted


def test_own_models_choose_too():
    before, data = grown()
    torch.manual_seed(0)
    result = gst.sparsify(before, "gst", model=GAT(5, 8, 2, 3, heads=2), sparsity=0.4, **FEW)
    for rule in ("greedy", "agreement"):
        found = result.extend(data, rule)
        with torch.no_grad():
            sparse, dense = (result.model.eval()(data.x, g.edge_index).argmax(-1) for g in (found.graph, data))
        assert found.metrics["agreement"] == pytest.approx(float((sparse == dense).double().mean()))
        assert found.metrics["test"] == pytest.approx(100 * float((sparse == data.y)[data.test_mask].double().mean()))


def test_nothing_new_changes_nothing_and_it_can_be_saved(tmp_path):
    before, data = grown()
    result = gst.sparsify(before, "gst", sparsity=0.4, **FEW)
    same = result.extend(before)
    assert torch.equal(same.edge_mask, result.edge_mask)
    assert same.metrics["test"] == result.metrics["test"] and same.metrics["val"] == result.metrics["val"]
    result.extend(data).save(tmp_path)
    again = gst.Result.load(tmp_path)
    assert again.metrics["extended"]["nodes"] == 8 and again.graph.num_nodes == 30
    twice = gst.Result.load(tmp_path).extend(data)
    assert torch.equal(twice.edge_mask, again.edge_mask)


def test_new_nodes_without_labels_or_split():
    before, data = grown()
    result = gst.sparsify(before, "gst", sparsity=0.4, **FEW)
    bare = Data(x=data.x, edge_index=data.edge_index)
    found = result.extend(bare)
    assert "test" not in found.metrics and found.metrics["edges_kept"] == result.extend(data).metrics["edges_kept"]


def test_what_is_no_grown_graph_is_refused():
    before, data = grown()
    result = gst.sparsify(before, "gst", sparsity=0.4, **FEW)
    fewer = Data(x=data.x[:10], edge_index=data.edge_index[:, (data.edge_index < 10).all(0)])
    wider = Data(x=torch.randn(30, 6), edge_index=data.edge_index)
    other = data.clone()
    other.edge_index = torch.cat([data.edge_index, torch.tensor([[0, 1, 2, 3, 0], [4, 5, 6, 7, 9]])], 1)
    swapped = data.clone()
    swapped.edge_index = data.edge_index.clone()
    swapped.edge_index[data.edge_index == 0], swapped.edge_index[data.edge_index == 1] = 1, 0
    for bad, words in [
        (fewer, "the grown graph has 10 nodes, the run 22"),
        (wider, "needs x with 5 features"),
        (other, "between old nodes are"),
        (swapped, "old numbers|between old nodes"),
    ]:
        with pytest.raises(InputError, match=words):
            result.extend(bad)
    with pytest.raises(InputError, match="weights of their own"):
        gst.sparsify(before, "dspar", sparsity=0.4, weights=True, **taken("dspar", FEW)).extend(data)
    with pytest.raises(InputError, match="rule 'best': choose from"):
        result.extend(data, "best")
    with pytest.raises(InputError, match="does not score graphs alone"):
        result.extend(data, "method")


@pytest.mark.parametrize("by", ["pairs", "arcs"])
def test_an_engine_that_is_updated_gives_the_graph_that_extending_gives(by):
    before, data = grown()
    result = gst.sparsify(before, "deploy", by=by, sparsity=0.4, **taken("deploy", FEW))
    engine = result.engine(updates=True)
    new = data.edge_index[:, (data.edge_index >= 22).any(0)]
    engine.update(add=new, new_nodes=data.x[22:])
    start, source, _ = engine.state.arcs.packed(30)
    target = torch.repeat_interleave(torch.arange(30), torch.from_numpy(start).diff())
    arcs = set(zip(source.tolist(), target.tolist(), strict=True))
    assert arcs == set(map(tuple, result.extend(data, "local").graph.edge_index.t().tolist()))
