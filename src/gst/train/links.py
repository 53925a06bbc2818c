"""Link prediction as a task: its answers are scores of pairs of nodes instead of logits of nodes."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.pairs import Keys
from gst.nn.links import Pairs
from gst.nn.ranking import link_metrics
from gst.train.task import SPLITS, Task


@dataclass(frozen=True)
class LinkTask(Task):
    """Whether there is a link between the ends of each pair: a yes/no label for each, [P, 1].

    ``train``, ``val`` and ``test`` are ids of pairs, and ``num_classes`` is the width of the embeddings that a model
    gives. What a search compares are the scores of training pairs only: that somebody asks about a pair of validation
    or test says something about it.
    """

    pairs: Pairs

    @classmethod
    def of_links(cls, data: Data, width: int) -> "LinkTask":
        """Reads the pairs; one clear line for whatever is missing or wrong, or if a supervised edge is a message."""
        if data.get("x") is None:
            raise InputError("data has no x: node features are needed to train on")
        nodes = int(data.num_nodes or 0)
        parts = [_pairs(data, f"{split}_{kind}", nodes) for split in SPLITS for kind in ("pairs", "negatives")]
        _check_no_leak(data, parts)
        sizes = torch.tensor([part.shape[1] for part in parts])
        label = torch.repeat_interleave(torch.tensor([1, 0] * len(SPLITS)), sizes)
        split = torch.repeat_interleave(torch.arange(len(SPLITS)), sizes.view(-1, 2).sum(1))
        train, val, test = ((split == number).nonzero().flatten() for number in range(len(SPLITS)))
        known = Keys.of(torch.cat([data.edge_index.cpu(), parts[0]], 1))
        pairs = Pairs(torch.cat(parts, 1), train, (label == 0) & (split == 0), known, nodes)
        return cls(label.unsqueeze(1), train, val, test, width, "rocauc", pairs, head="labels")

    @property
    def seen(self) -> Tensor:
        return self.train

    def divergence(self, anchor: Tensor, logits: Tensor) -> Tensor:
        """The divergence of the scores of training pairs, from all scores or from those of training pairs."""
        return super().divergence(*(z[self.train] if len(z) == len(self.y) else z for z in (anchor, logits)))

    def measures(self, logits: Tensor, split: str) -> dict[str, float]:
        return link_metrics(logits[:, 0], self.y[getattr(self, split), 0])

    def to(self, device: torch.device) -> "LinkTask":
        y, train, val, test = (t.to(device) for t in (self.y, self.train, self.val, self.test))
        return replace(self, y=y, train=train, val=val, test=test, pairs=self.pairs.to(device))


def has_links(data: Data) -> bool:
    """Whether a graph is for link prediction: :func:`gst.link_split` has made it."""
    return data.get("train_pairs") is not None


def refuse_links(data: Data, what: str) -> None:
    """For what is about answers of nodes only."""
    if has_links(data):
        raise InputError(f"{what} is for classes of nodes: this graph is for link prediction")


def _pairs(data: Data, name: str, nodes: int) -> Tensor:
    pairs = data.get(name)
    if not isinstance(pairs, Tensor) or pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.dtype != torch.int64:
        raise InputError(f"data has no {name}, a [2, pairs] tensor of node ids: gst.link_split(data) makes them")
    if pairs.shape[1] == 0:
        raise InputError(f"{name} is empty: at least one pair is needed")
    if int(pairs.min()) < 0 or int(pairs.max()) >= nodes:
        raise InputError(f"{name} names nodes outside 0 … {nodes - 1}")
    return pairs.cpu()


def _check_no_leak(data: Data, parts: list[Tensor]) -> None:
    """No supervised edge may be a message, in either direction, nor be supervised in two parts."""
    messages = Keys.of(data.edge_index.cpu())
    for split, positives in zip(SPLITS, parts[::2], strict=True):
        leaked = messages.has(positives)
        if bool(leaked.any()):
            pair = positives[:, leaked][:, 0].tolist()
            raise InputError(
                f"{int(leaked.sum())} of {split}_pairs, {pair} among them, are edges of edge_index, in either "
                "direction: the answer would be in the messages"
            )
    for one, other in ((0, 2), (0, 4), (2, 4)):
        if bool(Keys.of(parts[one]).has(parts[other]).any()):
            first, second = SPLITS[one // 2], SPLITS[other // 2]
            raise InputError(f"{first}_pairs and {second}_pairs share a pair: what is learned cannot be judged")
