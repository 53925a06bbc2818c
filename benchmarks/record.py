"""Rows of a benchmark's own CSV file. Each carries the versions of the code that made it, which tables tell apart."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gst.base.versions import is_current

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    """The rows of a file, none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def done(path: Path, key: Sequence[str]) -> set[tuple[str, ...]]:
    """The runs that today's code has made."""
    return {tuple(row[name] for name in key) for row in read(path) if is_current(row["versions"])}


def add(path: Path, key: Sequence[str], columns: Sequence[str], rows: Sequence[dict[str, Any]], digits: int) -> None:
    """Adds the rows of a run, in the place of those that earlier code has made of it; the old file or the new one."""
    words = [{name: _text(row.get(name), digits) for name in columns} for row in rows]
    new = {tuple(row[name] for name in key) for row in words}
    kept = [row for row in read(path) if is_current(row["versions"]) or tuple(row[name] for name in key) not in new]
    draft = path.with_suffix(".draft")
    with draft.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *words])
    os.replace(draft, path)  # noqa: PTH105


def age(row: Row) -> str:
    """What a table says beside a row."""
    return "" if is_current(row["versions"]) else "earlier code"


def _text(value: Any, digits: int) -> str:
    return "" if value is None else str(round(value, digits) if isinstance(value, float) else value)
