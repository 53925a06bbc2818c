"""Exact top-k where several processes share the work."""

from collections.abc import Callable

import torch
from torch import Tensor

from gst.base.distributed import local_slice, rank, size, sum_
from gst.graph import select


def shared_top_k(scores: Tensor, k: int) -> Tensor:
    """:func:`gst.graph.select.top_k` where every worker processes only its own run of the scores.

    The k-th highest score is found digit by digit from counts summed over all workers: eight rounds of 256 numbers,
    however many edges there are. Ties go to the lower edge id: the workers' runs are in the order of ids.
    """
    if size() == 1 or k == 0 or k >= scores.numel():
        return select.top_k(scores, k)
    part = local_slice(scores.numel())
    above, ties = split_at(_keys(scores[part]), k, sum_)
    counts = torch.zeros(size(), dtype=torch.long)
    counts[rank()] = ties.sum()
    missing = k - int(sum_(above.sum()))
    num_ties = max(0, missing - int(sum_(counts)[: rank()].sum()))  # left for this worker by those before it
    above[ties.nonzero().flatten()[:num_ties]] = True
    mask = torch.zeros(scores.shape, dtype=torch.uint8)
    mask[part] = above
    return sum_(mask).bool().to(scores.device)


def split_at(keys: Tensor, k: int, total: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Masks of the keys above the k-th highest of all workers and of those equal to it; ``total`` sums over workers."""
    prefix, left = 0, k
    alive = torch.ones(keys.shape, dtype=torch.bool)
    for shift in range(56, -8, -8):
        digits = (keys >> shift) & 255
        if shift == 56:
            digits = digits ^ 128  # the highest digit is signed
        counts = total(torch.bincount(digits[alive], minlength=256))
        at_least = counts.flip(0).cumsum(0).flip(0)  # keys with this digit or a higher one
        digit = int((at_least >= left).nonzero().max())
        left -= int(at_least[digit] - counts[digit])
        alive &= digits == digit
        prefix = (prefix << 8) | ((digit ^ 128) if shift == 56 else digit)
    threshold = prefix - (1 << 64) if prefix >= 1 << 63 else prefix
    return keys > threshold, alive


def _keys(scores: Tensor) -> Tensor:
    """int64 with the order of the scores; NaN above all numbers, −0 equal to 0."""
    bits = (scores.detach().cpu().double() + 0.0).view(torch.int64)
    keys = bits ^ ((bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF)
    return keys.masked_fill_(scores.cpu().isnan(), 2**63 - 1)
