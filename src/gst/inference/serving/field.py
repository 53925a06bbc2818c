"""The receptive field of some nodes: what their answers depend on, layer by layer."""

import numpy as np

from gst.base.jit import njit
from gst.inference.serving.arrays import Rows


@njit(nogil=True, cache=True)
def receptive_field(
    nodes: np.ndarray, arcs: Rows, depth: int, mark: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Position of each of ``nodes``; the nodes of the field in the order of their discovery; and a CSR matrix of it.

    The first ``sizes[k]`` nodes are those within k arcs of ``nodes``. A layer whose outputs are needed within k arcs
    reads those within k + 1, so every layer uses the first rows of one matrix.

    ``mark``: scratch space, −1 for every node, before and after.
    """
    weighted = arcs.value.size > 0
    position = np.empty(nodes.size, np.int64)
    order = np.empty(nodes.size, np.int64)
    sizes = np.empty(depth + 1, np.int64)
    found = 0
    for k in range(nodes.size):
        node = nodes[k]
        if mark[node] < 0:
            mark[node] = found
            order[found] = node
            found += 1
        position[k] = mark[node]
    sizes[0] = found
    start = np.zeros(found + 1, np.int64)
    column = np.empty(0, np.int32)
    weight = np.empty(0, np.float32)
    used, done = 0, 0
    for level in range(depth):
        entries = 0
        for r in range(done, found):
            entries += arcs.size[order[r]]
        column = _longer(column, used, used + entries)
        if weighted:
            weight = _longer(weight, used, used + entries)
        order = _longer(order, found, min(found + entries, mark.size))
        end = found
        start = _longer(start, done + 1, end + 1)
        for r in range(done, end):
            node = order[r]
            first = arcs.start[node]
            moved = first < 0
            if moved:
                first = -1 - first
            for k in range(first, first + arcs.size[node]):
                source = arcs.more_column[k] if moved else arcs.column[k]
                if mark[source] < 0:
                    mark[source] = found
                    order[found] = source
                    found += 1
                column[used] = mark[source]
                if weighted:
                    weight[used] = arcs.more_value[k] if moved else arcs.value[k]
                used += 1
            start[r + 1] = used
        done = end
        sizes[level + 1] = found
    for r in range(found):
        mark[order[r]] = -1
    return position, order[:found], sizes, start, column, weight


@njit(nogil=True, cache=True)
def count_stored(order: np.ndarray, rows: Rows) -> int:
    """Entries in the rows of these nodes."""
    total = 0
    for node in order:
        total += rows.size[node]
    return total


@njit(nogil=True, cache=True)
def _longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    result = np.empty(size, array.dtype)
    result[:used] = array[:used]
    return result
