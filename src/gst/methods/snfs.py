"""SNFS: regrowth by the momentum of the gradient."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gst.base.arguments import check_options
from gst.methods.criteria.gradients import smoothed
from gst.methods.dynamic import DynamicSparsifier, SparsePhase, gradient
from gst.methods.registry import register
from gst.train.run import Run
from gst.train.settings import Updates


@register("snfs")
@dataclass(kw_only=True, eq=False, repr=False)
class SNFS(DynamicSparsifier):
    r"""Drops the lowest |w|, regrows the highest momentum |M| (Dettmers & Zettlemoyer, 2019).

    .. math:: M ← α M + (1 − α) ∂L/∂w \quad \text{after every epoch, of pruned edges too}

    SNFS also moves weights between layers by their mean momentum; a graph is one layer.

    Args:
        momentum: α, share of the old momentum that stays.

    The other arguments are those of :class:`~gst.methods.dynamic.DynamicSparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> gst.SNFS(sparsity=0.5, **few).fit(data).result_.graph.num_edges
    120
    """

    momentum: float = 0.9

    reference: ClassVar[str] = "Dettmers & Zettlemoyer, 2019"

    def check(self) -> None:
        super().check()
        check_options("SNFS", momentum=(self.momentum, float, lambda v: 0 <= v < 1, "at least 0 and below 1"))

    def observe(self, run: Run, phase: SparsePhase) -> None:
        if self.config(Updates).tune:
            now = gradient(run, phase.trainer, phase.keep_mask)
            before = phase.memory.get("momentum", torch.zeros_like(now))
            phase.memory = {"momentum": smoothed(before, now, self.momentum)}

    def grow_scores(self, run: Run, phase: SparsePhase, drop: Tensor) -> Tensor:
        return phase.memory["momentum"].abs()
