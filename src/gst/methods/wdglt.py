"""WD-GLT, graph lottery tickets with a Wasserstein head (Hui et al., ICLR 2023)."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from gst.base.arguments import check_options
from gst.base.randomness import generator
from gst.methods.registry import register
from gst.methods.ugs import UGS, Masked
from gst.train.settings import MOST_EPOCHS

_LEAST = -80.0  # e^-80 is lost in any sum, but exp is many times slower where it underflows


@register("wd-glt")
@dataclass(kw_only=True, eq=False, repr=False)
class WDGLT(UGS):
    r"""UGS whose loss sees every edge, and whose mask plays against the weights.

    .. math:: \min_Θ \max_{m ∈ [0,1]^E} \; \mathrm{CE} - λ \sum_c W\big(\{p_i : ŷ_i = c\}, \{p_i : ŷ_i ≠ c\}\big)

    p are the softmax outputs of all nodes, ŷ their classes as predicted, and W is the entropic transport cost of
    :func:`sinkhorn`. An epoch takes a step of ascent on m, projected on [0, 1], then one of descent on Θ at the new m.
    Rounds, pruning, tickets and the final model are those of :class:`~gst.methods.ugs.UGS`.

    Args:
        round_epochs: epochs of a round, fewer than of UGS: each takes two passes over all nodes.
        wasserstein_weight: λ, weight of the transport cost.
        epsilon: entropic regularisation of W.
        iterations: iterations of Sinkhorn's algorithm.
        alpha: weight of the implicit gradient, 0 or 1: how far Θ reckons with the mask's step, which depends on Θ.
        ascent: whether the mask climbs the loss, as the paper writes; off, it descends, as published code does.
        sample_size: nodes drawn on each side of W, anew every time, where there are more. Bounds time and memory.

    The other arguments are those of :class:`~gst.methods.ugs.UGS` but ``l1``.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.WDGLT(sparsity=0.1, round_epochs=2, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> int(est.found_.keep_mask.sum()) == est.edges_.num_edges - round(0.1 * est.edges_.num_edges)
    True
    """

    round_epochs: int = 40
    l1: float = field(default=0.0, init=False)
    wasserstein_weight: float = 0.1
    epsilon: float = 1e-3
    iterations: int = 10
    alpha: float = 0.0
    ascent: bool = True
    sample_size: int = 128

    reference: ClassVar[str] = "Hui et al., ICLR 2023"

    def check(self) -> None:
        super().check()
        check_options(
            type(self).__name__,
            wasserstein_weight=(self.wasserstein_weight, float, lambda v: 0 <= v <= 1e6, "a number from 0 to 1e6"),
            epsilon=(self.epsilon, float, lambda v: 0 < v <= 1e6, "a number above 0 and up to 1e6"),
            iterations=(self.iterations, int, lambda v: 1 <= v <= MOST_EPOCHS, f"a number from 1 to {MOST_EPOCHS}"),
            alpha=(self.alpha, float, lambda v: 0 <= v <= 1, "a number from 0 to 1"),
            sample_size=(self.sample_size, int, lambda v: 1 <= v <= 2**20, "a number from 1 to 2^20"),
        )

    def loss(self, masked: Masked, mask: Tensor) -> Tensor:
        task, logits = masked.run.task, masked.logits(mask)
        outputs = logits if task.seen is None else logits[task.seen]
        apart = separation(outputs, self.sample_size, self.epsilon, self.iterations, multilabel=task.multilabel)
        return task.loss(logits[task.train]) - self.wasserstein_weight * apart

    def epoch(self, masked: Masked) -> None:
        masked.network.module.train()
        mask = masked.mask.detach().clone().requires_grad_()  # the parameter itself changes before the graph is used
        slope = torch.autograd.grad(self.loss(masked, mask), mask, create_graph=self.alpha > 0)[0]
        masked.zero_grad()
        masked.mask.grad = (-slope if self.ascent else slope).detach()
        masked.mask_optimizer.step()
        masked.mask.data.clamp_(0, 1)

        stepped = masked.mask.detach()
        if self.alpha > 0:  # of the same value, and with the slope that a plain step of the mask has in Θ
            rate = masked.run.training.lr * (1 if self.ascent else -1)
            stepped = stepped + self.alpha * rate * (slope - slope.detach())
        self.loss(masked, stepped).backward()
        masked.weight_optimizer.step()


def separation(logits: Tensor, sample: int, epsilon: float, iterations: int, *, multilabel: bool = False) -> Tensor:
    """Σ_c W between the softmax outputs of the nodes predicted c and those of all others; seeded by the caller.

    A class that no node or every node is predicted to be in has nothing to be apart from. Where a node has several
    labels, outputs are sigmoids and each label has its own two sides.
    """
    outputs, predicted = logits.sigmoid() if multilabel else logits.softmax(-1), logits.argmax(-1)
    total = logits.new_zeros(())
    for c in range(logits.shape[1]):
        inside = logits[:, c] > 0 if multilabel else predicted == c
        sides = [inside.nonzero().flatten(), (~inside).nonzero().flatten()]
        if min(side.numel() for side in sides) > 0:
            x, y = (
                outputs[side[torch.randperm(side.numel(), generator=generator())[:sample].to(side.device)]]
                for side in sides
            )
            total = total + sinkhorn(x, y, epsilon, iterations)
    return total


def sinkhorn(x: Tensor, y: Tensor, epsilon: float, iterations: int) -> Tensor:
    r"""Transport cost between two clouds of points, differentiable through all its iterations.

    .. math:: W = \sum_{ij} P_{ij} C_{ij}, \quad C_{ij} = \lVert x_i - y_j \rVert_2^2, \quad
        P = \mathrm{diag}(u)\, e^{-C/ε}\, \mathrm{diag}(v)

    u and v by Sinkhorn's algorithm in the log domain (Cuturi, NeurIPS 2013), every point of one cloud weighing alike.

    >>> x = torch.eye(2)
    >>> round(float(sinkhorn(x, x.flip(0), 1e-3, 10)), 3), round(float(sinkhorn(x, 2 - x, 1e-3, 10)), 3)
    (0.0, 2.0)
    """
    cost = (x.unsqueeze(1) - y.unsqueeze(0)).square().sum(-1)  # not by ‖x‖² + ‖y‖² − 2x·y: ε is below its rounding
    return _Transport.apply(cost, epsilon, iterations)  # type: ignore[no-any-return, no-untyped-call]


class _Transport(torch.autograd.Function):
    """W of a cost matrix, and its slope through all iterations: what the sums were made of is kept and used again."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, epsilon: float, iterations: int) -> Tensor:
        kernel, halves = cost / -epsilon, []
        scale, other = kernel.new_zeros(cost.shape[0], 1), kernel
        for half in range(2 * iterations):  # v by sums over rows, then u by sums over columns
            dim = half % 2
            share, total = _softmax(kernel + scale, dim)
            halves.append(share)
            scale, other = -math.log(cost.shape[1 - dim]) - total, scale
        logs = kernel + scale + other
        plan = _floored(logs, 1).exp()
        ctx.save_for_backward(cost, plan)
        ctx.halves = halves
        ctx.arguments = (epsilon, iterations)
        return (plan * cost).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        cost, plan = ctx.saved_tensors
        if torch.is_grad_enabled():  # the slope itself is differentiated
            slope = torch.autograd.grad(_transport(cost, *ctx.arguments), cost, create_graph=True)[0]
            return grads[0] * slope, None, None
        slope = plan * cost  # ∂W / ∂ log P
        last, before = slope.sum(1, keepdim=True), slope.sum(0, keepdim=True)  # ∂W / ∂ log u, ∂W / ∂ log v
        for half in reversed(range(len(ctx.halves))):
            passed = ctx.halves[half] * last
            slope -= passed
            last, before = before - passed.sum(1 - half % 2, keepdim=True), 0
        return grads[0] * (plan - slope / ctx.arguments[0]), None, None


def _transport(cost: Tensor, epsilon: float, iterations: int) -> Tensor:
    """The same in steps that autograd knows, as often as it likes."""
    kernel = cost / -epsilon
    scale, other = kernel.new_zeros(cost.shape[0], 1), kernel
    for half in range(2 * iterations):
        dim = half % 2
        total = _floored(kernel + scale, dim).logsumexp(dim, keepdim=True)
        scale, other = -math.log(cost.shape[1 - dim]) - total, scale
    return (_floored(kernel + scale + other, 1).exp() * cost).sum()


def _softmax(logs: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Softmax and log Σ exp over a dimension."""
    top = logs.amax(dim, keepdim=True)
    parts = (logs - top).clamp_(min=_LEAST).exp_()
    total = parts.sum(dim, keepdim=True)
    return parts.div_(total), top + total.log()


def _floored(logs: Tensor, dim: int) -> Tensor:
    """At most 80 below the top."""
    return logs.maximum(logs.detach().amax(dim, keepdim=True) + _LEAST)
