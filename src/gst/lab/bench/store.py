"""The store: rows in one SQLite file, one transaction a run, each row with its checksum."""

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gst.base.errors import InputError
from gst.base.regular_files import require_regular
from gst.base.text import shown
from gst.lab.bench.cells import Cell
from gst.lab.bench.rows import CHECKSUM, KINDS, WRITTEN, Row

_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT", dict: "TEXT"}
_LAYOUT = ", ".join(f"{name} {_TYPES[KINDS.get(name, str)]}" for name in WRITTEN)
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps next to a store
_PATIENCE = 60.0  # seconds to wait while another process writes
_ORDER = "experiment, profile, dataset, backbone, method, recipe, variation, sparsity, seed, key"


class Store:
    """Rows by experiment, profile and key. Write-ahead logging: a killed writer loses at most the row at hand."""

    def __init__(self, path: Path, patience: float = _PATIENCE) -> None:
        self.path = path
        with _one_line(path):
            _check_files(path)
            if path.exists() and path.stat().st_size > 0:  # nothing is written before it is known to be a store
                with closing(_reader(path, patience)) as base:
                    _check_store(path, base)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(path, timeout=patience)
            try:
                self._base.execute("PRAGMA journal_mode=WAL")
                with self._base:
                    self._base.execute(
                        f"CREATE TABLE IF NOT EXISTS rows ({_LAYOUT}, PRIMARY KEY (experiment, profile, key))"
                    )
            except BaseException:
                self._base.close()
                raise

    def add(self, rows: Iterable[Row]) -> None:
        """All of them in one transaction. A run that is done stays as it is; a failed one gives way."""
        marks = ", ".join(f":{name}" for name in WRITTEN)
        update = ", ".join(f"{name} = excluded.{name}" for name in WRITTEN)
        statement = (
            f"INSERT INTO rows ({', '.join(WRITTEN)}) VALUES ({marks}) "
            f"ON CONFLICT DO UPDATE SET {update} WHERE rows.status != 'done'"
        )
        with _one_line(self.path), self._base:
            self._base.executemany(statement, [_plain(row) for row in rows])

    def rows(self, experiment: str | None = None, profile: str | None = None) -> list[Row]:
        """In the order of their names."""
        named = {"experiment": experiment, "profile": profile}
        given = {name: value for name, value in named.items() if value is not None}
        with _one_line(self.path):
            return _read(self.path, self._base, given)

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


def read_store(path: Path) -> list[Row]:
    """The rows of a store; nothing is written, whoever else has the file open."""
    with _one_line(path):
        _check_files(path)
        with closing(_reader(path, _PATIENCE)) as base:
            _check_store(path, base)
            return _read(path, base, {})


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """SQLite finds out about a damaged, locked or full file at any step."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError, UnicodeError) as error:  # the last over a broken name of a column
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"cannot use {path} as a store: {reason[:160]}") from None


def _check_files(path: Path) -> None:
    """A pipe in the place of a store, or of what SQLite keeps beside it, would block for ever."""
    for file in (path, *(path.with_name(path.name + end) for end in _BESIDE)):
        if file.exists():
            require_regular(file)


def _reader(path: Path, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=patience, uri=True)


def _check_store(path: Path, base: sqlite3.Connection) -> None:
    """One table, of the columns of a row, whose pages and index fit together."""
    tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type != 'index'")]
    if tables and tables != ["rows"]:
        raise InputError(f"cannot use {path} as a store: it is another database; choose another --db")
    if tables and {line[1] for line in base.execute("PRAGMA table_info(rows)")} != set(WRITTEN):
        raise InputError(
            f"{path} was written by another version of gst: its columns differ; choose another --db, "
            "or have that version write its rows with --record and begin --from there"
        )
    if (line := base.execute("PRAGMA integrity_check(1)").fetchone()) != ("ok",):
        raise InputError(f"cannot use {path} as a store: it is damaged ({shown(line[0], 120)})")


def _read(path: Path, base: sqlite3.Connection, given: dict[str, str]) -> list[Row]:
    where = " AND ".join(f"{name} = :{name}" for name in given) or "1"
    lines = base.execute(f"SELECT {', '.join(WRITTEN)} FROM rows WHERE {where} ORDER BY {_ORDER}", given)
    found = []
    for line in lines:
        words = {name: value for name, value in zip(WRITTEN, line, strict=True) if value is not None}
        found.append(Row.from_sealed(words, f"{path}: the row of key {shown(words.get('key'))!r}"))
    return found


def _plain(row: Row) -> dict[str, Any]:
    """Values as SQLite keeps them, which has no NaN."""
    none = {name: None for name, value in vars(row).items() if isinstance(value, float) and math.isnan(value)}
    row = replace(row, **none) if none else row  # type: ignore[arg-type]
    words = row.sealed()
    return {**vars(row), "facts": words["facts"], CHECKSUM: words[CHECKSUM]}
