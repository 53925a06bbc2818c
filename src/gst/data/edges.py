"""Edge lists from files: ids, weights and attributes of every arc."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from gst.base.errors import InputError
from gst.base.text import shown
from gst.data.tables import TABLES, read_array, read_table, require_kind

SOURCES = ("source", "src", "from", "fromnodeid", "from_node_id", "u", "head", "node1")
TARGETS = ("target", "dst", "dest", "destination", "to", "tonodeid", "to_node_id", "v", "tail", "node2")
WEIGHTS = ("weight", "edge_weight")


def read_edges(path: Path, nodes: int) -> dict[str, np.ndarray]:
    """``edge_index`` [2, E] of nodes 0 … ``nodes`` − 1; ``edge_weight`` [E] and ``edge_attr`` [E, A] if any.

    Source and target are columns with one of the usual names, else the first two. A column ``weight`` or
    ``edge_weight`` becomes the weight, all other numeric columns become attributes; text is left out.
    """
    kind = require_kind(path, "edges", (*TABLES, ".npy"))
    if kind == ".npy":
        return {"edge_index": _from_array(read_array(path), path, nodes)}
    table = read_table(path, comment="#", names=(*SOURCES, *TARGETS, *WEIGHTS))
    if table.shape[1] < 2:
        raise InputError(f"{path} has one column: an edge list needs two, source and target")
    columns = [str(name) for name in table.columns]
    source, target = _position(columns, SOURCES), _position(columns, TARGETS)
    if source is None or target is None:
        source, target = 0, 1
    index = np.stack(node_ids([table.iloc[:, source], table.iloc[:, target]], path, nodes))
    weight = _position(columns, WEIGHTS)
    others = [i for i in range(len(columns)) if i not in (source, target, weight) and _holds_numbers(table.iloc[:, i])]
    arcs = {"edge_index": index}
    if weight is not None:
        arcs["edge_weight"] = _weights(table.iloc[:, weight], path)
    if others:
        arcs["edge_attr"] = table.iloc[:, others].to_numpy(np.float32, copy=True, na_value=np.nan)
    return arcs


def node_ids(columns: Sequence[pd.Series | np.ndarray], path: Path, nodes: int) -> list[np.ndarray]:
    """The columns as int64, every value in 0 … ``nodes`` − 1; an error names the first row with another value."""
    numbers = [_numbers(column) for column in columns]
    bad = [~((column >= 0) & (column < nodes) & (np.floor(column) == column)) for column in numbers]
    if any(column.any() for column in bad):
        row, column = min((int(rows.argmax()), i) for i, rows in enumerate(bad) if rows.any())
        value = pd.Series(columns[column]).iloc[row]
        valid = f"nodes are whole numbers from 0 to {nodes - 1}, rows of the features"
        raise InputError(f"{path}: row {row + 1} names node {shown(value)}: {valid}")
    return [column.astype(np.int64) for column in numbers]


def _numbers(column: pd.Series | np.ndarray) -> np.ndarray:
    """Integers unchanged, everything else as floats, NaN for what is no number; booleans are none."""
    values = pd.Series(column)
    if values.dtype.kind in "iu":
        return values.to_numpy()
    if values.dtype.kind == "b":
        return np.full(len(values), np.nan)
    return pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _from_array(array: np.ndarray, path: Path, nodes: int) -> np.ndarray:
    if array.ndim != 2 or 2 not in array.shape or array.dtype.kind not in "iuf":
        raise InputError(f"{path} has shape {array.shape} of {array.dtype}: edges are whole numbers, [2, E] or [E, 2]")
    source, target = array if array.shape[0] == 2 else array.T
    return np.stack(node_ids([source, target], path, nodes))


def _position(columns: list[str], names: tuple[str, ...]) -> int | None:
    return next((columns.index(name) for name in names if name in columns), None)


def _is_numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


def _holds_numbers(column: pd.Series) -> bool:
    """Whether the column is numeric and not empty, as a separator at the end of every line would make it."""
    return _is_numeric(column) and not (len(column) and column.isna().all())


def _weights(column: pd.Series, path: Path) -> np.ndarray:
    if not _is_numeric(column):
        raise InputError(f"{path}: the column {column.name!r} holds text: edge weights are numbers")
    return column.to_numpy(np.float32, copy=True, na_value=np.nan)
