"""What a graph is trained for: labels, splits, loss, score and the divergence between two outputs."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from gst.errors import InputError
from gst.evaluate.metrics import accuracy, roc_auc

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Task:
    """Node classification on fixed training, validation and test nodes."""

    y: Tensor  # [N] int64, −1 for unlabelled
    train: Tensor  # node ids
    val: Tensor
    test: Tensor
    num_classes: int
    metric: str  # "accuracy" or "rocauc"

    @classmethod
    def from_data(cls, data: Data) -> "Task":
        """Reads ``y`` and the three masks; one clear line for whatever is missing or wrong."""
        y, nodes = data.get("y"), int(data.num_nodes)
        if data.get("x") is None:
            raise InputError("data has no x: node features are needed to train on")
        if not isinstance(y, Tensor):
            raise InputError("data has no labels: y with one class per node is needed")
        if y.dim() == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if list(y.shape) != [nodes]:
            raise InputError(f"y has shape {list(y.shape)}: one class per node is needed, [{nodes}]")
        if y.is_floating_point() or y.dtype == torch.bool:
            raise InputError(f"y holds {y.dtype}: integer classes 0, 1, … are needed")
        ids = {}
        for split in SPLITS:
            mask = data.get(f"{split}_mask")
            if not isinstance(mask, Tensor):
                raise InputError(f'data has no {split}_mask: a split is needed (gst.load(…, split="random") makes one)')
            if list(mask.shape) != [nodes] or mask.dtype != torch.bool:
                raise InputError(
                    f"{split}_mask has shape {list(mask.shape)} of {mask.dtype}: [{nodes}] of torch.bool is needed"
                )
            ids[split] = mask.nonzero().flatten()
            if ids[split].numel() == 0:
                raise InputError(f"{split}_mask is empty: at least one {split} node is needed")
            if bool((y[ids[split]] < 0).any()):
                raise InputError(f"{split}_mask has nodes without a label (y < 0): take them out of the mask")
        if y[ids["train"]].unique().numel() < 2:
            raise InputError("the training nodes all have one class: at least two classes are needed")
        metric = data.get("metric") or "accuracy"
        classes = int(y.max()) + 1
        if metric not in ("accuracy", "rocauc"):
            raise InputError(f"unknown metric {metric!r}: choose from accuracy, rocauc")
        if metric == "rocauc" and classes != 2:
            raise InputError(f"rocauc needs two classes, y has {classes}: use metric accuracy")
        return cls(y.long(), ids["train"], ids["val"], ids["test"], classes, metric)

    def loss(self, logits: Tensor) -> Tensor:
        """Cross-entropy of the logits of the training nodes."""
        return functional.cross_entropy(logits, self.y[self.train])

    def score(self, logits: Tensor, split: str) -> float:
        """Accuracy or ROC-AUC of the logits of one split's nodes, in percent."""
        y = self.y[getattr(self, split)]
        if self.metric == "rocauc":
            return 100 * roc_auc(logits[:, 1] - logits[:, 0], y)
        return 100 * accuracy(logits, y)

    def divergence(self, anchor: Tensor, logits: Tensor) -> Tensor:
        """S = KL(softmax Z^A ‖ softmax Z), mean over all nodes."""
        return functional.kl_div(logits.log_softmax(-1), anchor.log_softmax(-1), reduction="batchmean", log_target=True)

    def to(self, device: torch.device) -> "Task":
        y, train, val, test = (t.to(device) for t in (self.y, self.train, self.val, self.test))
        return Task(y, train, val, test, self.num_classes, self.metric)
