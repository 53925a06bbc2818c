"""What a graph is trained for: labels, splits, loss, score and the divergence between two outputs."""

from dataclasses import dataclass, field, replace
from itertools import combinations
from math import nan

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from gst.base.errors import DivergedError, InputError
from gst.nn import heads
from gst.nn.heads import Head
from gst.nn.metrics import accuracy, mean_roc_auc, micro_f1, roc_auc
from gst.nn.ranking import binary_metrics

SPLITS = ("train", "val", "test")
METRICS = ("accuracy", "rocauc", "f1")


@dataclass(frozen=True)
class Task:
    """Node classification on fixed training, validation and test nodes: one class a node, or several yes/no labels."""

    y: Tensor  # int64, −1 for unlabelled: classes [N], or labels [N, C] of 0 and 1
    train: Tensor  # node ids
    val: Tensor
    test: Tensor
    num_classes: int  # outputs of a model: classes, or labels
    metric: str | None  # "accuracy", "rocauc" or, of several labels, "f1"; None: there is nothing to score with
    head: Head = field(default="classes", kw_only=True)  # what the outputs mean

    @classmethod
    def unlabelled(cls, nodes: int, outputs: int, head: Head) -> "Task":
        """No labels, no splits: answers can be compared with each other only."""
        none = torch.zeros(0, dtype=torch.long)
        return cls(torch.full((nodes,), -1), none, none, none, outputs, None, head=head)

    @classmethod
    def from_data(cls, data: Data) -> "Task":
        """Reads ``y`` and the three masks; one clear line for whatever is missing or wrong."""
        if data.get("x") is None:
            raise InputError("data has no x: node features are needed to train on")
        y = _labels(data)
        ids = {split: _nodes(data, split, y) for split in SPLITS}
        _check_apart(data)
        metric = data.get("metric") or ("accuracy" if y.dim() == 1 else "rocauc")
        if metric not in METRICS:
            raise InputError(f"unknown metric {metric!r}: choose from {', '.join(METRICS)}")
        if y.dim() == 2:
            _check_labels(y[torch.cat(list(ids.values()))], y[ids["train"]], metric)
            y = y.nan_to_num(nan=-1).long()  # only nodes of no split are left
            return cls(y, ids["train"], ids["val"], ids["test"], y.shape[1], metric, head="labels")
        if y[ids["train"]].unique().numel() < 2:
            raise InputError("the training nodes all have one class: at least two classes are needed")
        if metric == "f1":
            raise InputError("f1 is for several labels a node: of one class a node it is the accuracy")
        classes = int(y.max()) + 1
        if metric == "rocauc" and classes != 2:
            raise InputError(f"rocauc needs two classes, y has {classes}: use metric accuracy")
        return cls(y.long(), ids["train"], ids["val"], ids["test"], classes, metric)

    @property
    def multilabel(self) -> bool:
        """Whether a node has several yes/no labels instead of one class."""
        return self.y.dim() == 2

    @property
    def seen(self) -> Tensor | None:
        """Ids of the answers that a search may look at; None: all."""
        return None

    def measures(self, logits: Tensor, split: str) -> dict[str, float]:
        """Further metrics of one split's logits, from 0 to 1, where the labels are yes or no; else none."""
        y = self.y[getattr(self, split)]
        if self.multilabel or self.metric != "rocauc":
            return {}
        if self.head == "logit":
            return binary_metrics(logits[:, 0], y)
        return binary_metrics(logits[:, 1] - logits[:, 0], y)

    def loss(self, logits: Tensor) -> Tensor:
        """Cross-entropy of the logits of the training nodes."""
        return self.cross_entropy(logits, self.y[self.train])

    def cross_entropy(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean over nodes; of several labels that of their Bernoulli distributions, mean over nodes and labels."""
        if self.multilabel:
            return functional.binary_cross_entropy_with_logits(logits, y.to(logits.dtype))
        return functional.cross_entropy(logits, y)

    def predict(self, logits: Tensor) -> Tensor:
        """The likeliest class of every node, or 0 and 1 for its labels."""
        return (logits > 0).long() if self.multilabel else logits.argmax(-1)

    def agreement(self, logits: Tensor, others: Tensor) -> float:
        """Share of all nodes that both answer alike, see :func:`gst.nn.heads.agreement`."""
        return heads.agreement(self.head, logits, others)

    def score(self, logits: Tensor, split: str) -> float:
        """Accuracy or ROC-AUC of the logits of one split's nodes, in per cent; an error if they are not finite.

        NaN without labels.
        """
        if self.metric is None:
            return nan
        if not bool(logits.isfinite().all()):
            raise DivergedError("the model's scores are not finite: features of moderate size or a smaller lr may help")
        y = self.y[getattr(self, split)]
        if self.metric == "f1":
            return 100 * micro_f1(logits, y)
        if self.multilabel:
            return 100 * mean_roc_auc(logits, y)
        if self.head == "logit":  # two classes, of which the first has logit 0
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        if self.metric == "rocauc":
            return 100 * roc_auc(logits[:, 1] - logits[:, 0], y)
        return 100 * accuracy(logits, y)

    def divergence(self, anchor: Tensor, logits: Tensor) -> Tensor:
        r"""S = KL(softmax Z^A ‖ softmax Z), mean over all nodes; of several labels the sum of their divergences.

        .. math:: S = \frac1N \sum_{i,c} p_{ic} \log\frac{p_{ic}}{q_{ic}}
            + (1 - p_{ic}) \log\frac{1 - p_{ic}}{1 - q_{ic}}, \quad p = σ(Z^A), \; q = σ(Z)
        """
        if self.multilabel:  # log(1 − σ(z)) = log σ(−z), and a Bernoulli distribution has these two outcomes
            logits, anchor = (functional.logsigmoid(torch.cat([z, -z], -1)) for z in (logits, anchor))
        else:
            logits, anchor = logits.log_softmax(-1), anchor.log_softmax(-1)
        return functional.kl_div(logits, anchor, reduction="batchmean", log_target=True)

    def to(self, device: torch.device) -> "Task":
        y, train, val, test = (t.to(device) for t in (self.y, self.train, self.val, self.test))
        return replace(self, y=y, train=train, val=val, test=test)


def task_of(data: Data, head: str, outputs: int, model: str, *, encodes: bool = False) -> Task:
    """The task of a trained model: what its outputs mean, and labels to score them with if the data has a split.

    Args:
        data: with or without y and the three masks.
        head: what the outputs mean; ``"auto"``: as y says, without y classes, and embeddings if ``encodes``.
        outputs: their number per node.
        model: its name, for errors.
        encodes: whether the model is known to give embeddings.
    """
    known = _head(data, outputs, model, encodes) if head == heads.AUTO else heads.as_head(head)
    if (known == "logit" and outputs != 1) or (known == "classes" and outputs < 2):
        needed = "one" if known == "logit" else "two or more"
        raise InputError(f"{model} has {outputs} outputs per node: head {known!r} needs {needed}")
    masks = all(isinstance(data.get(f"{split}_mask"), Tensor) for split in SPLITS)
    if known in ("regression", "embedding") or not masks or data.get("y") is None:
        return Task.unlabelled(int(data.num_nodes), outputs, known)
    task = Task.from_data(data)
    right = 2 if known == "logit" else outputs
    if task.num_classes != right or task.multilabel != (known == "labels"):
        raise InputError(_mismatch(model, outputs, task.num_classes))
    return replace(task, head=known)


def _head(data: Data, outputs: int, model: str, encodes: bool) -> Head:
    y = data.get("y")
    if encodes:
        return "embedding"
    if not isinstance(y, Tensor):
        if outputs == 1:
            raise InputError(f"{model} has one output per node and data no y: say head='logit' or head='regression'")
        return "classes"
    if y.dim() == 2 and y.shape[1] > 1:
        return "labels" if bool(((y == 0) | (y == 1) | y.isnan()).all()) else "regression"
    if y.is_floating_point():
        return "regression"
    classes = max(int(y.max()) + 1, 2)
    if outputs == classes:
        return "classes"
    if outputs == 1 and classes == 2:
        return "logit"
    raise InputError(_mismatch(model, outputs, classes))


def _mismatch(model: str, outputs: int, classes: int) -> str:
    return (
        f"{model} has {outputs} outputs per node, but y has {classes} classes (or labels): are they embeddings "
        "(head='embedding') or numbers (head='regression')? Else end it with one output per class"
    )


def _labels(data: Data) -> Tensor:
    """``y`` as [N] integer classes or as [N, C] labels."""
    y, nodes = data.get("y"), int(data.num_nodes)
    if not isinstance(y, Tensor):
        raise InputError("data has no labels: y with one class per node is needed")
    if y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dim() not in (1, 2) or y.shape[0] != nodes or 0 in y.shape:
        raise InputError(
            f"y has shape {list(y.shape)}: one class per node is needed, [{nodes}], or labels, [{nodes}, C]"
        )
    if y.dim() == 1 and (y.is_floating_point() or y.dtype == torch.bool):
        raise InputError(f"y holds {y.dtype}: integer classes 0, 1, … are needed")
    return y


def _nodes(data: Data, split: str, y: Tensor) -> Tensor:
    """The nodes of one split, all of them labelled."""
    mask, nodes = data.get(f"{split}_mask"), y.shape[0]
    if not isinstance(mask, Tensor):
        raise InputError(f'data has no {split}_mask: a split is needed (gst.load(…, split="random") makes one)')
    if list(mask.shape) != [nodes] or mask.dtype != torch.bool:
        raise InputError(
            f"{split}_mask has shape {list(mask.shape)} of {mask.dtype}: [{nodes}] of torch.bool is needed"
        )
    ids = mask.nonzero().flatten()
    if ids.numel() == 0:
        raise InputError(f"{split}_mask is empty: at least one {split} node is needed")
    if bool((y[ids] < 0).any()):
        raise InputError(f"{split}_mask has nodes without a label (y < 0): take them out of the mask")
    return ids


def _check_apart(data: Data) -> None:
    """No node may be in two splits: a model cannot be judged by what it has learned from."""
    for one, two in combinations(SPLITS, 2):
        shared = (data[f"{one}_mask"] & data[f"{two}_mask"]).nonzero().flatten()
        if shared.numel():
            raise InputError(
                f"{shared.numel()} nodes, node {int(shared[0])} among them, are in both {one}_mask and {two}_mask: "
                "a node belongs to one of training, validation and test"
            )


def _check_labels(y: Tensor, train: Tensor, metric: str) -> None:
    """Whether labels of split nodes are 0 and 1 and can be learned and scored."""
    if not bool(((y == 0) | (y == 1)).all()):
        raise InputError(f"y has {y.shape[1]} labels a node and other values than 0 and 1: labels are yes or no")
    if metric == "accuracy":
        raise InputError(f"y has {y.shape[1]} labels a node: their metric is rocauc or f1, not {metric}")
    if not bool(((train == 0).any(0) & (train == 1).any(0)).any()):
        raise InputError("no label is both 0 and 1 among the training nodes: there is nothing to learn")
