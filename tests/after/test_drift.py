import copy
import json
import sys

import pytest
import torch

import gst
from graphs import random_graph
from gst import InputError
from gst.after.drift import drift, dropped, shuffled
from gst.cli import main as cli

FEW = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 4, "cache": False, "dropout": 0.0}


def run(**more):
    data = random_graph(nodes=40, edges=120, loops=True, duplicates=True)
    return gst.sparsify(data, sparsity=0.5, **{**FEW, **more}), data


def test_dropped_and_shuffled_features():
    x = torch.randn(50, 20)
    gone = dropped(x, 0.3, seed=1)
    empty = (gone == 0).all(0)
    assert int(empty.sum()) == 6 and torch.equal(gone[:, ~empty], x[:, ~empty])
    mixed = shuffled(x, 0.3, seed=1)
    moved = (mixed != x).any(0)
    assert torch.equal(moved, empty), "the same features change"
    assert torch.equal(mixed.sort(0).values, x.sort(0).values), "values move to other nodes and nothing else changes"
    assert torch.equal(dropped(x, 0.0, 0), x) and not bool(dropped(x, 1.0, 0).any())
    with pytest.raises(InputError, match="share 2"):
        dropped(x, 2, 0)


def test_rows_are_the_predictions_of_the_model():
    result, data = run()
    rows = drift(result, data, shares=(0.4,), epochs=(3,), seed=5)
    changes = ["none", "features dropped", "features shuffled", "trained on, dense graph", "trained on, sparse graph"]
    assert [row["change"] for row in rows] == changes
    features = [data.x, dropped(data.x, 0.4, 5), shuffled(data.x, 0.4, 5)]
    result.model.eval()
    for row, x in zip(rows, features, strict=False):
        with torch.no_grad():
            dense, sparse = (result.model(x, g.edge_index) for g in (data, result.graph))
        assert row["agreement"] == pytest.approx(float((dense.argmax(1) == sparse.argmax(1)).double().mean()))
        p, q = dense.double().softmax(1), sparse.double().softmax(1)
        assert row["divergence"] == pytest.approx(float((p * (p / q).log()).sum(1).mean()), rel=1e-3, abs=1e-6)
        test = data.test_mask
        assert row["test"] == pytest.approx(100 * float((sparse.argmax(1) == data.y)[test].double().mean()))
        assert row["dense_test"] == pytest.approx(100 * float((dense.argmax(1) == data.y)[test].double().mean()))
    assert rows[0]["test"] == result.metrics["test"]


def test_further_training_is_plain_training_and_leaves_the_model_unchanged():
    result, data = run()
    before = {name: value.clone() for name, value in result.model.state_dict().items()}
    state = torch.random.get_rng_state()
    rows = drift(result, data, shares=(), epochs=(3, 6))
    assert all(torch.equal(before[name], value) for name, value in result.model.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state()) and rows == drift(result, data, shares=(), epochs=(3, 6))
    model = copy.deepcopy(result.model).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=result.training.lr, weight_decay=result.training.weight_decay)
    for _ in range(3):  # dropout is off, so that an independent loop takes the same steps
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    with torch.no_grad():
        dense, sparse = (model.eval()(data.x, g.edge_index) for g in (data, result.graph))
    p, q = dense.double().softmax(1), sparse.double().softmax(1)
    assert rows[1]["divergence"] == pytest.approx(float((p * (p / q).log()).sum(1).mean()), rel=1e-3, abs=1e-6)


def test_another_graph_is_refused():
    result, data = run()
    for bad, reason in [
        (random_graph(nodes=40, edges=100), "columns"),
        (data.clone().update({"edge_index": data.edge_index.flip(1)}), "other edges"),
        (data.clone().update({"x": data.x[:, :2]}), "other features"),
    ]:
        with pytest.raises(InputError, match=reason):
            drift(result, bad)


def test_command_line(tmp_path, monkeypatch, capsys):
    torch.save(random_graph(nodes=40, edges=120, loops=True, duplicates=True), tmp_path / "own.pt")
    result, data = run()
    result.save(tmp_path / "run")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["gst", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code, *capsys.readouterr()

    arguments = ["drift", tmp_path / "run", "--dataset", tmp_path / "own.pt", "--share", 0.2, "--epochs", 2]
    code, out, _ = call(*arguments, "--json")
    assert code == 0 and json.loads(out)["drift"] == drift(result, data, shares=(0.2,), epochs=(2,))
    code, out, _ = call(*arguments)
    assert code == 0 and "features dropped" in out and "20%" in out
    code, out, _ = call("drift", tmp_path / "run", "--share", 0.2, "--epochs", 2)  # a run holds the edges it removed
    assert code == 0 and "features dropped" in out
