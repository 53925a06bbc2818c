"""The committed record: CSV files, one an experiment, that sweeps begin from and add to."""

import csv
import sqlite3
from pathlib import Path

from gst.bench.rows import Row, read_csv, write_csv
from gst.bench.store import Store
from gst.errors import InputError


def read_rows(place: Path) -> list[Row]:
    """The rows of a store, of a CSV file, or of all CSV files of a folder that hold such rows."""
    if place.is_dir():
        return [row for path in sorted(place.glob("*.csv")) if _is_record(path) for row in read_csv(path)]
    if not place.is_file():
        raise InputError(f"there is no {place}: a store, a CSV file or a folder of them is needed")
    if place.suffix == ".csv":
        return read_csv(place)
    try:
        with Store(place) as store:
            return store.rows()
    except sqlite3.Error as error:
        raise InputError(f"{place} is no store of gst bench: {error}") from None


def write_record(folder: Path, rows: list[Row]) -> list[Path]:
    """Adds rows to the files of their experiments, in the order of their names.

    What is done there stays, unless the same run comes with more measured.
    """
    paths = []
    for name in sorted({row.experiment for row in rows}):
        path = folder / f"{name}.csv"
        merged = {(row.profile, row.key): row for row in (read_csv(path) if path.exists() else [])}
        for row in rows:
            known = merged.get((row.profile, row.key))
            if row.experiment == name and (known is None or _worth(row) > _worth(known)):
                merged[row.profile, row.key] = row
        write_csv(path, sorted(merged.values(), key=_order))
        paths.append(path)
    return paths


def _worth(row: Row) -> tuple[bool, int]:
    return row.status == "done", sum(word != "" for word in row.words().values())


def _order(row: Row) -> tuple[object, ...]:
    names = (row.profile, row.dataset, row.backbone, row.method, row.recipe, row.variation)
    return (*names, row.sparsity, row.seed, row.key)


def _is_record(path: Path) -> bool:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        return {"experiment", "key"} <= set(next(csv.reader(file), ()))
