"""RigL: regrowth by the gradient."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gst.methods.dynamic import DynamicSparsifier, SparsePhase, gradient
from gst.methods.registry import register
from gst.train.run import Run


@register("rigl")
@dataclass(kw_only=True, eq=False, repr=False)
class RigL(DynamicSparsifier):
    r"""Drops the lowest |w|, regrows the highest :math:`|∂L/∂w|` (Evci et al., ICML 2020).

    Arguments are those of :class:`~gst.methods.dynamic.DynamicSparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> gst.RigL(sparsity=0.5, **few).fit(data).result_.graph.num_edges
    120
    """

    reference: ClassVar[str] = "Evci et al., ICML 2020"

    def grow_scores(self, run: Run, phase: SparsePhase, drop: Tensor) -> Tensor:
        return gradient(run, phase.trainer, phase.keep_mask).abs()
