r"""One tensor over all nodes that several runs of rows read, and whose gradient, its *slope*, is accumulated in place.

.. math:: Y_i = \sum_e v_e X_{c(e)}, \qquad
    \bar v_e = \bar Y_i · X_{c(e)}, \qquad \bar X_{c(e)} \mathrel{+}= v_e \bar Y_i

Autograd would allocate a gradient as large as the graph for each run. Here the cost of a run depends only on its size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.sparse.csr import Pattern, sddmm
from gst.sparse.kernels import fetch, product

_AHEAD = 16  # entries between a prefetch and its use


@dataclass(frozen=True)
class Shared:
    """A value with one row, or one number, per node."""

    value: Tensor
    slope: Tensor | None  # of the value's shape: the gradient accumulated so far; None if it is not needed
    token: Tensor  # empty; ties the value into autograd: a gradient with respect to it fills the slope
    backward_only: bool  # whether products are known already: they are given as zeros, with the right gradients

    @classmethod
    def of(cls, value: Tensor, token: Tensor, backward_only: bool = False) -> "Shared":
        return cls(value, room(value, *value.shape) if token.requires_grad else None, token, backward_only)

    def split(self, parts: int) -> "list[Shared]":
        """The columns in equal parts, whose slopes are views of this one's."""
        values = self.value.chunk(parts, 1)
        slopes: Sequence[Tensor | None] = [None] * parts if self.slope is None else self.slope.chunk(parts, 1)
        return [
            Shared(value, slope, self.token, self.backward_only) for value, slope in zip(values, slopes, strict=True)
        ]


def token(requires_grad: bool) -> Tensor:
    """A new token for :class:`Shared`."""
    return torch.empty(0, requires_grad=requires_grad)


def room(like: Tensor, *shape: int) -> Tensor:
    """Zeros; on the CPU from numpy, which requests huge pages: reading random rows then takes 30 % less time."""
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    return torch.from_numpy(np.zeros(shape, torch.empty(0, dtype=like.dtype).numpy().dtype))


def take(x: Tensor | Shared, index: Tensor) -> Tensor:
    """The rows ``x[index]``."""
    return x[index] if isinstance(x, Tensor) else _Take.apply(x.token, x, index)


def shared_linear(x: Shared, index: Tensor, weight: Tensor) -> Tensor:
    """X_index · W; if ``backward_only``, zeros with the right gradients."""
    return _SharedLinear.apply(x.token, x, index, weight)


def shared_spmm(pattern: Pattern, values: Tensor, dense: Shared, weight: Tensor | None = None) -> Tensor:
    """Sparse × dense (× W), ``[nnz], [cols, D] -> [rows, D]``; if ``backward_only``, zeros with the right gradients."""
    return _SharedSpMM.apply(pattern, values, dense.token, dense, weight)


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, x: Shared, index: Tensor) -> Tensor:
        ctx.slope, ctx.index = x.slope, index
        return x.value[index]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ctx.slope.index_add_(0, ctx.index, grads[0])
        return None, None, None


class _SharedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, x: Shared, index: Tensor, weight: Tensor) -> Tensor:
        ctx.slope, ctx.index, ctx.weight = x.slope, index, weight
        return _zeros(weight, index.numel(), weight.shape[1]) if x.backward_only else x.value[index] @ weight

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None, None]:
        if ctx.slope is not None:
            ctx.slope.index_add_(0, ctx.index, grads[0] @ ctx.weight.t())
        return None, None, None, None


class _SharedSpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: Tensor, token: Tensor, dense: Shared, weight: Tensor) -> Tensor:
        ctx.pattern, ctx.dense, ctx.weight = pattern, dense, weight
        ctx.save_for_backward(values)
        if dense.backward_only:
            return _zeros(values, pattern.shape[0], (dense.value if weight is None else weight).shape[1])
        out = _product(pattern, values, dense.value)
        return out if weight is None else out @ weight

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None, None, None]:
        pattern, dense = ctx.pattern, ctx.dense
        values = ctx.saved_tensors[0].contiguous()
        grad = (grads[0] if ctx.weight is None else grads[0] @ ctx.weight.t()).contiguous()
        if grad.device.type == "cpu":
            to_values, slope = torch.empty_like(values), None if dense.slope is None else dense.slope.numpy()
            crow, col = (part.numpy() for part in pattern.indices)
            _slopes(crow, col, values.numpy(), dense.value.numpy(), grad.numpy(), to_values.numpy(), slope)
            return None, to_values, None, None, None
        if dense.slope is not None:
            flipped, order = pattern.transposed
            dense.slope.add_(flipped.matrix(values[order]) @ grad)
        return None, sddmm(pattern, grad, dense.value), None, None, None


def _zeros(like: Tensor, *shape: int) -> Tensor:
    """Zeros of any shape that share a single number of memory."""
    return like.new_zeros(1, 1).expand(shape)


def _product(pattern: Pattern, values: Tensor, x: Tensor) -> Tensor:
    if x.device.type != "cpu" or x.dtype != torch.float32 or pattern.indices[1].dtype != torch.int32:
        return pattern.matrix(values) @ x
    crow, col = (part.numpy() for part in pattern.indices)
    init = np.zeros((1, x.shape[1]), np.float32)
    return torch.from_numpy(product(crow, col, values.contiguous().numpy(), x.numpy(), init, relu=False))


@njit(cache=True, fastmath=True, nogil=True)
def _slopes(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    grad: np.ndarray,
    to_values: np.ndarray,
    slope: np.ndarray | None,
) -> None:
    for i in range(crow.size - 1):
        for e in range(crow[i], crow[i + 1]):
            later = col[min(e + _AHEAD, col.size - 1)]
            fetch(x, later)
            j, value, total = col[e], values[e], values[e] - values[e]
            for c in range(grad.shape[1]):
                total += grad[i, c] * x[j, c]
            to_values[e] = total
            if slope is not None:
                fetch(slope, later)
                for c in range(grad.shape[1]):
                    slope[j, c] += value * grad[i, c]
