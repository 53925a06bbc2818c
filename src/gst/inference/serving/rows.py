"""Rows that can change: what an engine reads may be mapped from a file, what changes is kept beside it."""

import numpy as np

from gst.inference.serving.arrays import Rows

ROOM = 4  # least room of a row that has changed


def fixed(start: np.ndarray, index: np.ndarray, value: np.ndarray | None = None) -> Rows:
    """Rows of a CSR matrix, nothing of which is copied but the pointers; without values all are 1."""
    start = start.astype(np.int64)
    value = np.empty(0, np.float32) if value is None else value
    return Rows(start[:-1].copy(), np.diff(start), index, value, np.empty(0, np.int32), np.empty(0, np.float32))


def grown(array: np.ndarray, size: int, fill: float, axis: int = 0) -> np.ndarray:
    """An array with room for at least ``size``: the same one if it has, else a copy of at least twice its length."""
    if size <= array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, 2 * shape[axis])
    result = np.full(shape, fill, array.dtype)
    result[tuple(slice(length) for length in array.shape)] = array
    return result


class ChangingRows:
    """Rows of which single ones are replaced; ``rows`` are their arrays."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._room = np.zeros(0, np.int64)  # of each row in ``more``
        self._used = rows.more_column.size

    def reserve(self, nodes: int) -> None:
        """Room for this many rows; new ones are empty."""
        start, size = grown(self.rows.start, nodes, 0), grown(self.rows.size, nodes, 0)
        self.rows = self.rows._replace(start=start, size=size)

    def row(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of a row; no values if all are 1."""
        rows = self.rows
        first, size = int(rows.start[node]), int(rows.size[node])
        if first >= 0:
            return rows.column[first : first + size], rows.value[first : first + size]
        first = -1 - first
        return rows.more_column[first : first + size], rows.more_value[first : first + size]

    def replace(self, node: int, index: np.ndarray, value: np.ndarray | None = None) -> None:
        """Gives a row other columns and values."""
        rows, size = self.rows, index.size
        self._room = grown(self._room, rows.start.size, 0)
        if rows.start[node] >= 0 or self._room[node] < size:
            room = max(ROOM, size + size // 2)
            more_column = grown(rows.more_column, self._used + room, 0)
            more_value = rows.more_value if value is None else grown(rows.more_value, self._used + room, 0)
            self.rows = rows = rows._replace(more_column=more_column, more_value=more_value)
            rows.start[node] = -1 - self._used
            self._room[node] = room
            self._used += room
        first = -1 - int(rows.start[node])
        rows.size[node] = size
        rows.more_column[first : first + size] = index
        if value is not None:
            rows.more_value[first : first + size] = value

    def packed(self, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first rows as CSR: pointers, columns and values (none if all are 1)."""
        rows = self.rows
        start = np.concatenate([[0], np.cumsum(rows.size[:nodes])]).astype(np.int64)
        ids = np.repeat(np.arange(nodes), rows.size[:nodes])
        offset = np.arange(start[-1]) - start[ids]
        first = rows.start[ids]
        moved = first < 0
        position = np.where(moved, -1 - first, first) + offset
        index = np.empty(position.size, np.int32)
        index[~moved], index[moved] = rows.column[position[~moved]], rows.more_column[position[moved]]
        if not rows.value.size and not rows.more_value.size:
            return start, index, np.empty(0, np.float32)
        value = np.empty(position.size, np.float32)
        value[~moved], value[moved] = rows.value[position[~moved]], rows.more_value[position[moved]]
        return start, index, value
