"""Rows from wherever they are: a store of ``gst bench``, a CSV file, a folder of either."""

import csv
import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gst.bench.rows import COLUMNS, Row, read_csv
from gst.errors import InputError

_NEEDED = COLUMNS[:8]  # what names a run
_MAGIC = b"SQLite format 3\0"
_STORES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True)
class Loaded:
    """Rows and where they came from."""

    rows: list[Row]
    sources: list[str]  # names of the files read
    skipped: list[str]  # CSV files of a folder that hold something else


def load_rows(path: Path) -> Loaded:
    """All rows at this place, each run of an experiment once; where it failed and was done again, the one done."""
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix == ".csv" or f.suffix in _STORES)
    elif path.is_file():
        files = [path]
    else:
        raise InputError(f"{path} is not there: a store of gst bench, a CSV file or a folder of them is needed")
    rows: dict[object, Row] = {}
    read, skipped = [], []
    for file in files:
        if path.is_dir() and not _is_store(file) and not _is_record(file):
            skipped.append(file.name)
            continue
        read.append(file.name)
        for row in map(_finite, _read(file)):
            name = (row.experiment, row.profile, row.key) if row.key else (file.name, len(rows))
            if name not in rows or rows[name].status != "done":
                rows[name] = row
    if not rows:
        raise InputError(f"{path} holds no rows of gst bench")
    return Loaded(list(rows.values()), read, skipped)


def _read(file: Path) -> list[Row]:
    return _read_store(file) if _is_store(file) else read_csv(file)


def _is_store(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


def _is_record(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace", newline="") as stream:
        return set(_NEEDED) <= set(next(csv.reader(stream), []))


def _read_store(file: Path) -> list[Row]:
    """The rows of the table whose columns are those of a row; nothing is written, whoever else has the file open."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as store:
            store.row_factory = sqlite3.Row
            for (table,) in store.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            ).fetchall():
                quoted = '"' + table.replace('"', '""') + '"'
                columns = {column["name"] for column in store.execute(f"PRAGMA table_info({quoted})")}
                if set(_NEEDED) <= columns:
                    return [Row.from_words(dict(found)) for found in store.execute(f"SELECT * FROM {quoted}")]
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise InputError(f"{file} is no store of gst bench: {error}") from None
    raise InputError(f"{file} is no store of gst bench: no table has the columns of a row")


def _finite(row: Row) -> Row:
    """A number that is none was not measured, nor was a fact that is no table of facts."""
    bad = [n for n, value in vars(row).items() if isinstance(value, float) and not math.isfinite(value)]
    if {"sparsity", "seed"} & set(bad):
        raise InputError(f"a row of {row.dataset!r} has sparsity {row.sparsity}: a finite number is needed")
    empty: dict[str, Any] = dict.fromkeys(bad)
    if not isinstance(row.facts, dict):
        empty["facts"] = {}
    return replace(row, **empty) if empty else row
