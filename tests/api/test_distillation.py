"""Learning from the dense model's answers: never at validation and test nodes, never without the control."""

import pytest
import torch

import gst
from graphs import new_run, random_graph
from gst.base.randomness import seeded
from gst.train.task import Task
from gst.train.trainer import Teacher

FEW = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 4, "cache": False}


def test_the_teacher_is_silent_about_validation_and_test():
    data = random_graph(nodes=40, edges=120)
    task, logits = Task.from_data(data), torch.randn(40, 3)
    teacher = Teacher.of(task, logits)
    held_out = torch.cat([task.val, task.test])
    assert not torch.isin(teacher.nodes, held_out).any()
    assert torch.isin(task.train, teacher.nodes).all()
    assert teacher.nodes.numel() == 40 - held_out.unique().numel()
    other = logits.clone()
    other[held_out] = torch.randn(held_out.numel(), 3)
    assert torch.equal(Teacher.of(task, other).logits, teacher.logits)


def test_the_loss_is_that_of_the_labels_and_the_divergence():
    data = random_graph(nodes=40, edges=120)
    run = new_run(data, dropout=0.0, **FEW)
    network = run.network()
    teacher = Teacher.of(run.task, torch.randn(40, run.task.num_classes))
    with seeded(0):
        loss = run.trainer(network, teacher=teacher)._loss(run.edges)
    out = network.logits(run.edges)
    kl = (teacher.logits.softmax(-1) * (teacher.logits.log_softmax(-1) - out[teacher.nodes].log_softmax(-1))).sum(-1)
    labels = torch.nn.functional.cross_entropy(out[run.task.train], data.y[run.task.train])
    assert loss.item() == pytest.approx(float(labels + kl.mean()), rel=1e-5)


@pytest.mark.parametrize("method", ["gst", "random"])
def test_reported_with_the_control_and_nothing_else_changes(method):
    data = random_graph(nodes=40, edges=120)
    plain = gst.sparsify(data, method, sparsity=0.5, retrain=True, **FEW)
    result = gst.sparsify(data, method, sparsity=0.5, retrain=True, distill=True, **FEW)
    extra = {f"{kind}_{split}" for kind in ("distilled", "edgeless") for split in ("val", "test")}
    assert set(result.metrics) - set(plain.metrics) == extra
    same = [name for name in plain.metrics if name != "seconds"]
    assert [result.metrics[name] for name in same] == [plain.metrics[name] for name in same]


def test_the_control_sees_no_edge():
    data = random_graph(nodes=40, edges=120)
    found = [gst.sparsify(data, "random", sparsity=s, distill=True, **FEW).metrics for s in (0.2, 0.9)]
    assert found[0]["edgeless_val"] == found[1]["edgeless_val"]
    assert found[0]["edgeless_test"] == found[1]["edgeless_test"]


def test_only_where_all_nodes_are_seen():
    data = random_graph(nodes=40, edges=120)
    with pytest.raises(gst.InputError, match="distill is for batch full"):
        gst.sparsify(data, "random", sparsity=0.5, distill=True, inductive=True, **FEW)
