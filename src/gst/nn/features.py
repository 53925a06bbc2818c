"""Node features, dense or sparse, and a cheap dropout for both."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.base.randomness import generator
from gst.sparse.csr import Pattern, spmm
from gst.sparse.kernels import over_rows
from gst.sparse.layouts import as_float, is_sparse
from gst.sparse.sampler import row_entries
from gst.sparse.shared_grad import Shared, room, take, token

# density at which X·W with its backward pass takes the same time in both layouts: benchmarks/features.py
SPARSE_BELOW = 0.08

_LARGE = 1 << 16  # entries from which a compiled pass is faster


@dataclass(frozen=True)
class SparseFeatures:
    """A feature matrix X in CSR layout: of bag-of-words features about one in a hundred is non-zero."""

    pattern: Pattern
    values: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape


Features = Tensor | SparseFeatures


class SharedFeatures:
    """The features of all nodes for several runs of rows: X·W is computed once, and so is its backward pass.

    Args:
        x: the features.
        slope: whether the gradient in X is needed.
        backward_only: whether outputs are known and the runs are needed for their gradients alone.
    """

    def __init__(self, x: Features, slope: bool = False, backward_only: bool = False) -> None:
        self.x = x
        self.shape = x.shape
        self.token = token(slope)
        self.backward_only = backward_only
        self._products: dict[int, tuple[Tensor, Shared]] = {}

    @cached_property
    def itself(self) -> Shared:
        """X, if dense, to be read row by row."""
        assert isinstance(self.x, Tensor)
        return Shared.of(self.x, self.token, self.backward_only)

    def times(self, weight: Tensor, key: Tensor | None = None) -> Shared:
        """X·W, computed once per weight; ``key``: the parameter that a temporary weight is computed from."""
        name = id(weight if key is None else key)
        if name not in self._products:
            with torch.no_grad():
                product = room(weight, self.shape[0], weight.shape[1])
                if isinstance(self.x, Tensor):
                    torch.mm(self.x, weight, out=product)
                else:
                    product += linear(self.x, weight)
                self._products[name] = weight, Shared.of(product, self.token, self.backward_only)
        return self._products[name][1]

    @torch.no_grad()
    def slope(self) -> Tensor:
        """The gradient in X, summed over all runs; overwrites it, so call it once."""
        total = self.itself.slope
        assert total is not None
        for weight, product in self._products.values():
            assert product.slope is not None
            total.addmm_(product.slope, weight.t())
        return total


def as_features(x: Tensor, dtype: torch.dtype = torch.float32) -> Features:
    """Features in the layout in which X·W is faster, judged by their density.

    A sparse tensor stays sparse whatever its density: its dense form may not fit into memory.
    """
    x = as_float(x, dtype)
    if is_sparse(x):
        row = torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), x.crow_indices().diff())
        return SparseFeatures(Pattern(row, x.col_indices(), (x.shape[0], x.shape[1])), x.values())
    nonzero = int(torch.count_nonzero(x))
    if nonzero >= SPARSE_BELOW * x.numel():
        return x.contiguous()
    row, col = x.nonzero(as_tuple=True)
    return SparseFeatures(Pattern(row, col, (x.shape[0], x.shape[1])), x[row, col])


def rows(x: Features | SharedFeatures, nodes: Tensor) -> Features:
    """The features of some nodes (sorted ids)."""
    if isinstance(x, SharedFeatures):
        return take(x.itself, nodes) if isinstance(x.x, Tensor) else rows(x.x, nodes)
    if nodes.numel() == x.shape[0]:
        return x
    if not isinstance(x, SparseFeatures):
        return x[nodes]
    entries = row_entries(x.pattern, nodes)
    row = torch.searchsorted(nodes, x.pattern.row[entries])
    return SparseFeatures(Pattern(row, x.pattern.col[entries], (nodes.numel(), x.shape[1])), x.values[entries])


def linear(x: Features, weight: Tensor) -> Tensor:
    """X·W with ``weight`` of shape [in, out]."""
    return spmm(x.pattern, x.values, weight) if isinstance(x, SparseFeatures) else x @ weight


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    r"""Zeroes entries with probability p and scales the rest by 1/(1 − p).

    One random byte per entry, so p is rounded to 1/256 (0.5 and 0.25 are exact): on a CPU drawing bytes is an order of
    magnitude cheaper than the Bernoulli numbers of ``torch.nn.functional.dropout``, which would dominate an epoch.
    """
    level = round(p * 256)
    if not training or level == 0:
        return x
    integers = torch.empty(x.numel() // 8 + 1, dtype=torch.int64, device=x.device)
    integers.random_(-(2**63), None, generator=generator(x.device))
    return _Thinned.apply(x, integers.view(torch.uint8)[: x.numel()].view(x.shape), level)


def feature_dropout(x: Features, p: float, training: bool) -> Features:
    if isinstance(x, SparseFeatures):
        return SparseFeatures(x.pattern, dropout(x.values, p, training))
    return dropout(x, p, training)


class _Thinned(torch.autograd.Function):
    """Keeps and scales the entries whose random byte is at least ``level``; the gradient is thinned likewise."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, random: Tensor, level: int) -> Tensor:
        ctx.save_for_backward(random)
        ctx.level = level
        scale = 256 / (256 - level)
        if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64) or x.numel() < _LARGE:
            return x * torch.ge(random, level, out=torch.empty_like(x)).mul_(scale)
        out = torch.empty(x.shape, dtype=x.dtype)
        whole = (-1, x.shape[-1]) if x.dim() > 1 else (1, -1)
        arrays = [part.contiguous().view(whole).numpy() for part in (x.detach(), random, out)]
        over_rows(np.arange(len(arrays[0]) + 1), _thin, *arrays, level, arrays[0].dtype.type(scale))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _Thinned.apply(grads[0], *ctx.saved_tensors, ctx.level), None, None


@njit(nogil=True, cache=True)
def _thin(x: np.ndarray, random: np.ndarray, out: np.ndarray, level: int, scale: float, begin: int, end: int) -> None:
    """One pass: several would spend most of the time on writing and reading intermediate results."""
    for i in range(begin, end):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * (scale if random[i, j] >= level else 0 * scale)
