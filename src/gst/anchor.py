"""The anchor: what the full graph and the network know at the best epoch of a short dense training."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gst.graph import EdgeSet
from gst.training import Trainer, Watcher, train


@dataclass(frozen=True)
class Anchor:
    """Copies of m_g^A, Z^A, Θ^A and Ψ^A. They do not depend on the sparsity: train once, use for every budget."""

    mask: Tensor  # m_g^A, [E]
    logits: Tensor  # Z^A in evaluation mode, [N, classes]
    model: dict[str, Tensor]  # Θ^A
    masker: dict[str, Tensor]  # Ψ^A
    val: float
    epoch: int
    seconds: float  # what the training took, also when it came from the cache


def train_anchor(trainer: Trainer, edges: EdgeSet, epochs: int, watch: Watcher) -> dict[str, Any]:
    """Trains Θ and Ψ together on m_g ⊙ A; the parts of the anchor of the best validation epoch."""
    best = train(trainer, edges, epochs, "anchor", 0.0, watch)
    with torch.no_grad():
        mask = trainer.mask(edges)
    return {**best.kept, "mask": mask, "logits": trainer.logits(edges, mask), "val": best.val, "epoch": best.epoch}
