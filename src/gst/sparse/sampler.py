"""The entries that a mini-batch reads of its rows: all, or a random sample of each row."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.sparse.csr import Pattern

Draw = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]  # the signature of draw_entries
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_entries(pattern: Pattern, rows: Tensor) -> Tensor:
    """The entries of these rows, row after row; O(their number), however large the pattern."""
    start, end = pattern.crow[rows], pattern.crow[rows + 1]
    count = end - start
    first = count.cumsum(0) - count
    position = torch.arange(int(count.sum()), device=rows.device)
    return position + torch.repeat_interleave(start - first, count)


def draw_entries(start: np.ndarray, rows: np.ndarray, fanout: int, seed: int) -> np.ndarray:
    """At most ``fanout`` entries of each row, drawn uniformly without replacement; ascending in each row.

    ``start``: where each row begins. The random numbers are hashes of seed, row and position: a seed gives a row the
    same draw whatever other rows are requested with it and in whatever order.
    """
    return _draw(start, rows, fanout, np.uint64(seed))


@njit(cache=True)
def _draw(start: np.ndarray, rows: np.ndarray, fanout: int, seed: np.uint64) -> np.ndarray:
    total = 0
    for row in rows:
        total += min(start[row + 1] - start[row], fanout)
    drawn = np.empty(total, np.int64)
    size = 0
    for row in rows:
        first, degree = start[row], start[row + 1] - start[row]
        if degree <= fanout:
            for entry in range(first, first + degree):
                drawn[size] = entry
                size += 1
            continue
        # Floyd: each of the last `fanout` positions draws one up to itself, or takes itself if that one is taken
        state = mix(mix(seed) ^ np.uint64(row))
        begin = size
        for i in range(fanout):
            last = degree - fanout + i
            state += _GOLDEN
            entry = first + np.int64(mix(state) % np.uint64(last + 1))
            for j in range(begin, size):
                if drawn[j] == entry:
                    entry = first + last
                    break
            drawn[size] = entry
            size += 1
        drawn[begin:size].sort()
    return drawn


@njit(cache=True)
def mix(value: np.uint64) -> np.uint64:
    """splitmix64: a hash whose bits behave like random ones."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
