"""Features, labels and splits of nodes from files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch

from gst.base.errors import InputError
from gst.base.memory import check_claim
from gst.base.optional import Later
from gst.base.text import shown
from gst.data.node_names import Nodes, as_nodes
from gst.data.splits import Masks
from gst.data.tables import TABLES, is_sparse_archive, read_array, read_npz, read_sparse, read_table, require_kind

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Later("pandas", "reading tables")

ARRAYS = (".npy", ".npz")
NODE_NAMES = (
    "node",
    "node_id",
    "nodeid",
    "id",
    "unnamed: 0",
)  # the last is how pandas reads back an index that it wrote
MISSING = ("", "-1", "nan", "none")
PARTS = {"train": 0, "training": 0, "0": 0, "val": 1, "valid": 1, "validation": 1, "1": 1, "test": 2, "2": 2}


def read_features(path: Path) -> np.ndarray | sp.csr_array:
    """Float32 [N, F] from an array, a table, or a scipy sparse matrix, which stays sparse."""
    return read_nodes(path)[0]


def read_nodes(path: Path) -> tuple[np.ndarray | sp.csr_array, Nodes]:
    """Features, and the nodes that a column ``node`` or ``id`` of their table names; numbers 0 … order the rows."""
    kind = require_kind(path, "features", (*ARRAYS, *TABLES))
    if kind in ARRAYS:
        array = read_sparse(path) if kind == ".npz" and is_sparse_archive(path) else read_array(path)
        if array.ndim != 2 or array.dtype.kind not in "biuf" or 0 in array.shape:
            raise InputError(
                f"{path} has shape {array.shape} of {array.dtype}: features are numbers, [nodes, features]"
            )
        if not isinstance(array, np.ndarray):
            return array.astype(np.float32), Nodes(array.shape[0])
        check_claim(path, 4 * math.prod(int(size) for size in array.shape))
        return np.array(array, dtype=np.float32), Nodes(len(array))  # a copy: it may be a read-only map of the file
    return table_features(read_table(path, names=NODE_NAMES), path)


def table_features(table: pd.DataFrame, path: object) -> tuple[np.ndarray, Nodes]:
    """The same from a table whose columns have names in lower case."""
    column, nodes = _node_column(table), Nodes(len(table))
    if column is not None:
        ids, table = _pop(table, column)
        nodes = Nodes.named(ids, path)
        if nodes.names is None:
            table = table.iloc[np.argsort(nodes.numbers([ids], path)[0])]
    text = [
        name
        for name, dtype in zip(table.columns, table.dtypes, strict=True)
        if not pd.api.types.is_numeric_dtype(dtype)
    ]
    if text or table.empty:
        problem = f"the column {text[0]!r} holds text" if text else "it holds no values"
        raise InputError(f"{path} is no feature table: {problem}; features are columns of numbers, one row per node")
    return np.ascontiguousarray(table.to_numpy(np.float32, copy=True, na_value=np.nan)), nodes


def read_labels(path: Path, nodes: int | Nodes) -> np.ndarray:
    """Int64 [N], −1 where unlabelled; text labels are numbered in sorted order."""
    return as_labels(read_node_values(path, nodes, "labels"), path)


def as_labels(values: np.ndarray, path: object) -> np.ndarray:
    """Int64 [N] from floats or texts, one per node."""
    nodes = len(values)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
        bad = (values < -1) | (values >= nodes) | (np.floor(values) != values)
        if bad.any():
            node = int(bad.argmax())
            raise InputError(
                f"{path}: node {node} has label {values[node]:g}: labels are 0, 1, … below {nodes}, −1 for none"
            )
        return values.astype(np.int64)
    missing = np.isin(np.char.lower(values), MISSING)
    labels = np.full(nodes, -1)
    labels[~missing] = np.unique(values[~missing], return_inverse=True)[1]
    return labels


def read_split(path: Path, nodes: int | Nodes) -> Masks:
    """Masks from one value per node (train, val, test or 0, 1, 2), or from arrays train, val and test in ``.npz``."""
    if require_kind(path, "split", (*ARRAYS, *TABLES)) == ".npz":
        arrays = read_npz(path)
        return Masks(*(torch.from_numpy(_part(arrays, part, path, nodes)) for part in ("train", "val", "test")))
    values = read_node_values(path, nodes, "split")
    if values.dtype.kind == "f":
        names = np.array(["" if np.isnan(value) else f"{value:g}" for value in values])
    else:
        names = np.char.lower(np.char.strip(values))
    unknown = ~np.isin(names, (*PARTS, *MISSING))
    if unknown.any():
        node = int(unknown.argmax())
        raise InputError(
            f"{path}: node {node} is in part {shown(values[node])}: write train, val or test, or 0, 1 or 2"
        )
    parts = np.array([PARTS.get(name, -1) for name in names])
    return Masks(*(torch.from_numpy(parts == part) for part in range(3)))


def read_node_values(path: Path, nodes: int | Nodes, what: str) -> np.ndarray:
    """One value per node, as floats (NaN where missing) or as text (empty where missing)."""
    if require_kind(path, what, (*ARRAYS, *TABLES)) in ARRAYS:
        array = read_array(path)
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        if array.ndim != 1 or array.dtype.kind not in "biufU":
            needed = f"{what} are one value per node, [{as_nodes(nodes).count}]"
            raise InputError(f"{path} has shape {array.shape} of {array.dtype}: {needed}")
        _require_rows(path, array.shape[0], as_nodes(nodes).count, what)
        return np.array(array, dtype=np.str_ if array.dtype.kind == "U" else np.float64)
    return table_values(read_table(path, rows=as_nodes(nodes).count, names=NODE_NAMES), path, nodes, what)


def table_values(table: pd.DataFrame, path: object, known: int | Nodes, what: str) -> np.ndarray:
    """The same from a table whose columns have names in lower case."""
    column, nodes = _node_column(table), as_nodes(known).count
    if column is None and table.shape[1] == 2:
        column = 0
    if table.shape[1] != (1 if column is None else 2):
        raise InputError(f"{path} has {table.shape[1]} columns: {what} are one column, or two: node and value")
    if column is None:
        _require_rows(path, len(table), nodes, what)
        return _plain(table.iloc[:, 0], path)
    ids, table = _pop(table, column)
    rows = _unique_ids(ids, path, as_nodes(known))
    values = _plain(table.iloc[:, 0], path)
    out = np.full(nodes, np.nan) if values.dtype.kind == "f" else np.full(nodes, "", dtype=values.dtype)
    out[rows] = values
    return out


def _plain(column: pd.Series, path: object) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    texts = ["" if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]
    if isinstance(path, Path):
        check_claim(path, 4 * len(texts) * max(map(len, texts), default=0))  # numpy stores each as long as the longest
    return np.array(texts)


def _node_column(table: pd.DataFrame) -> int | None:
    """The position of the column of node numbers, if one has such a name and is not the only column."""
    names = list(table.columns)
    return next((names.index(name) for name in NODE_NAMES if name in names and len(names) > 1), None)


def _pop(table: pd.DataFrame, column: int) -> tuple[pd.Series, pd.DataFrame]:
    """A column, by position since names may repeat, and the table without it."""
    return table.iloc[:, column], table.iloc[:, [i for i in range(table.shape[1]) if i != column]]


def _unique_ids(column: pd.Series, path: object, nodes: Nodes) -> np.ndarray:
    (ids,) = nodes.numbers([column], path)
    repeated = pd.Series(ids).duplicated()
    if repeated.any():
        row = int(repeated.to_numpy().argmax())
        raise InputError(f"{path}: row {row + 1} repeats node {shown(column.iloc[row])}: every node has one row")
    return ids


def _require_rows(path: object, rows: int, nodes: int, what: str) -> None:
    if rows != nodes:
        raise InputError(f"{path}: {what} for {rows} nodes, but the features have {nodes} rows")


def _part(arrays: dict[str, np.ndarray], part: str, path: Path, known: int | Nodes) -> np.ndarray:
    """The mask of one part, which is stored as a mask or as node numbers."""
    nodes = as_nodes(known).count
    aliases = [name for name, number in PARTS.items() if number == PARTS[part]]
    names = [name for name in arrays if name.lower().removesuffix("_mask").removesuffix("_idx") in aliases]
    if not names:
        raise InputError(f"{path} has arrays {', '.join(arrays)}: a split needs train, val and test")
    array = arrays[names[0]]
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise InputError(f"{path}: {names[0]} has shape {array.shape} of {array.dtype}: give a mask or node numbers")
    # zeros and ones, one per node, are a mask: as node numbers they would repeat
    if array.dtype.kind == "b" or (array.size == nodes > 2 and array.max() <= 1):
        _require_rows(path, array.size, nodes, f"{names[0]} is a mask")
        return array.astype(bool)
    mask = np.zeros(nodes, dtype=bool)
    mask[Nodes(nodes).numbers([array], path)[0]] = True
    return mask
