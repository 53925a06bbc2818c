"""Numbers the edges of an ``edge_index`` by counting sorts: O(N + columns), without the log factor of comparisons."""

import numpy as np

from gst.base.errors import InputError
from gst.base.jit import njit

LOOP = -1  # the edge id of a column that is a self-loop


def number_edges(edge_index: np.ndarray, num_nodes: int, by_arcs: bool = False) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether edges are arcs; the edges [2, E], sorted by (u, v); the edge of every column.

    Edges are arcs if some arc has no opposite, and wherever ``by_arcs`` asks for it.

    >>> number_edges(np.array([[2, 1, 0, 1], [1, 2, 0, 2]]), num_nodes=3)
    (False, array([[1],
           [2]]), array([ 0,  0, -1,  0]))
    """
    source, target = np.ascontiguousarray(edge_index, dtype=np.int64)
    size = source.size
    if size and not 0 <= edge_index.min() <= edge_index.max() < num_nodes:  # the kernels would write out of bounds
        raise InputError(f"edge_index names nodes outside 0 … {num_nodes - 1}")
    rows = np.empty((size, 2), np.int32 if max(size, num_nodes) < 2**31 else np.int64)
    start = _rows(source, target, num_nodes, rows)

    column_edge = np.full(size, LOOP, np.int64)
    directed = by_arcs
    if not directed:
        pairs = np.empty((2, size // 2), np.int64)
        count = _number_pairs(start, rows, pairs, column_edge)
        directed = count < 0
    if directed:
        pairs = np.empty((2, size), np.int64)
        count = _number_arcs(start, rows, pairs, column_edge)
    return directed, np.ascontiguousarray(pairs[:, :count]), column_edge


@njit(cache=True)
def _ascending(source: np.ndarray, target: np.ndarray) -> bool:
    """Whether the columns are sorted by source, then target, as those of most data sets are."""
    for i in range(1, source.size):
        if source[i] < source[i - 1] or (source[i] == source[i - 1] and target[i] < target[i - 1]):
            return False
    return True


@njit(cache=True)
def _start(key: np.ndarray, size: int) -> np.ndarray:
    """Where each of the values 0 … size − 1 starts once ``key`` is sorted, and the end of the last."""
    start = np.zeros(size + 1, np.int64)
    for value in key:
        start[value + 1] += 1
    for value in range(size):
        start[value + 1] += start[value]
    return start


@njit(cache=True)
def _rows(source: np.ndarray, target: np.ndarray, nodes: int, rows: np.ndarray) -> np.ndarray:
    """Fills ``rows`` with (target, column) of all columns, sorted by source, then target; returns where sources start.

    A counting sort by target, then a stable one by source. Both numbers of a row are adjacent in memory, since rows are
    written in random order.
    """
    start = _start(source, nodes)
    if _ascending(source, target):
        for i in range(target.size):
            rows[i, 0], rows[i, 1] = target[i], i
        return start

    by_target, free = np.empty_like(rows), _start(target, nodes)
    for i in range(target.size):
        slot = free[target[i]]
        free[target[i]] += 1
        by_target[slot, 0], by_target[slot, 1] = source[i], i
    low, next_free = 0, start.copy()
    for node in range(nodes):
        for i in range(low, free[node]):  # by now free[node] is the end of the columns with this target
            slot = next_free[by_target[i, 0]]
            next_free[by_target[i, 0]] += 1
            rows[slot, 0], rows[slot, 1] = node, by_target[i, 1]
        low = free[node]
    return start


@njit(cache=True)
def _number_pairs(start: np.ndarray, rows: np.ndarray, pairs: np.ndarray, column_edge: np.ndarray) -> int:
    """Numbers the pairs; returns how many there are, or −1 as soon as an arc has no opposite.

    Every pair is met first at its lower end u, which records (u, edge) for v. Since the u ascend, v later finds these
    records in the order of its row.
    """
    count = 0
    records = np.empty_like(rows)
    free = np.empty((start.size - 1, 2), rows.dtype)  # of v: the next free slot of ``records``, and the end of its row
    for v in range(start.size - 1):  # slices would take numba seconds to compile
        free[v, 0], free[v, 1] = start[v], start[v + 1]
    for u in range(start.size - 1):
        i, end = start[u], start[u + 1]
        for record in records[i : free[u, 0]]:
            if i == end or rows[i, 0] != record[0]:
                return -1
            while i < end and rows[i, 0] == record[0]:
                column_edge[rows[i, 1]] = record[1]
                i += 1
        while i < end and rows[i, 0] == u:
            i += 1
        while i < end:
            v = rows[i, 0]
            slot = free[v, 0]
            if v < u or slot == free[v, 1]:
                return -1
            records[slot, 0], records[slot, 1] = u, count
            free[v, 0] += 1
            pairs[0, count], pairs[1, count] = u, v
            while i < end and rows[i, 0] == v:
                column_edge[rows[i, 1]] = count
                i += 1
            count += 1
    return count


@njit(cache=True)
def _number_arcs(start: np.ndarray, rows: np.ndarray, pairs: np.ndarray, column_edge: np.ndarray) -> int:
    """Numbers the distinct arcs; returns how many there are."""
    count = 0
    for u in range(start.size - 1):
        last = u
        for i in range(start[u], start[u + 1]):
            v = rows[i, 0]
            if v == u:
                continue
            if v != last:
                pairs[0, count], pairs[1, count] = u, v
                count += 1
                last = v
            column_edge[rows[i, 1]] = count - 1
    return count


@njit(cache=True)
def kept_pairs(pairs: np.ndarray, keep_mask: np.ndarray) -> np.ndarray:
    """The columns of ``pairs`` that are kept."""
    kept = np.empty((2, keep_mask.sum()), np.int64)
    for end in range(2):
        count = 0
        for e in range(keep_mask.size):
            if keep_mask[e]:
                kept[end, count] = pairs[end, e]
                count += 1
    return kept


def kept_columns(keep_mask: np.ndarray, columns: np.ndarray, column_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of kept edges and of self-loops, and their edges, renumbered among the kept ones."""
    column, edge = np.empty(column_edge.size, np.int64), np.empty(column_edge.size, np.int64)
    size = _kept_columns(keep_mask, columns, column_edge, column, edge)
    column.resize(size, refcheck=False)  # in place: pages that were never written take no memory
    edge.resize(size, refcheck=False)
    return column, edge


@njit(cache=True)
def _kept_columns(
    keep_mask: np.ndarray, columns: np.ndarray, column_edge: np.ndarray, column: np.ndarray, edge: np.ndarray
) -> int:
    """Fills ``column`` and ``edge``; returns their size. The new id of an edge is the number of kept edges below it.

    One bit per edge and one count per 64 edges fit into the processor's caches, where one number per edge would not.
    There is no branch on the mask: half of the predictions would be wrong.
    """
    table = np.zeros((keep_mask.size // 64 + 1, 2), np.uint64)  # bits, and the number of kept edges below them
    count, size = 0, 0
    for e in range(keep_mask.size):
        if e % 64 == 0:
            table[e // 64, 1] = count
        table[e // 64, 0] |= np.uint64(keep_mask[e]) << np.uint64(e % 64)
        count += keep_mask[e]
    for c in range(column_edge.size):
        e = column_edge[c]
        column[size] = columns[c]
        if e == LOOP:
            edge[size] = LOOP
            size += 1
        else:
            word, bit = table[e >> 6, 0], np.uint64(e & 63)
            edge[size] = np.int64(table[e >> 6, 1]) + _popcount(word & ((np.uint64(1) << bit) - np.uint64(1)))
            size += int((word >> bit) & np.uint64(1))
    return size


@njit(cache=True)
def _popcount(word: np.uint64) -> int:
    """The number of set bits, summed in fields of 2, 4 and 8 bits."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
