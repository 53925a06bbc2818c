"""Which entries of an adjacency a mini-batch reads: all of its rows, or a few of each drawn at random."""

import numpy as np
import torch
from numba import njit
from torch import Tensor

from gst.nn.csr import Pattern

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_entries(pattern: Pattern, rows: Tensor) -> Tensor:
    """The entries of these rows, row after row; O(entries found), however large the pattern."""
    start, end = pattern.crow[rows], pattern.crow[rows + 1]
    count = end - start
    first = count.cumsum(0) - count
    place = torch.arange(int(count.sum()), device=rows.device)
    return place + torch.repeat_interleave(start - first, count)


def sample_entries(pattern: Pattern, rows: Tensor, fanout: int, seed: int) -> Tensor:
    """At most ``fanout`` entries of each row, drawn uniformly without replacement, and the diagonal always.

    The numbers are hashes of seed, row and position: one seed gives every row the same draw, whatever rows are asked
    for with it and in what order.
    """
    found = _sample(pattern.crow.cpu().numpy(), pattern.col.cpu().numpy(), rows.cpu().numpy(), fanout, np.uint64(seed))
    return torch.from_numpy(found).to(rows.device)


@njit(cache=True)
def _sample(crow: np.ndarray, col: np.ndarray, rows: np.ndarray, fanout: int, seed: np.uint64) -> np.ndarray:
    total = 0
    for row in rows:
        total += min(crow[row + 1] - crow[row], fanout + 1)
    found = np.empty(total, np.int64)
    drawn = np.empty(fanout, np.int64)
    size = 0
    for row in rows:
        start, end = crow[row], crow[row + 1]
        own = start + np.searchsorted(col[start:end], row)
        has_own = own < end and col[own] == row
        others = end - start - has_own
        if others <= fanout:
            for entry in range(start, end):
                found[size] = entry
                size += 1
            continue
        # Floyd: the last `fanout` positions take turns; one that draws a taken place takes its own instead
        state = _mix(_mix(seed) ^ np.uint64(row))
        for i in range(fanout):
            last = others - fanout + i
            state += _GOLDEN
            draw = np.int64(_mix(state) % np.uint64(last + 1))
            for j in range(i):
                if drawn[j] == draw:
                    draw = last
                    break
            drawn[i] = draw
        first = size
        for draw in drawn:
            entry = start + draw
            found[size] = entry + 1 if has_own and entry >= own else entry
            size += 1
        if has_own:
            found[size] = own
            size += 1
        found[first:size].sort()
    return found[:size]


@njit(cache=True)
def _mix(value: np.uint64) -> np.uint64:
    """splitmix64: a hash whose bits are as good as random."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
