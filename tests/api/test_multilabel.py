"""Several yes/no labels a node, from the loss to every method."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from contract import LEARNED
from sklearn.metrics import roc_auc_score
from torch.distributions import Bernoulli, kl_divergence

import gst
from graphs import new_run, random_graph, taken
from gst.base.errors import InputError
from gst.data.splits import RANDOM, Masks, choose
from gst.data.validate import finish
from gst.methods import METHODS
from gst.methods.mgspar import outer_labels
from gst.nn.metrics import mean_roc_auc
from gst.train.task import Task

SHORT = {"hidden": 4, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}


def many_labels(labels=4, nodes=24, **given):
    data = random_graph(nodes, 60, **given)
    data.y = torch.randint(2, (nodes, labels), generator=torch.Generator().manual_seed(5))
    data.metric = "rocauc"
    return data


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool, torch.uint8])
def test_labels_of_any_type(dtype):
    data = many_labels()
    expected = data.y.clone()
    data.y = data.y.to(dtype)
    task = Task.from_data(data)
    assert task.multilabel and task.num_classes == 4 and task.metric == "rocauc"
    assert task.y.dtype == torch.int64 and torch.equal(task.y, expected)


def test_rocauc_is_the_metric_unless_said_otherwise():
    data = many_labels()
    del data.metric
    assert Task.from_data(data).metric == "rocauc"


def test_nodes_of_no_split_may_lack_labels():
    data = many_labels()
    data.y = data.y.float()
    data.y[0] = torch.nan
    for mask in ("train_mask", "val_mask", "test_mask"):
        data[mask][0] = False
    assert Task.from_data(data).y[0].tolist() == [-1] * 4


def test_loss_is_the_mean_log_likelihood():
    data, logits = many_labels(), torch.randn(24, 4)
    task = Task.from_data(data)
    rows = logits[task.train]
    expected = -Bernoulli(logits=rows).log_prob(data.y[task.train].float()).mean()
    torch.testing.assert_close(task.loss(rows), expected)


def test_divergence_is_the_sum_of_bernoulli_divergences():
    task, anchor, logits = Task.from_data(many_labels()), 3 * torch.randn(24, 4), 3 * torch.randn(24, 4)
    expected = kl_divergence(Bernoulli(logits=anchor), Bernoulli(logits=logits)).sum(1).mean()
    torch.testing.assert_close(task.divergence(anchor, logits), expected)
    assert float(task.divergence(anchor, anchor)) == 0
    assert torch.isfinite(task.divergence(200 * anchor, -200 * anchor))


def test_two_exclusive_labels_diverge_like_two_classes():
    """KL of a Bernoulli distribution is that of the two classes z and 0."""
    many, one = Task.from_data(many_labels()), Task.from_data(random_graph())
    anchor, logits = torch.randn(10, 1).double(), torch.randn(10, 1).double()
    classes = one.divergence(torch.cat([anchor, 0 * anchor], 1), torch.cat([logits, 0 * logits], 1))
    torch.testing.assert_close(many.divergence(anchor, logits), classes)


def scored(nodes, labels, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random((nodes, labels)) < rng.random(labels)).astype(np.int64)
    y[:, 0], y[:, 1] = 1, 0  # columns of one class, which do not count
    return rng.integers(0, 6, (nodes, labels)).astype(np.float32), y


@pytest.mark.parametrize("seed", range(3))
def test_mean_roc_auc_equals_scikit_learn(seed):
    scores, y = scored(40, 9, seed)
    both = [c for c in range(9) if 0 < y[:, c].sum() < 40]
    assert 0 < len(both) < 9
    expected = np.mean([roc_auc_score(y[:, c], scores[:, c]) for c in both])
    assert mean_roc_auc(torch.from_numpy(scores), torch.from_numpy(y)) == pytest.approx(expected)


def test_scores_equal_those_of_the_ogb_evaluator():
    evaluator = pytest.importorskip("ogb.nodeproppred").Evaluator
    scores, y = scored(60, 112, 7)
    expected = evaluator("ogbn-proteins").eval({"y_true": y, "y_pred": scores})["rocauc"]
    data = many_labels(nodes=60)
    data.y = torch.from_numpy(y)
    task = replace(Task.from_data(data), test=torch.arange(60))
    assert task.score(torch.from_numpy(scores), "test") == pytest.approx(100 * expected)


def test_accuracy_equals_that_of_the_ogb_evaluator():
    evaluator = pytest.importorskip("ogb.nodeproppred").Evaluator("ogbn-arxiv")
    data, logits = random_graph(40, 80), torch.randn(40, 3)
    task = Task.from_data(data)
    rows = logits[task.test]
    expected = evaluator.eval({"y_true": data.y[task.test].view(-1, 1), "y_pred": rows.argmax(1, keepdim=True)})
    assert task.score(rows, "test") == pytest.approx(100 * expected["acc"])


def test_no_column_with_both_classes_scores_a_half():
    assert mean_roc_auc(torch.rand(5, 2), torch.ones(5, 2, dtype=torch.long)) == 0.5


@pytest.mark.parametrize("name", [name for name in LEARNED if "-" not in name or name == "wd-glt"])
def test_every_learned_method_takes_them(name):
    data = many_labels()
    found = LEARNED[name](sparsity=0.3).fit(data)
    assert int(found.found_.keep_mask.sum()) == found.edges_.num_edges - round(0.3 * found.edges_.num_edges)
    assert found.found_.logits.shape == (24, 4) and 0 <= found.found_.val <= 100


@pytest.mark.parametrize("name", ["random", "gst"])
def test_one_call_from_graph_to_saved_run(name, tmp_path):
    assert name in METHODS
    data = many_labels()
    result = gst.sparsify(data, method=name, sparsity=0.4, dense=True, **taken(name, {"interval": 1, **SHORT}))
    assert result.metrics["metric"] == "rocauc" and {"val", "test", "dense_test"} <= result.metrics.keys()
    assert torch.equal(result.graph.y, data.y)
    result.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert torch.equal(again.graph.y, data.y)
    with torch.no_grad():
        assert again.model(again.graph.x, again.graph.edge_index).shape == (24, 4)


def test_a_learnable_label_is_learned():
    data = many_labels(nodes=200)
    data.y = (data.x[:, :3] > 0).long()
    part = torch.arange(200)
    data.train_mask, data.val_mask, data.test_mask = part < 120, (part >= 120) & (part < 160), part >= 160
    settings = {**SHORT, "hidden": 16, "anchor_epochs": 60, "lr": 0.02, "dropout": 0.0}
    assert gst.sparsify(data, method="random", sparsity=0.9, **settings).metrics["test"] > 80


@pytest.mark.parametrize(("outer", "judged"), [("train", 1), ("val", 2), ("self", 3)])
def test_mgspar_judges_whole_rows(outer, judged):
    run = new_run(many_labels(), **SHORT)
    task, labels = run.task, outer_labels(run, outer)
    seen = {1: task.train, 2: torch.cat([task.train, task.val]), 3: torch.arange(24)}[judged]
    assert sorted(seen.tolist()) == (labels >= 0).all(1).nonzero().flatten().tolist()
    assert torch.equal(labels[task.train], task.y[task.train]) and int(labels.max()) == 1


def test_saved_graphs_come_back(tmp_path):
    data = many_labels()
    del data.metric
    torch.save(data, tmp_path / "graph.pt")
    loaded = gst.load(tmp_path / "graph.pt")
    assert torch.equal(loaded.y, data.y) and loaded.metric == "rocauc"
    with pytest.raises(InputError, match="their metric is rocauc, not accuracy"):
        gst.load(tmp_path / "graph.pt", metric="accuracy")


def test_random_splits_go_by_class():
    with pytest.raises(InputError, match="a random split goes by class, but nodes have 4 labels each"):
        choose("own", many_labels().y, "random", RANDOM)


def test_split_nodes_need_all_labels():
    data = many_labels()
    node = int(data.val_mask.nonzero()[0])
    data.y[node, 2] = -1
    masks = Masks(data.train_mask, data.val_mask, data.test_mask)
    with pytest.raises(InputError, match=f"node {node} is a validation node but has no label"):
        finish(data, choose("own", data.y, None, RANDOM, masks), name="own", metric="rocauc")
