"""Rows from wherever they are: a store of ``gst bench``, a CSV file, a folder of either."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gst.base.errors import InputError
from gst.base.regular_files import open_regular
from gst.base.versions import is_current
from gst.lab.bench.rows import Row, is_record, read_csv
from gst.lab.bench.store import read_store

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
    elif path.exists():
        files = [path]
    else:
        raise InputError(f"{path} is not there: a store of gst bench, a CSV file or a folder of them is needed")
    rows: dict[object, Row] = {}
    read, skipped = [], []
    for file in files:
        if path.is_dir() and not _is_store(file) and not is_record(file):
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


def apart(rows: Iterable[Row]) -> list[Row]:
    """Rows of earlier versions of the code under a profile of their own: shown as such, never mixed with others."""
    return [row if is_current(row.versions) else replace(row, profile=f"{row.profile}, earlier code") for row in rows]


def _read(file: Path) -> list[Row]:
    return read_store(file) if _is_store(file) else read_csv(file)


def _is_store(file: Path) -> bool:
    with open_regular(file) as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


def _finite(row: Row) -> Row:
    """A number that is none was not measured, nor was a fact that is no table of facts."""
    bad = [n for n, value in vars(row).items() if isinstance(value, float) and not math.isfinite(value)]
    if {"sparsity", "seed"} & set(bad):
        raise InputError(f"a row of {row.dataset!r} has sparsity {row.sparsity}: a finite number is needed")
    empty: dict[str, Any] = dict.fromkeys(bad)
    if not isinstance(row.facts, dict):
        empty["facts"] = {}
    return replace(row, **empty) if empty else row
