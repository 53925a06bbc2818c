"""Edge lists from files: ids, weights and attributes of every arc."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gst.base.callers import users_level
from gst.base.errors import DataWarning, InputError
from gst.base.optional import Later
from gst.base.text import shown
from gst.data.node_names import Nodes, as_nodes
from gst.data.tables import TABLES, read_array, read_table, require_kind

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Later("pandas", "reading tables")

SOURCES = ("source", "src", "from", "fromnodeid", "from_node_id", "u", "head", "node1")
TARGETS = ("target", "dst", "dest", "destination", "to", "tonodeid", "to_node_id", "v", "tail", "node2")
WEIGHTS = ("weight", "edge_weight")


TIMES = ("time", "timestamp", "date", "datetime", "created_at", "unix_time")

Instant = float | str | datetime | None


@dataclass(frozen=True)
class Period:
    """The rows of an edge list that count: from ``since`` on, and before ``until``; numbers, dates or both None."""

    since: Instant = None
    until: Instant = None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None


ALWAYS = Period()


def read_edges(path: Path, nodes: int | Nodes, period: Period = ALWAYS) -> dict[str, np.ndarray]:
    """``edge_index`` [2, E] of the nodes; ``edge_weight`` [E] and ``edge_attr`` [E, A] if any.

    Source and target are columns with one of the usual names, else the first two. A column ``weight`` or
    ``edge_weight`` becomes the weight, all other numeric columns become attributes; text is left out.
    """
    kind = require_kind(path, "edges", (*TABLES, ".npy"))
    if kind == ".npy":
        if period:
            raise InputError(f"{path} has no times: since and until need a table with a column time")
        return {"edge_index": array_edges(read_array(path), path, nodes)}
    table = read_table(path, comment="#", names=(*SOURCES, *TARGETS, *WEIGHTS))
    return table_edges(table, path, nodes, period)


def table_edges(
    table: pd.DataFrame, where: object, nodes: int | Nodes, period: Period = ALWAYS
) -> dict[str, np.ndarray]:
    """The same from a table whose columns have names in lower case."""
    if table.shape[1] < 2:
        raise InputError(f"{where} has one column: an edge list needs two, source and target")
    columns = [str(name) for name in table.columns]
    source, target, weight = (_position(columns, names) for names in (SOURCES, TARGETS, WEIGHTS))
    notes: list[str] = []
    if source is None or target is None:
        source, target = 0, 1
        if not all(name.isdigit() for name in columns[:2]):
            notes.append(
                f"its first line is taken for names: source is {shown(columns[0])}, target {shown(columns[1])}"
            )
    if period:
        table, note = _within(table, _position(columns, TIMES), period, where)
        notes.append(note)
    index = np.stack(as_nodes(nodes).numbers([table.iloc[:, source], table.iloc[:, target]], where))
    rest = [i for i in range(len(columns)) if i not in (source, target, weight) and not _is_empty(table.iloc[:, i])]
    others = [i for i in rest if _is_numeric(table.iloc[:, i])]
    if left_out := [shown(columns[i]) for i in rest if i not in others and columns[i] not in TIMES]:
        notes.append(f"columns of text are left out: {', '.join(left_out)}")
    say_notes(where, [*notes, *repetitions(index)])
    arcs = {"edge_index": index}
    if weight is not None:
        arcs["edge_weight"] = _weights(table.iloc[:, weight], where)
    if others:
        arcs["edge_attr"] = table.iloc[:, others].to_numpy(np.float32, copy=True, na_value=np.nan)
    return arcs


def repetitions(index: np.ndarray) -> list[str]:
    """What a user should know of repeated rows and self-loops."""
    source, target = index
    keys = np.sort(source * (int(index.max(initial=0)) + 1) + target)
    repeated, loops = int((keys[1:] == keys[:-1]).sum()), int((source == target).sum())
    notes = []
    if repeated:
        notes.append(f"{repeated:,} rows repeat an edge: they stay or go with it, and it counts once")
    if loops:
        notes.append(f"{loops:,} self-loops always stay and do not count")
    return notes


def say_notes(where: object, notes: Sequence[str]) -> None:
    """One :class:`DataWarning` for all notes on a table."""
    if notes:
        warnings.warn(f"{where}: {'; '.join(notes)}", DataWarning, stacklevel=users_level())


def _within(table: pd.DataFrame, column: int | None, period: Period, where: object) -> tuple[pd.DataFrame, str]:
    """The rows of a period, and how many that are."""
    if column is None:
        raise InputError(f"{where} has no column time: since and until need one, called {', '.join(TIMES)}")
    numeric = _is_numeric(table.iloc[:, column])
    times = _times(table.iloc[:, column], numeric)
    if times.isna().any():
        row = int(times.isna().to_numpy().argmax())
        raise InputError(
            f"{where}: row {row + 1} has time {shown(table.iloc[row, column])}: a number or a date is needed"
        )
    chosen = np.ones(len(table), dtype=bool)
    for bound, after in ((period.since, True), (period.until, False)):
        if bound is not None:
            limit = _times(pd.Series([bound]), numeric).iloc[0]
            if pd.isna(limit):
                kind = "a number, as in the file" if numeric else "a date such as 2024-01-31"
                raise InputError(f"{'since' if after else 'until'}={shown(bound)}: {kind} is needed")
            chosen &= (times >= limit if after else times < limit).to_numpy()
    if not chosen.any():
        raise InputError(f"{where}: no edge is in that period: times go from {times.min()} to {times.max()}")
    return table[chosen], f"{int(chosen.sum()):,} of {len(table):,} rows are in the period"


def _times(column: pd.Series, numeric: bool) -> pd.Series:
    """Numbers as they are, everything else as instants in UTC; NaN or NaT for what is neither."""
    if numeric:
        return pd.to_numeric(column, errors="coerce")
    return pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")


def array_edges(array: np.ndarray, path: object, nodes: int | Nodes) -> np.ndarray:
    """[2, E] from an array of numbers of nodes, [2, E] or [E, 2]."""
    if array.ndim != 2 or 2 not in array.shape or array.dtype.kind not in "iuf":
        raise InputError(f"{path} has shape {array.shape} of {array.dtype}: edges are whole numbers, [2, E] or [E, 2]")
    source, target = array if array.shape[0] == 2 else array.T
    index = np.stack(as_nodes(nodes).numbers([source, target], path))
    say_notes(path, repetitions(index))
    return index


def _position(columns: list[str], names: tuple[str, ...]) -> int | None:
    return next((columns.index(name) for name in names if name in columns), None)


def _is_numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


def _is_empty(column: pd.Series) -> bool:
    """Whether the column has no value at all, as a separator at the end of every line would make it."""
    return bool(len(column) and column.isna().all())


def _weights(column: pd.Series, path: object) -> np.ndarray:
    if not _is_numeric(column):
        raise InputError(f"{path}: the column {column.name!r} holds text: edge weights are numbers")
    return column.to_numpy(np.float32, copy=True, na_value=np.nan)
