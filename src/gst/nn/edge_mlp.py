r"""The masker's kernel: w · ReLU(p_i + q_j) at every entry (i, j) of a pattern, with no edges × width intermediate."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.sparse.csr import Pattern

_CHUNK = 1 << 22  # numbers that the fallback holds at once


def edge_mlp(pattern: Pattern, target: Tensor, source: Tensor, last: Tensor) -> Tensor:
    """``[N, H], [N, H], [H] -> [nnz]``; the gradient reaches all three."""
    return _EdgeMLP.apply(pattern, target, source, last)


class _EdgeMLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, target: Tensor, source: Tensor, last: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(target, source, last)
        if _compiled(target):
            out = target.new_empty(pattern.nnz)
            _scores(*_arrays(pattern.crow, pattern.col, target, source, last, out))
            return out
        parts = [hidden.relu_() @ last for _, _, hidden in _chunks(pattern, target, source)]
        return torch.cat(parts) if parts else target.new_zeros(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        target, source, last = ctx.saved_tensors
        flipped, order = ctx.pattern.transposed
        to_target, to_last = _open_sums(ctx.pattern, grads[0].contiguous(), target, source)
        to_source, _ = _open_sums(flipped, grads[0][order], source, target)
        return None, to_target * last, to_source * last, to_last


def _open_sums(pattern: Pattern, grad: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Per row the sum of ``grad`` over the entries whose ReLU is open, [N, H]; over all entries Σ grad · ReLU, [H]."""
    sums = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    total = rows.new_zeros(rows.shape[1], dtype=torch.float64)  # too many entries for single precision
    if _compiled(rows):
        _sum_open(*_arrays(pattern.crow, pattern.col, grad, rows, columns, sums, total))
        return sums, total.to(rows.dtype)
    for span, entries, hidden in _chunks(pattern, rows, columns):
        part = grad[entries]
        is_open = (hidden > 0).to(hidden.dtype)
        total += part @ (hidden * is_open)
        crow = pattern.crow[span.start : span.stop + 1] - entries.start
        shape = (span.stop - span.start, part.numel())
        gather = torch.sparse_csr_tensor(crow, torch.arange(part.numel(), device=crow.device), part, shape)
        sums[span] = gather @ is_open
    return sums, total.to(rows.dtype)


def _compiled(tensor: Tensor) -> bool:
    """Whether the compiled kernels apply: they run on the CPU only."""
    return tensor.device.type == "cpu"


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


# single-threaded: they take a few milliseconds, compiling them for several threads would take seconds
@njit(fastmath=True, cache=True, nogil=True)
def _scores(
    crow: np.ndarray, col: np.ndarray, target: np.ndarray, source: np.ndarray, last: np.ndarray, out: np.ndarray
) -> None:
    zero = last[0] - last[0]
    for i in range(crow.shape[0] - 1):
        for entry in range(crow[i], crow[i + 1]):
            j = col[entry]
            total = zero
            for h in range(last.shape[0]):
                total += last[h] * max(target[i, h] + source[j, h], zero)
            out[entry] = total


@njit(fastmath=True, cache=True, nogil=True)
def _sum_open(
    crow: np.ndarray,
    col: np.ndarray,
    grad: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    sums: np.ndarray,
    total: np.ndarray,
) -> None:
    zero = rows[0, 0] - rows[0, 0]
    in_row = np.empty_like(rows[0])
    for i in range(crow.shape[0] - 1):
        in_row[:] = zero
        for entry in range(crow[i], crow[i + 1]):
            j, slope = col[entry], grad[entry]
            for h in range(rows.shape[1]):
                hidden = rows[i, h] + columns[j, h]
                sums[i, h] += slope if hidden > zero else zero
                in_row[h] += slope * max(hidden, zero)
        total += in_row


def _chunks(pattern: Pattern, rows: Tensor, columns: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """For devices without the compiled kernels: chunks of whole rows with their entries and p_i + q_j."""
    size = max(1, _CHUNK // rows.shape[1])
    row = 0
    while row < pattern.shape[0]:
        begin = int(pattern.crow[row])
        stop = max(row + 1, int(torch.searchsorted(pattern.crow, begin + size, right=True)) - 1)
        entries = slice(begin, int(pattern.crow[stop]))
        yield slice(row, stop), entries, rows[pattern.row[entries]] + columns[pattern.col[entries]]
        row = stop
