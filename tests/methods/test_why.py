"""The case of an edge, against passes over graphs that have it and graphs that have not."""

import json

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn.models import GAT

import gst
from graphs import random_graph
from gst import InputError
from gst.methods.greedy.divergence import Target

FEW = {"hidden": 8, "anchor_epochs": 5, "sparse_epochs": 5, "cache": False}


def logits(result, data, columns):
    weight = data.get("edge_weight")
    with torch.no_grad():
        args = (data.x, data.edge_index[:, columns])
        return result.model(*args, None if weight is None else weight[columns])


@pytest.mark.parametrize("by", ["pairs", "arcs"])
@pytest.mark.parametrize("kind", [{}, {"weighted": True, "loops": True}])
def test_changes_are_those_of_passes_with_and_without_the_edge(by, kind):
    data = random_graph(nodes=30, edges=60, **kind)
    result = gst.sparsify(data, "deploy", by=by, sparsity=0.5, **FEW)
    dense, now = logits(result, data, torch.arange(data.num_edges)), logits(result, data, result.edge_mask)
    target, turned = Target.of(dense), 0
    for column in range(0, data.num_edges, 5):
        u, v = data.edge_index[:, column].tolist()
        if u == v:
            continue
        case = result.why(u, v)
        arc = (data.edge_index[0] == u) & (data.edge_index[1] == v)
        back = (data.edge_index[0] == v) & (data.edge_index[1] == u)
        other = result.edge_mask.clone()
        other[arc | back if by == "pairs" else arc] ^= True
        then = logits(result, data, other)
        assert case.kept == bool(result.edge_mask[column]) and case.by == by
        assert case.divergence == pytest.approx(float(target.loss(dense, now).sum()), rel=1e-3)
        assert case.change == pytest.approx(
            float((target.loss(dense, then) - target.loss(dense, now)).sum()), rel=1e-2, abs=1e-3
        )
        expected = (now.argmax(-1) != then.argmax(-1)).nonzero().flatten().tolist()
        assert [turn.node for turn in case.turns] == expected
        for turn in case.turns:
            nodes = (each[turn.node].argmax().item() for each in (now, then, dense))
            assert (turn.now, turn.then, turn.dense) == tuple(nodes)
        turned += len(expected)
        assert case.score == float(result.scores[column])
        assert (case.rank <= case.num_kept) == case.kept or case.tied > 1
        assert case.affected >= len(expected)
    assert turned


def test_models_of_users_and_what_is_refused(tmp_path):
    data = random_graph(nodes=30, edges=60)
    torch.manual_seed(0)
    model = GAT(5, 8, 2, 3)
    result = gst.sparsify(data, "deploy", model=model, sparsity=0.5, cache=False)
    u, v = data.edge_index[:, 0].tolist()
    assert result.why(u, v).kept == bool(result.edge_mask[0])
    data.edge_attr = torch.rand(data.num_edges, 2)
    with_attributes = gst.sparsify(data, "deploy", model=model, sparsity=0.5, cache=False)
    with pytest.raises(InputError, match="give the dense graph"):
        with_attributes.why(u, v)
    assert with_attributes.why(u, v, data).kept == bool(with_attributes.edge_mask[0])
    absent = next(
        w for w in range(30) if w != u and not bool(((data.edge_index[0] == u) & (data.edge_index[1] == w)).any())
    )
    for ends, words in [
        ((u, u), "self-loop"),
        ((u, 30), "node 30 is not in the graph"),
        ((u, absent), "has no edge"),
        (("a", 1), "node 'a' is not"),
    ]:
        with pytest.raises(InputError, match=words):
            result.why(*ends)


def test_the_other_direction_is_named():
    data = Data(x=torch.randn(4, 3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=torch.tensor([0, 1, 0, 1]))
    ids = torch.arange(4)
    data.train_mask, data.val_mask, data.test_mask = ids < 2, ids == 2, ids == 3
    result = gst.sparsify(data, "random", sparsity=0.4, **FEW)
    with pytest.raises(InputError, match=r"has no edge 1 → 0 \(the other direction is there\)"):
        result.why(1, 0)


def test_the_command(call, tmp_path):
    data = random_graph(nodes=30, edges=60)
    gst.sparsify(data, "deploy", sparsity=0.5, **FEW).save(tmp_path / "run")
    u, v = data.edge_index[:, 3].tolist()
    code, out, _ = call("why", tmp_path / "run", u, v, "--json")
    found = json.loads(out)
    case = gst.Result.load(tmp_path / "run").why(u, v)
    assert code == 0 and found["kept"] == case.kept and found["change"] == case.change
    code, out, _ = call("why", tmp_path / "run", u, v)
    assert code == 0 and f"arc {u} → {v}: {'kept' if case.kept else 'removed'}" in out and "divergence" in out
    code, _, error = call("why", tmp_path / "run", 0, 0)
    assert code == 2 and error.count("\n") == 1 and "self-loop" in error
