"""Which entries of its rows a mini-batch reads: all, or a few of each drawn at random."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.sparse.csr import Pattern

Draw = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]  # as draw_entries
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_entries(pattern: Pattern, rows: Tensor) -> Tensor:
    """The entries of these rows, row after row; O(entries found), however large the pattern."""
    start, end = pattern.crow[rows], pattern.crow[rows + 1]
    count = end - start
    first = count.cumsum(0) - count
    place = torch.arange(int(count.sum()), device=rows.device)
    return place + torch.repeat_interleave(start - first, count)


def draw_entries(start: np.ndarray, rows: np.ndarray, fanout: int, seed: int) -> np.ndarray:
    """At most ``fanout`` entries of each row, drawn uniformly without replacement; ascending in each row.

    ``start`` says where each row begins. The numbers are hashes of seed, row and position: one seed gives every row the
    same draw, whatever rows are asked for with it and in what order.
    """
    return _draw(start, rows, fanout, np.uint64(seed))


@njit(cache=True)
def _draw(start: np.ndarray, rows: np.ndarray, fanout: int, seed: np.uint64) -> np.ndarray:
    total = 0
    for row in rows:
        total += min(start[row + 1] - start[row], fanout)
    found = np.empty(total, np.int64)
    size = 0
    for row in rows:
        first, others = start[row], start[row + 1] - start[row]
        if others <= fanout:
            for entry in range(first, first + others):
                found[size] = entry
                size += 1
            continue
        # Floyd: the last `fanout` positions take turns; one that draws a taken place takes its own instead
        state = mix(mix(seed) ^ np.uint64(row))
        begin = size
        for i in range(fanout):
            last = others - fanout + i
            state += _GOLDEN
            entry = first + np.int64(mix(state) % np.uint64(last + 1))
            for j in range(begin, size):
                if found[j] == entry:
                    entry = first + last
                    break
            found[size] = entry
            size += 1
        found[begin:size].sort()
    return found


@njit(cache=True)
def mix(value: np.uint64) -> np.uint64:
    """splitmix64: a hash whose bits are as good as random."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
