"""Exact budgets and exact top-k: which edges stay, once every edge has a score."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from gst.errors import InputError


def budget(num_edges: int, sparsity: float | None = None, keep: int | None = None) -> int:
    """Number of edges to keep: E − round(s·E) for a share s to remove, or the count itself.

    >>> budget(5278, sparsity=0.4), budget(10, keep=3)
    (3167, 3)
    """
    if (sparsity is None) == (keep is None):
        raise InputError("give either sparsity= (share of edges to remove) or keep= (number of edges to keep)")
    if sparsity is not None:
        if not (isinstance(sparsity, (int, float)) and math.isfinite(sparsity) and 0 <= sparsity < 1):
            raise InputError(f"sparsity {sparsity} is outside [0, 1): it is the share of edges to remove")
        return num_edges - round(sparsity * num_edges)
    if not (isinstance(keep, int) and 0 <= keep <= num_edges):
        raise InputError(f"keep {keep} is outside 0 … {num_edges}: it is the number of edges to keep")
    return keep


def top_k(scores: Tensor, k: int) -> Tensor:
    """Mask of the k highest scores; ties go to the lower edge id. NaN counts as higher than all numbers.

    >>> top_k(torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0]), 2).tolist()
    [False, True, True, False, False]
    """
    if k == 0 or k >= scores.numel():
        return torch.full_like(scores, k > 0, dtype=torch.bool)
    threshold = scores.kthvalue(scores.numel() - k + 1).values  # the k-th highest: no need to sort the rest
    mask = ~(scores <= threshold) & ~threshold.isnan()
    ties = scores.isnan() if threshold.isnan() else scores == threshold
    mask[ties.nonzero().flatten()[: k - int(mask.sum())]] = True
    return mask


def exchange(
    keep: Tensor,
    scores: Tensor,
    count: int,
    grow: Tensor | None = None,
    choose: Callable[[Tensor, int], Tensor] = top_k,
) -> Tensor:
    """One update (drop → regrow): the ``count`` kept edges of lowest score give way to the pruned ones of highest.

    ``grow``: what pruned edges are ranked by, where that is another score.
    The budget stays exact, and an edge dropped here cannot regrow here. Ties go to the lower id among pruned edges and,
    so that the lower id is again the one that stays, against the higher id among kept ones.

    >>> exchange(torch.tensor([True, True, False, False]), torch.tensor([0.1, 0.9, 0.2, 0.8]), 1).tolist()
    [False, True, False, True]
    """
    worst = scores.masked_fill(~keep, -torch.inf)
    best = (scores if grow is None else grow).masked_fill(keep, -torch.inf)
    return choose(worst, int(keep.sum()) - count) | choose(best, count)
