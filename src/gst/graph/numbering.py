"""Edges of an ``edge_index``, numbered by counting sorts: O(N + columns) where comparisons would take a log more."""

import numpy as np

from gst.base.errors import InputError
from gst.base.jit import njit

LOOP = -1  # the edge id of a column that is a self-loop


def number_edges(edge_index: np.ndarray, num_nodes: int) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether some arc has no opposite; the edges [2, E], sorted by (u, v); and the edge of every column.

    >>> number_edges(np.array([[2, 1, 0, 1], [1, 2, 0, 2]]), num_nodes=3)
    (False, array([[1],
           [2]]), array([ 0,  0, -1,  0]))
    """
    source, target = np.ascontiguousarray(edge_index, dtype=np.int64)
    size = source.size
    if size and not 0 <= edge_index.min() <= edge_index.max() < num_nodes:  # the kernels would write anywhere
        raise InputError(f"edge_index names nodes outside 0 … {num_nodes - 1}")
    rows = np.empty((size, 2), np.int32 if max(size, num_nodes) < 2**31 else np.int64)
    start = _rows(source, target, num_nodes, rows)

    column_edge = np.full(size, LOOP, np.int64)
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
    """Where each of the values 0 … size − 1 starts once ``key`` is sorted; last, where all end."""
    start = np.zeros(size + 1, np.int64)
    for value in key:
        start[value + 1] += 1
    for value in range(size):
        start[value + 1] += start[value]
    return start


@njit(cache=True)
def _rows(source: np.ndarray, target: np.ndarray, nodes: int, rows: np.ndarray) -> np.ndarray:
    """Fills ``rows`` with (target, column) of all columns, sorted by source, then target; returns where sources start.

    A counting sort by target, then one by source, which keeps the order of targets. Both numbers lie side by side,
    since they are written all over the place.
    """
    start = _start(source, nodes)
    if _ascending(source, target):
        for i in range(target.size):
            rows[i, 0], rows[i, 1] = target[i], i
        return start

    by_target, free = np.empty_like(rows), _start(target, nodes)
    for i in range(target.size):
        place = free[target[i]]
        free[target[i]] += 1
        by_target[place, 0], by_target[place, 1] = source[i], i
    low, next_free = 0, start.copy()
    for node in range(nodes):
        for i in range(low, free[node]):  # which is by now where the columns to the node end
            place = next_free[by_target[i, 0]]
            next_free[by_target[i, 0]] += 1
            rows[place, 0], rows[place, 1] = node, by_target[i, 1]
        low = free[node]
    return start


@njit(cache=True)
def _number_pairs(start: np.ndarray, rows: np.ndarray, pairs: np.ndarray, column_edge: np.ndarray) -> int:
    """The number of pairs, or −1 as soon as an arc has no opposite.

    Every pair is met at its lower end u first, which leaves (u, edge) with v. Since the u ascend, v then finds them in
    the order of its own row.
    """
    count = 0
    known = np.empty_like(rows)
    room = np.empty((start.size - 1, 2), rows.dtype)  # of v: where the next goes in ``known``, and where its row ends
    for v in range(start.size - 1):  # slices would take numba seconds to compile
        room[v, 0], room[v, 1] = start[v], start[v + 1]
    for u in range(start.size - 1):
        i, end = start[u], start[u + 1]
        for lower in known[i : room[u, 0]]:
            if i == end or rows[i, 0] != lower[0]:
                return -1
            while i < end and rows[i, 0] == lower[0]:
                column_edge[rows[i, 1]] = lower[1]
                i += 1
        while i < end and rows[i, 0] == u:
            i += 1
        while i < end:
            v = rows[i, 0]
            place = room[v, 0]
            if v < u or place == room[v, 1]:
                return -1
            known[place, 0], known[place, 1] = u, count
            room[v, 0] += 1
            pairs[0, count], pairs[1, count] = u, v
            while i < end and rows[i, 0] == v:
                column_edge[rows[i, 1]] = count
                i += 1
            count += 1
    return count


@njit(cache=True)
def _number_arcs(start: np.ndarray, rows: np.ndarray, pairs: np.ndarray, column_edge: np.ndarray) -> int:
    """The number of distinct arcs."""
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
def kept_pairs(pairs: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The columns of ``pairs`` that are kept."""
    found = np.empty((2, keep.sum()), np.int64)
    for end in range(2):
        count = 0
        for e in range(keep.size):
            if keep[e]:
                found[end, count] = pairs[end, e]
                count += 1
    return found


def kept_columns(keep: np.ndarray, columns: np.ndarray, column_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of kept edges and of self-loops, and their edges, numbered among those that are kept."""
    place, edge = np.empty(column_edge.size, np.int64), np.empty(column_edge.size, np.int64)
    size = _kept_columns(keep, columns, column_edge, place, edge)
    place.resize(size, refcheck=False)  # in place; what was never written was never there
    edge.resize(size, refcheck=False)
    return place, edge


@njit(cache=True)
def _kept_columns(
    keep: np.ndarray, columns: np.ndarray, column_edge: np.ndarray, place: np.ndarray, edge: np.ndarray
) -> int:
    """The number of an edge is that of the kept ones below it.

    A bit an edge and a count every 64 stay in the caches, where a number an edge would not. There is no branch on what
    is kept: half of the guesses would be wrong.
    """
    table = np.zeros((keep.size // 64 + 1, 2), np.uint64)  # bits, and how many are kept below them
    count, size = 0, 0
    for e in range(keep.size):
        if e % 64 == 0:
            table[e // 64, 1] = count
        table[e // 64, 0] |= np.uint64(keep[e]) << np.uint64(e % 64)
        count += keep[e]
    for c in range(column_edge.size):
        e = column_edge[c]
        place[size] = columns[c]
        if e == LOOP:
            edge[size] = LOOP
            size += 1
        else:
            word, bit = table[e >> 6, 0], np.uint64(e & 63)
            edge[size] = np.int64(table[e >> 6, 1]) + _ones(word & ((np.uint64(1) << bit) - np.uint64(1)))
            size += int((word >> bit) & np.uint64(1))
    return size


@njit(cache=True)
def _ones(word: np.uint64) -> int:
    """How many bits are set, added up in fields of 2, 4 and 8 bits."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
