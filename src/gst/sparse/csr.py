r"""Differentiable sparse products on CSR patterns: gradients of the dense operand and all stored values, no E×D array.

For a pattern with entries (i, j) and values v:

.. math:: \mathrm{spmm}(v, X)_i = \sum_j v_{ij} X_j, \qquad \mathrm{sddmm}(A, B)_{ij} = A_i \cdot B_j

Each is the other's derivative, so both are differentiable any number of times:
∂spmm/∂X is an spmm with the transposed pattern, ∂spmm/∂v an sddmm.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gst.sparse import kernels

_MIN_WIDTH = 16  # columns from which on gst's product is faster than PyTorch's
_CHUNK = 1 << 20  # numbers held at once by the gather fallback of sddmm

with warnings.catch_warnings():  # torch warns once per process that CSR is in beta: trigger and silence that here
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.long), torch.tensor([]), (1, 1))


@dataclass(frozen=True)
class Pattern:
    """Where a sparse matrix may be non-zero. Entries are sorted by row, then column; values live elsewhere."""

    row: Tensor  # [nnz] int64
    col: Tensor  # [nnz] int64
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        return self.row.numel()

    @cached_property
    def crow(self) -> Tensor:
        """Compressed row pointers, int64 [rows + 1]."""
        counts = torch.bincount(self.row, minlength=self.shape[0])
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    @cached_property
    def indices(self) -> tuple[Tensor, Tensor]:
        """Row pointers and columns, as int32 if they fit: the kernels would convert them at every call."""
        dtype = torch.int32 if max(self.nnz, *self.shape) < 2**31 else torch.int64
        return self.crow.to(dtype), self.col.to(dtype)

    @cached_property
    def transposed(self) -> tuple["Pattern", Tensor]:
        """The transposed pattern and the permutation that carries values over to it."""
        order = torch.sort(self.col, stable=True).indices
        return Pattern(self.col[order], self.row[order], (self.shape[1], self.shape[0])), order

    def matrix(self, values: Tensor) -> Tensor:
        """A torch CSR tensor."""
        return torch.sparse_csr_tensor(*self.indices, values, self.shape, check_invariants=False)


def spmm(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse × dense, ``[nnz], [cols, D] -> [rows, D]``."""
    return _SpMM.apply(pattern, values, dense)


def sddmm(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """Dot products of rows of ``left`` and ``right`` at the entries, ``[rows, D], [cols, D] -> [nnz]``."""
    return _SDDMM.apply(pattern, left, right)


def row_sum(pattern: Pattern, values: Tensor) -> Tensor:
    """Sum of the values in each row, ``[nnz] -> [rows]`` or ``[nnz, H] -> [rows, H]``."""
    return values.new_zeros(pattern.shape[0], *values.shape[1:]).index_add(0, pattern.row, values)


def row_max(pattern: Pattern, values: Tensor) -> Tensor:
    """Largest value in each row, ``[nnz, H] -> [rows, H]``; 0 for an empty row. Carries no gradient."""
    index = pattern.row.unsqueeze(1).expand_as(values)
    zeros = values.new_zeros(pattern.shape[0], values.shape[1])
    return zeros.scatter_reduce(0, index, values.detach(), "amax", include_self=False)


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        if _use_kernel(pattern, values, dense):
            out, zero = dense.new_empty(pattern.shape[0], dense.shape[1]), dense.new_zeros(1, dense.shape[1])
            operands = (*pattern.indices, values.contiguous(), dense.contiguous(), zero)
            crow, col, entries, x, init = (operand.detach().numpy() for operand in operands)
            kernels.product(crow, col, entries, x, init, relu=False, out=out.numpy())
            return out
        return pattern.matrix(values) @ dense

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        values, dense = ctx.saved_tensors
        grad = grads[0].contiguous()
        to_values = to_dense = None
        if ctx.needs_input_grad[1]:
            to_values = sddmm(ctx.pattern, grad, dense)
        if ctx.needs_input_grad[2]:
            flipped, order = ctx.pattern.transposed
            to_dense = spmm(flipped, values[order], grad)
        return None, to_values, to_dense


class _SDDMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        if hasattr(torch.sparse, "sampled_addmm"):
            return _sampled(pattern, left, right)
        return _gathered(pattern, left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        left, right = ctx.saved_tensors
        to_left = to_right = None
        if ctx.needs_input_grad[1]:
            to_left = spmm(ctx.pattern, grads[0], right)
        if ctx.needs_input_grad[2]:
            flipped, order = ctx.pattern.transposed
            to_right = spmm(flipped, grads[0][order], left)
        return None, to_left, to_right


def _use_kernel(pattern: Pattern, values: Tensor, dense: Tensor) -> bool:
    """Whether gst's kernel applies and is faster than PyTorch's: half the time for 64 columns, slower for few."""
    supported_types = all(part.device.type == "cpu" and part.dtype == torch.float32 for part in (values, dense))
    supported_index = dense.shape[0] == pattern.shape[1] and pattern.indices[1].dtype == torch.int32
    return supported_types and supported_index and dense.shape[1] >= _MIN_WIDTH


def _sampled(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    # the kernel is fast on the transposed *view* of a contiguous operand (7× on a graph of PubMed's size)
    zeros = left.new_zeros(pattern.nnz)
    return torch.sparse.sampled_addmm(pattern.matrix(zeros), left, right.contiguous().t(), beta=0.0).values()


def _gathered(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """The same without ``sampled_addmm``: gathers a limited number of entries at a time."""
    out = left.new_empty(pattern.nnz)
    step = max(1, _CHUNK // max(1, left.shape[1]))
    for begin in range(0, pattern.nnz, step):
        part = slice(begin, begin + step)
        torch.sum(left[pattern.row[part]] * right[pattern.col[part]], dim=1, out=out[part])
    return out
