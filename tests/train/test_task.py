import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from graphs import random_graph
from gst.base.errors import InputError
from gst.nn.metrics import accuracy, roc_auc
from gst.train.task import Task


def broken(**changes):
    data = random_graph()
    for name, value in changes.items():
        if value is None:
            del data[name]
        else:
            data[name] = value
    return data


NONE, ALL = torch.zeros(12, dtype=torch.bool), torch.ones(12, dtype=torch.bool)
BAD = [
    ("data has no x", {"x": None}),
    ("data has no labels", {"y": None}),
    ("y has shape [3, 2]", {"y": torch.zeros(3, 2, dtype=torch.long)}),
    ("y has shape [12, 0]", {"y": torch.zeros(12, 0, dtype=torch.long)}),
    ("y has shape [12, 2, 2]", {"y": torch.zeros(12, 2, 2, dtype=torch.long)}),
    ("no label is both 0 and 1", {"y": torch.zeros(12, 2, dtype=torch.long)}),
    ("other values than 0 and 1", {"y": torch.full((12, 2), 2)}),
    ("other values than 0 and 1", {"y": torch.full((12, 2), torch.nan)}),
    ("nodes without a label", {"y": torch.full((12, 2), -1)}),
    ("y has 2 labels a node: their metric is rocauc", {"y": torch.eye(12, 2), "metric": "accuracy"}),
    ("y holds torch.float32", {"y": torch.zeros(12)}),
    ("data has no train_mask", {"train_mask": None}),
    ("data has no val_mask", {"val_mask": None}),
    ("test_mask is empty", {"test_mask": NONE}),
    ("train_mask has shape [3]", {"train_mask": torch.ones(3, dtype=torch.bool)}),
    ("val_mask has shape [12] of torch.int64", {"val_mask": torch.ones(12, dtype=torch.long)}),
    ("nodes without a label", {"y": torch.arange(12) % 3 - 1, "train_mask": ALL}),
    ("all have one class", {"y": torch.zeros(12, dtype=torch.long)}),
    ("unknown metric 'f9'", {"metric": "f9"}),
    ("rocauc needs two classes, y has 3", {"metric": "rocauc"}),
]


@pytest.mark.parametrize(("words", "changes"), BAD)
def test_bad_tasks_get_one_line(words, changes):
    with pytest.raises(InputError) as caught:
        Task.from_data(broken(**changes))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_column_of_labels_is_fine():
    data = random_graph()
    assert torch.equal(Task.from_data(broken(y=data.y.view(-1, 1))).y, data.y)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 1)), min_size=2, max_size=40))
def test_roc_auc_equals_scikit_learn(rows):
    scores, y = torch.tensor([s for s, _ in rows]), torch.tensor([c for _, c in rows])
    if 0 < int(y.sum()) < len(rows):
        assert roc_auc(scores, y) == pytest.approx(roc_auc_score(y.numpy(), scores.numpy()))
    else:
        assert roc_auc(scores, y) == 0.5


def test_scores_are_percent_of_the_split():
    data = random_graph(classes=2)
    data.metric = "rocauc"
    task = Task.from_data(data)
    logits = torch.randn(12, 2)
    y = data.y[task.test].numpy()
    if 0 < y.sum() < y.size:
        expected = 100 * roc_auc_score(y, np.diff(logits[task.test].numpy())[:, 0])
        assert task.score(logits[task.test], "test") == pytest.approx(expected)
    assert accuracy(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])) == 0.5
