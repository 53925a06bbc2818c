"""Reads rows from a store of ``gst bench``, a CSV file, or a folder of both."""

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
    """Rows and the files they came from."""

    rows: list[Row]
    sources: list[str]  # names of the files read
    skipped: list[str]  # CSV files of the folder that hold something else


def load_rows(path: Path) -> Loaded:
    """All rows of a file or folder, each run of an experiment once; a finished row replaces a failed one."""
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix == ".csv" or f.suffix in _STORES)
    elif path.exists():
        files = [path]
    else:
        raise InputError(f"{path} does not exist: a store of gst bench, a CSV file or a folder of them is needed")
    rows: dict[object, Row] = {}
    read, skipped = [], []
    for file in files:
        if path.is_dir() and not _is_store(file) and not is_record(file):
            skipped.append(file.name)
            continue
        read.append(file.name)
        for row in map(_finite, _read(file)):
            run = (row.experiment, row.profile, row.key) if row.key else (file.name, len(rows))
            if run not in rows or rows[run].status != "done":
                rows[run] = row
    if not rows:
        raise InputError(f"{path} holds no rows of gst bench")
    return Loaded(list(rows.values()), read, skipped)


def separate_versions(rows: Iterable[Row]) -> list[Row]:
    """Rows of earlier versions of the code go into a separate profile, so that they are never mixed with others."""
    return [row if is_current(row.versions) else replace(row, profile=f"{row.profile}, earlier code") for row in rows]


def _read(file: Path) -> list[Row]:
    return read_store(file) if _is_store(file) else read_csv(file)


def _is_store(file: Path) -> bool:
    with open_regular(file) as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


def _finite(row: Row) -> Row:
    """NaN and infinity count as not measured, and so do facts that are not a mapping."""
    bad = [name for name, value in vars(row).items() if isinstance(value, float) and not math.isfinite(value)]
    if {"sparsity", "seed"} & set(bad):
        raise InputError(f"a row of {row.dataset!r} has sparsity {row.sparsity}: a finite number is needed")
    empty: dict[str, Any] = dict.fromkeys(bad)
    if not isinstance(row.facts, dict):
        empty["facts"] = {}
    return replace(row, **empty) if empty else row
