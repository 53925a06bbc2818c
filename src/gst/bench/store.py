"""The store: rows in one SQLite file, one transaction a run."""

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gst.bench.cells import Cell
from gst.bench.rows import COLUMNS, KINDS, Row
from gst.errors import InputError

_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT", dict: "TEXT"}
_LAYOUT = ", ".join(f"{name} {_TYPES[KINDS[name]]}" for name in COLUMNS)
_PATIENCE = 60.0  # seconds to wait while another process writes


class Store:
    """Rows by experiment, profile and key. Write-ahead logging: a killed writer loses at most the row at hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(path, timeout=_PATIENCE)
            self._base.execute("PRAGMA journal_mode=WAL")
            with self._base:
                self._base.execute(
                    f"CREATE TABLE IF NOT EXISTS rows ({_LAYOUT}, PRIMARY KEY (experiment, profile, key))"
                )
            have = {line[1] for line in self._base.execute("PRAGMA table_info(rows)")}
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"cannot use {path} as a store: {error}") from None
        if have != set(COLUMNS):
            raise InputError(f"{path} was written by another version of gst: its columns differ; choose another --db")

    def add(self, rows: Iterable[Row]) -> None:
        """All of them in one transaction. A run that is done stays as it is; a failed one gives way."""
        marks = ", ".join(f":{name}" for name in COLUMNS)
        update = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS)
        statement = (
            f"INSERT INTO rows ({', '.join(COLUMNS)}) VALUES ({marks}) "
            f"ON CONFLICT DO UPDATE SET {update} WHERE rows.status != 'done'"
        )
        with self._base:
            self._base.executemany(statement, [_plain(row) for row in rows])

    def rows(self, experiment: str | None = None, profile: str | None = None) -> list[Row]:
        """In the order of their names."""
        named = {"experiment": experiment, "profile": profile}
        given = {name: value for name, value in named.items() if value is not None}
        where = " AND ".join(f"{name} = :{name}" for name in given) or "1"
        order = "experiment, profile, dataset, backbone, method, recipe, variation, sparsity, seed, key"
        lines = self._base.execute(f"SELECT {', '.join(COLUMNS)} FROM rows WHERE {where} ORDER BY {order}", given)
        return [Row.from_words({n: v for n, v in zip(COLUMNS, line, strict=True) if v is not None}) for line in lines]

    def done(self, cells: dict[str, Cell]) -> set[str]:
        """The keys of those cells that need not run. What another experiment has done is taken over from there."""
        found: dict[str, Row] = {}
        own: set[str] = set()
        for row in self.rows():
            if row.status == "done" and row.key in cells:
                found[row.key] = row
                cell = cells[row.key]
                if (row.experiment, row.profile) == (cell.experiment, cell.profile):
                    own.add(row.key)
        others = {key: cells[key] for key in found.keys() - own}
        self.add(replace(found[key], experiment=c.experiment, profile=c.profile) for key, c in others.items())
        return set(found)

    def close(self) -> None:
        self._base.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _plain(row: Row) -> dict[str, Any]:
    words = row.words()
    return {name: words[name] if KINDS[name] is dict else value for name, value in asdict(row).items()}
