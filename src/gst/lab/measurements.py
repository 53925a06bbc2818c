"""CSV tables of benchmarks whose rows are not those of ``gst bench``; every row says which code measured it."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gst.base.versions import is_current
from gst.lab.bench.rows import read_lines, write_lines

Row = dict[str, str]


class Measurements:
    """A file of measurements, one or more rows per run; an interrupted series of runs continues where it stopped.

    Args:
        path: the file, which need not exist.
        run: the columns that identify a run.
        columns: all columns; ``versions`` is one of them.
        digits: decimals of numbers.
    """

    def __init__(self, path: Path, run: Sequence[str], columns: Sequence[str], digits: int) -> None:
        self.path = path
        self.run = run
        self.columns = columns
        self.digits = digits

    def rows(self) -> list[Row]:
        """All rows; none if there is no file."""
        return list(csv.DictReader(read_lines(self.path))) if self.path.exists() else []

    def measure(
        self,
        run: Mapping[str, Any],
        versions: str,
        make: Callable[..., Iterable[Mapping[str, Any]]],
        *arguments: Any,
    ) -> bool:
        """Adds the rows of ``make(*arguments)`` and returns True, unless the current code has measured this run."""
        key = tuple(self._text(run[name]) for name in self.run)
        if any(self._key(row) == key and is_current(row["versions"]) for row in self.rows()):
            return False
        self._replace(key, [{**row, **run, "versions": versions} for row in make(*arguments)])
        return True

    def groups(self, columns: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
        """Rows by the values of these columns and, last, their :func:`age`."""
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows():
            groups.setdefault((*(row[name] for name in columns), age(row)), []).append(row)
        return groups

    def _replace(self, key: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes the rows of a run instead of those that earlier code has measured of it."""
        others = [row for row in self.rows() if is_current(row["versions"]) or self._key(row) != key]
        lines = [[row[name] for name in self.columns] for row in others]
        lines += [[self._text(row.get(name)) for name in self.columns] for row in rows]
        write_lines(self.path, [self.columns, *lines])

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(row[name] for name in self.run)

    def _text(self, value: Any) -> str:
        return "" if value is None else str(round(value, self.digits) if isinstance(value, float) else value)


def age(row: Row) -> str:
    """``"earlier code"``, or nothing for a row of the current code."""
    return "" if is_current(row["versions"]) else "earlier code"
