"""Exact top-k where several processes share the scores."""

from collections.abc import Callable

import torch
from torch import Tensor

from gst.base.distributed import rank, run_of, size, sum_
from gst.graph import select


def shared_top_k(scores: Tensor, k: int) -> Tensor:
    """:func:`gst.graph.select.top_k` where every worker looks at its own run of the scores only.

    The k-th highest is found digit by digit, from counts that are added up over all workers: eight rounds of 256
    numbers, however many edges there are. Ties go to the lower id: workers hold their runs in the order of ids.
    """
    if size() == 1 or k == 0 or k >= scores.numel():
        return select.top_k(scores, k)
    part = run_of(scores.numel())
    above, ties = split_at(_keys(scores[part]), k, sum_)
    counts = torch.zeros(size(), dtype=torch.long)
    counts[rank()] = ties.sum()
    missing = k - int(sum_(above.sum()))
    mine = max(0, missing - int(sum_(counts)[: rank()].sum()))
    above[ties.nonzero().flatten()[:mine]] = True
    mask = torch.zeros(scores.shape, dtype=torch.uint8)
    mask[part] = above
    return sum_(mask).bool().to(scores.device)


def split_at(keys: Tensor, k: int, total: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Which of these keys lie above the k-th highest of all, and which are equal to it; ``total`` adds up counts."""
    prefix, left = 0, k
    alive = torch.ones(keys.shape, dtype=torch.bool)
    for shift in range(56, -8, -8):
        digit = (keys >> shift) & 255
        if shift == 56:
            digit = digit ^ 128  # of signed numbers the highest digit counts from −128
        counts = total(torch.bincount(digit[alive], minlength=256))
        higher = counts.flip(0).cumsum(0).flip(0)  # keys with this digit or a higher one
        chosen = int((higher >= left).nonzero().max())
        left -= int(higher[chosen] - counts[chosen])
        alive &= digit == chosen
        prefix = (prefix << 8) | ((chosen ^ 128) if shift == 56 else chosen)
    threshold = prefix - (1 << 64) if prefix >= 1 << 63 else prefix
    return keys > threshold, alive


def _keys(scores: Tensor) -> Tensor:
    """int64 in the order of the scores; NaN above all numbers, −0 equal to 0."""
    bits = (scores.detach().cpu().double() + 0.0).view(torch.int64)
    keys = bits ^ ((bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF)
    return keys.masked_fill_(scores.cpu().isnan(), 2**63 - 1)
