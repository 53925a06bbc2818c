"""The edge masker Ψ."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gst.graph import EdgeSet
from gst.nn.csr import Pattern
from gst.nn.features import Features, linear
from gst.nn.layers import glorot

_CHUNK = 1 << 22  # numbers held at once


class Masker(nn.Module):
    r"""A two-layer perceptron on the features of both ends, one score per edge:

    .. math:: Ψ(i, j) = w · \mathrm{ReLU}(W_a x_i + W_b x_j + b)

    The first layer splits, so both products are taken once per node instead of once per edge. Pairs of an undirected
    graph take the mean of both orders. Scores are standardised over the edges to mean 1 and a small deviation: left
    free, the masker closes edges and the network behind it becomes a plain perceptron; the ranking is unchanged.
    """

    def __init__(self, inputs: int, hidden: int = 64, deviation: float = 0.01) -> None:
        super().__init__()
        self.deviation = deviation
        self.first = glorot(inputs, 2 * hidden)  # [W_a | W_b]
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.last = nn.Parameter(torch.empty(hidden).uniform_(-1, 1) / hidden**0.5)

    def forward(self, x: Features, edges: EdgeSet) -> Tensor:
        """The mask m_g of these edges, ``[E]``."""
        target, source = linear(x, self.first).chunk(2, dim=1)
        scores = edges.edge_mean(edge_mlp(edges.arc_pattern, target + self.bias, source, self.last))
        centred = scores - scores.mean()
        standard = centred / (centred.square().mean().sqrt() + 1e-12)
        return 1 + self.deviation * standard.clamp(-9, 9)


def edge_mlp(pattern: Pattern, target: Tensor, source: Tensor, last: Tensor) -> Tensor:
    r"""w · ReLU(p_i + q_j) at every entry (i, j), ``[N, H], [N, H], [H] -> [nnz]``, with no E×H intermediate."""
    return _EdgeMLP.apply(pattern, target, source, last)


class _EdgeMLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, target: Tensor, source: Tensor, last: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(target, source, last)
        parts = [pre.relu_() @ last for _, _, pre in _chunks(pattern, target, source)]
        return torch.cat(parts) if parts else target.new_zeros(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        target, source, last = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        flipped, order = pattern.transposed
        to_target, to_last = _open_sums(pattern, grads[0], target, source)
        to_source, _ = _open_sums(flipped, grads[0][order], source, target)
        return None, to_target * last, to_source * last, to_last


def _open_sums(pattern: Pattern, grad: Tensor, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Per row the sum of ``grad`` over entries whose unit is open, [N, H]; over all, Σ grad · ReLU, [H]."""
    sums = torch.zeros_like(own)
    total = own.new_zeros(own.shape[1])
    for rows, entries, pre in _chunks(pattern, own, other):
        part = grad[entries]
        is_open = (pre > 0).to(pre.dtype)
        total += part @ (pre * is_open)
        crow = pattern.crow[rows.start : rows.stop + 1] - entries.start
        shape = (rows.stop - rows.start, part.numel())
        gather = torch.sparse_csr_tensor(crow, torch.arange(part.numel(), device=crow.device), part, shape)
        sums[rows] = gather @ is_open
    return sums, total


def _chunks(pattern: Pattern, own: Tensor, other: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Runs of whole rows with their entries and p_i + q_j."""
    size = max(1, _CHUNK // own.shape[1])
    ends = pattern.crow
    row = 0
    while row < pattern.shape[0]:
        begin = int(ends[row])
        stop = max(row + 1, int(torch.searchsorted(ends, begin + size, right=True)) - 1)
        entries = slice(begin, int(ends[stop]))
        yield slice(row, stop), entries, own[pattern.row[entries]] + other[pattern.col[entries]]
        row = stop
