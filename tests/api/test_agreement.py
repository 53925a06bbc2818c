"""How many answers of the dense model a sparse graph keeps: measured, reported, and said aloud where they are few."""

import json
import warnings

import pytest
import torch
from torch_geometric.nn import GAE, GCN, GIN, VGAE

import gst
from graphs import new_run, random_graph
from gst.base.errors import AgreementWarning, InputError
from gst.lab.bench.rows import COLUMNS
from gst.train.settings import Training
from gst.train.task import Task

FEW = {"hidden": 8, "anchor_epochs": 5, "sparse_epochs": 5, "cache": False}


def graph():
    return random_graph(nodes=60, edges=240)


def answers(model, data):
    model.eval()
    with torch.no_grad():
        return model(data.x, data.edge_index).argmax(-1)


def dense_answers(data, **more):
    return new_run(data, **FEW, **more).dense.logits.argmax(-1)


@pytest.mark.parametrize("method", ["random", "scan", "ugs", "rigl", "gst", "mgspar"])
def test_agreement_is_the_share_of_nodes_answered_as_by_the_dense_model(method):
    data, own = graph(), {"ugs": {"round_epochs": 1}, "mgspar": {"inner_steps": 1}}.get(method, {})
    result = gst.sparsify(data, method, sparsity=0.6, dense=True, **FEW, **own)
    same = answers(result.model, result.graph) == dense_answers(data)
    assert result.metrics["agreement"] == pytest.approx(float(same.double().mean()), abs=1e-9)
    assert gst.sparsify(data, method, sparsity=0.6, **FEW, **own).metrics["agreement"] is None


def test_deploy_compares_its_model_with_itself_on_all_edges():
    data = graph()
    result = gst.sparsify(data, sparsity=0.8, **FEW)
    same = answers(result.model, result.graph) == answers(result.model, data)
    assert result.metrics["agreement"] == float(same.double().mean())
    own = GCN(5, 8, 2, 3)
    fitted = gst.Deploy(own, sparsity=0.8, **FEW).fit(data)
    same = answers(own, fitted.transform(data)) == answers(own, data)
    assert fitted.found_.agreement == float(same.double().mean())
    assert gst.UGS(sparsity=0.2, round_epochs=1, **FEW).fit(data).found_.agreement is None


def test_of_several_labels_every_decision_counts():
    data = random_graph(nodes=60, edges=240)
    data.y = torch.stack([torch.arange(60) % 2, torch.arange(60) % 3 == 0], dim=1).long()
    task = Task.from_data(data)
    one, other = torch.tensor([[1.0, -1.0], [1.0, 1.0]]), torch.tensor([[2.0, 3.0], [0.5, 0.1]])
    assert task.agreement(one, other) == 0.75
    result = gst.sparsify(data, sparsity=0.5, **FEW)
    dense, sparse = (result.model.eval()(data.x, g.edge_index) > 0 for g in (data, result.graph))
    assert result.metrics["agreement"] == float((dense == sparse).double().mean())


def test_few_kept_answers_are_said_aloud_and_many_are_not():
    data = graph()
    with pytest.warns(AgreementWarning, match=r"random at sparsity 90.\d%: only \d+\.\d% of the answers") as caught:
        gst.sparsify(data, "random", sparsity=0.9, dense=True, **FEW)
    assert len(caught) == 1 and caught[0].filename == __file__ and issubclass(AgreementWarning, UserWarning)
    with pytest.warns(AgreementWarning, match=r"deploy at sparsity 95.\d%"):
        gst.Deploy(sparsity=0.95, **FEW).fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gst.sparsify(data, sparsity=0.0, **FEW)
        gst.sparsify(data, "random", sparsity=0.9, **FEW)  # nothing to compare with
    with pytest.warns(AgreementWarning) as caught:
        gst.search(data, "random", tolerance=100, seeds=1, step=0.3, precision=0.5, **FEW)
    assert len(caught) == 1  # of the run that it returns


def test_the_command_line_says_it_in_one_line_and_shows_it(call, tmp_path):
    torch.save(graph().to_dict(), tmp_path / "own.pt")
    few = ["--hidden", 8, "--anchor-epochs", 5, "--sparse-epochs", 5, "--no-cache", "--quiet"]
    words = ["run", "--dataset", tmp_path / "own.pt", "--method", "random", *few]
    code, out, err = call(*words, "--sparsity", 0.9, "--out", tmp_path / "r")
    assert code == 0 and err.startswith("gst: random at sparsity 90") and err.count("\n") == 1
    found = json.loads(call(*words, "--sparsity", 0.9, "--json")[1])
    assert 0 <= found["agreement"] < 0.98 and f"agreement {found['agreement']:.1%}" in out
    assert f"agreement {found['agreement']:.1%}" in call("inspect", tmp_path / "r")[1]
    assert json.loads(call("inspect", tmp_path / "r", "--json")[1])["agreement"] == found["agreement"]
    code, out, err = call(*words, "--sparsity", 0.9, "--no-dense", "--json")
    assert code == 0 and err == "" and json.loads(out)["agreement"] is None


def test_rows_of_experiments_have_it_beside_the_dense_score():
    assert COLUMNS.index("dense_test") < COLUMNS.index("agreement") < COLUMNS.index("seconds")


def test_embeddings_are_not_class_scores():
    data = graph()
    encoder = GCN(5, 8, 2, 16)
    for model, line in (
        (encoder, "GCN has 16 outputs per node, but y has 3 classes (or labels): "),
        (
            gst.train.models.build_backbone("gcn", 5, 16, Training(hidden=8)),
            "GCN has 16 outputs per node, but y has 3",
        ),
        (GAE(encoder), "GAE gives embeddings, which are not class scores"),
        (VGAE(encoder), "VGAE gives embeddings, which are not class scores"),
    ):
        runs = [
            lambda model: gst.sparsify(data, "scan", model=model, sparsity=0.5, **FEW),
            lambda model: gst.sparsify(data, model=model, sparsity=0.5, **FEW),
            lambda model: gst.Deploy(model, sparsity=0.5, **FEW).fit(data),
        ]
        for run in runs[:1] if isinstance(model, GAE) else runs:  # Deploy knows the encoder of a GAE as what it is
            with pytest.raises(InputError) as caught:
                run(model)
            assert line in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) <= 300


def test_a_model_of_sums_with_batch_norm_keeps_its_statistics_and_its_loss_is_warned_of():
    data = graph()
    trained = gst.sparsify(data, "random", model=GIN(5, 8, 2, 3, norm="batch"), sparsity=0.0, **FEW).model
    with pytest.warns(AgreementWarning):
        result = gst.sparsify(data, "deploy", model=trained, sparsity=0.9, **FEW)
    for name, value in trained.state_dict().items():
        assert torch.equal(value, result.model.state_dict()[name])
