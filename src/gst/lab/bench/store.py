"""The store: rows in one SQLite file, one transaction per run, each row with its checksum."""

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
_COMPANIONS = ("-wal", "-shm", "-journal")  # files that SQLite keeps next to a store
_PATIENCE = 60.0  # seconds to wait while another process writes
_ORDER = "experiment, profile, dataset, backbone, method, variation, sparsity, seed, key"


class Store:
    """Rows by experiment, profile and key. Write-ahead logging: a killed writer loses at most the current row."""

    def __init__(self, path: Path, patience: float = _PATIENCE) -> None:
        self.path = path
        with _one_line_errors(path):
            _check_files(path)
            if path.exists() and path.stat().st_size > 0:  # checked before anything is written
                with closing(_connect_read_only(path, patience)) as database:
                    _check_store(path, database)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=patience)
            try:
                self._database.execute("PRAGMA journal_mode=WAL")
                with self._database:
                    self._database.execute(
                        f"CREATE TABLE IF NOT EXISTS rows ({_LAYOUT}, PRIMARY KEY (experiment, profile, key))"
                    )
            except BaseException:
                self._database.close()
                raise

    def add(self, rows: Iterable[Row]) -> None:
        """Adds rows in one transaction. A finished run stays as it is; a failed one is replaced."""
        marks = ", ".join(f":{name}" for name in WRITTEN)
        update = ", ".join(f"{name} = excluded.{name}" for name in WRITTEN)
        statement = (
            f"INSERT INTO rows ({', '.join(WRITTEN)}) VALUES ({marks}) "
            f"ON CONFLICT DO UPDATE SET {update} WHERE rows.status != 'done'"
        )
        with _one_line_errors(self.path), self._database:
            self._database.executemany(statement, [_values(row) for row in rows])

    def rows(self, experiment: str | None = None, profile: str | None = None) -> list[Row]:
        """Rows sorted by name; of one experiment or profile if given."""
        filters = {"experiment": experiment, "profile": profile}
        with _one_line_errors(self.path):
            return _read(
                self.path, self._database, {name: value for name, value in filters.items() if value is not None}
            )

    def done(self, cells: dict[str, Cell]) -> set[str]:
        """The keys of the cells that need not run. Rows of other experiments are copied to the one that asks."""
        finished: dict[str, Row] = {}
        present: set[str] = set()
        for row in self.rows():
            if row.status == "done" and row.key in cells:
                finished[row.key] = row
                cell = cells[row.key]
                if (row.experiment, row.profile) == (cell.experiment, cell.profile):
                    present.add(row.key)
        others = {key: cells[key] for key in finished.keys() - present}
        self.add(replace(finished[key], experiment=c.experiment, profile=c.profile) for key, c in others.items())
        return set(finished)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_store(path: Path) -> list[Row]:
    """The rows of a store, read only, even while another process has it open."""
    with _one_line_errors(path):
        _check_files(path)
        with closing(_connect_read_only(path, _PATIENCE)) as database:
            _check_store(path, database)
            return _read(path, database, {})


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    """SQLite may notice at any step that a file is damaged, locked or full."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError, UnicodeError) as error:  # UnicodeError: a damaged column name
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"cannot use {path} as a store: {reason[:160]}") from None


def _check_files(path: Path) -> None:
    """Refuses a pipe in place of the store or of its companions: opening it would block for ever."""
    for file in (path, *(path.with_name(path.name + end) for end in _COMPANIONS)):
        if file.exists():
            require_regular(file)


def _connect_read_only(path: Path, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=patience, uri=True)


def _check_store(path: Path, database: sqlite3.Connection) -> None:
    """Refuses anything but one intact table with the columns of a row."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type != 'index'")]
    if tables and tables != ["rows"]:
        raise InputError(f"cannot use {path} as a store: it is another database; choose another --db")
    if tables and {line[1] for line in database.execute("PRAGMA table_info(rows)")} != set(WRITTEN):
        raise InputError(
            f"{path} was written by another version of gst: its columns differ; choose another --db, "
            "or have that version write its rows with --record and start --from there"
        )
    if (line := database.execute("PRAGMA integrity_check(1)").fetchone()) != ("ok",):
        raise InputError(f"cannot use {path} as a store: it is damaged ({shown(line[0], 120)})")


def _read(path: Path, database: sqlite3.Connection, filters: dict[str, str]) -> list[Row]:
    where = " AND ".join(f"{name} = :{name}" for name in filters) or "1"
    lines = database.execute(f"SELECT {', '.join(WRITTEN)} FROM rows WHERE {where} ORDER BY {_ORDER}", filters)
    rows = []
    for line in lines:
        values = {name: value for name, value in zip(WRITTEN, line, strict=True) if value is not None}
        rows.append(Row.from_sealed(values, f"{path}: the row of key {shown(values.get('key'))!r}"))
    return rows


def _values(row: Row) -> dict[str, Any]:
    """The values to store; SQLite has no NaN, so NaN becomes NULL."""
    nan = {name: None for name, value in vars(row).items() if isinstance(value, float) and math.isnan(value)}
    row = replace(row, **nan) if nan else row  # type: ignore[arg-type]
    texts = row.sealed()
    return {**vars(row), "facts": texts["facts"], CHECKSUM: texts[CHECKSUM]}
