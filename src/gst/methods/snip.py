"""SNIP: one cut by connection sensitivity."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gst.methods.criteria.gradients import sensitivity
from gst.methods.dynamic import DynamicSparsifier, SparsePhase, gradient
from gst.methods.registry import register
from gst.train.anchor import Anchor
from gst.train.run import Run
from gst.train.trainer import Trainer


@register("snip")
@dataclass(kw_only=True, eq=False, repr=False)
class SNIP(DynamicSparsifier):
    r"""Keeps the highest :math:`|w ⊙ ∂L/∂w|` at the anchor and never exchanges an edge (Lee et al., ICLR 2019).

    Arguments are those of :class:`~gst.methods.dynamic.DynamicSparsifier`; those of updates have no effect.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> gst.SNIP(sparsity=0.5, **few).fit(data).result_.graph.num_edges
    120
    """

    updates_edges: ClassVar[bool] = False
    reference: ClassVar[str] = "Lee et al., ICLR 2019"

    def one_shot_scores(self, run: Run, trainer: Trainer, anchor: Anchor) -> Tensor:
        mask = run.of_view(anchor.mask)
        self._sensitivity = sensitivity(mask, gradient(run, trainer, torch.ones_like(mask, dtype=torch.bool)))
        return self._sensitivity

    def drop_scores(self, run: Run, phase: SparsePhase) -> Tensor:
        return self._sensitivity
