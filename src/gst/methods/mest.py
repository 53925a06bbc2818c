"""MEST: weight and gradient together."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gst.base.arguments import check_options
from gst.methods.criteria.gradients import mutation_importance
from gst.methods.dynamic import DynamicSparsifier, SparsePhase, edge_weights, gradient
from gst.methods.registry import register
from gst.train.run import Run


@register("mest")
@dataclass(kw_only=True, eq=False, repr=False)
class MEST(DynamicSparsifier):
    r"""Drops the lowest :math:`|w| + λ |∂L/∂w|`, regrows at random (Yuan et al., NeurIPS 2021).

    Each term is measured in standard deviations over the kept edges. This is the paper's *Elastic Mutation*; its soft
    memory bound, which lets more edges live for a while, would break the exact budget.

    Args:
        gradient_weight: λ, weight of the gradient.

    The other arguments are those of :class:`~gst.methods.dynamic.DynamicSparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> gst.MEST(sparsity=0.5, **few).fit(data).result_.graph.num_edges
    120
    """

    gradient_weight: float = 1.0

    reference: ClassVar[str] = "Yuan et al., NeurIPS 2021"

    def check(self) -> None:
        super().check()
        weight = (self.gradient_weight, float, lambda v: 0 <= v <= 1e6, "a number from 0 to 1e6")
        check_options("MEST", gradient_weight=weight)

    def drop_scores(self, run: Run, phase: SparsePhase) -> Tensor:
        slope = gradient(run, phase.trainer, phase.keep_mask)
        return mutation_importance(edge_weights(run, phase.trainer), slope, self.gradient_weight, phase.keep_mask)
