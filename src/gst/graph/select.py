"""Exact budgets and exact top-k: which edges to keep, given a score for every edge."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gst.base.arguments import check_number
from gst.base.errors import InputError
from gst.base.jit import njit
from gst.base.text import shown


def budget(num_edges: int, sparsity: float | None = None, keep: int | None = None) -> int:
    """Number of edges to keep: E − round(s·E) for a share s to remove, or the count itself.

    >>> budget(5278, sparsity=0.4), budget(10, keep=3)
    (3167, 3)
    """
    if (sparsity is None) == (keep is None):
        raise InputError("give either sparsity= (share of edges to remove) or keep= (number of edges to keep)")
    if sparsity is not None:
        check_number("sparsity", sparsity, "the share of edges to remove")
        if not 0 <= sparsity < 1:
            raise InputError(f"sparsity {shown(sparsity)} is outside [0, 1): it is the share of edges to remove")
        return num_edges - round(sparsity * num_edges)
    check_number("keep", keep, "the number of edges to keep", int)
    assert keep is not None
    if not 0 <= keep <= num_edges:
        raise InputError(f"keep {shown(keep)} is outside 0 … {num_edges}: it is the number of edges to keep")
    return keep


def top_k(scores: Tensor, k: int) -> Tensor:
    """Mask of the k highest scores; ties go to the lower edge id. NaN counts as higher than all numbers.

    >>> top_k(torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0]), 2).tolist()
    [False, True, True, False, False]
    """
    if k == 0 or k >= scores.numel():
        return torch.full_like(scores, k > 0, dtype=torch.bool)
    values = scores.detach().cpu().numpy()
    near, above = _near(values, k)
    position = near.size - (k - above)
    threshold = np.partition(near, position)[position]  # not in a kernel: numba takes seconds to compile it
    return torch.from_numpy(_mask(values, threshold, k - above - int((near > threshold).sum()))).to(scores.device)


def exchange(
    keep_mask: Tensor,
    scores: Tensor,
    count: int,
    grow_scores: Tensor | None = None,
    choose: Callable[[Tensor, int], Tensor] = top_k,
) -> Tensor:
    """One update (drop → regrow): the ``count`` pruned edges of highest score replace the kept ones of lowest score.

    ``grow_scores``: a different score to rank pruned edges by. ``choose``: the top-k function.
    The budget stays exact, and an edge dropped here cannot regrow here. In a tie the edge with the lower id is kept, or
    regrown.

    >>> exchange(torch.tensor([True, True, False, False]), torch.tensor([0.1, 0.9, 0.2, 0.8]), 1).tolist()
    [False, True, False, True]
    """
    kept_scores = torch.where(keep_mask, scores, -torch.inf)
    pruned_scores = (scores if grow_scores is None else grow_scores).masked_fill(keep_mask, -torch.inf)
    return choose(kept_scores, int(keep_mask.sum()) - count) | choose(pruned_scores, count)


@njit(cache=True)
def _near(scores: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Keys of the scores that share the first 16 bits with the k-th highest, and the number of scores above them."""
    counts = np.zeros(1 << 16, np.int64)
    for score in scores:
        counts[_key(score) >> np.uint64(48)] += 1
    first, above = counts.size - 1, 0
    while above + counts[first] < k:
        above += counts[first]
        first -= 1
    near, size = np.empty(counts[first], np.uint64), 0
    for score in scores:
        key = _key(score)
        if key >> np.uint64(48) == first:
            near[size] = key
            size += 1
    return near, above


@njit(cache=True)
def _mask(scores: np.ndarray, threshold: np.uint64, ties: int) -> np.ndarray:
    """Mask of the scores above the threshold and of the first ``ties`` scores equal to it."""
    mask = np.empty(scores.size, np.bool_)
    for e in range(scores.size):
        key = _key(scores[e])
        mask[e] = key > threshold or (key == threshold and ties > 0)
        ties -= key == threshold
    return mask


@njit(cache=True)
def _key(score: float) -> np.uint64:
    """An unsigned integer with the order of the scores; NaN above all numbers, −0 equal to 0."""
    if np.isnan(score):
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    bits = np.float64(score + 0.0).view(np.uint64)
    return ~bits if bits >> np.uint64(63) else bits | np.uint64(1 << 63)
