"""The committed record: one CSV file per experiment, which sweeps start from and add to."""

from pathlib import Path

from gst.base.user_paths import check_file
from gst.lab.bench.rows import Row, read_csv, write_csv
from gst.storage import lock


def write_record(folder: Path, rows: list[Row]) -> list[Path]:
    """Adds rows to the files of their experiments, sorted by name; concurrent writers wait for each other.

    A finished row stays unless the new one of the same run has more columns measured.
    """
    paths = []
    with lock.Lock(folder, lock.RECORD, wait=True):
        for name in sorted({row.experiment for row in rows}):
            merged = {(row.profile, row.key): row for row in read_record(folder, name)}
            for row in rows:
                known = merged.get((row.profile, row.key))
                if row.experiment == name and (known is None or _completeness(row) > _completeness(known)):
                    merged[row.profile, row.key] = row
            paths.append(_path(folder, name))
            write_csv(paths[-1], sorted(merged.values(), key=_order))
    return paths


def read_record(folder: Path, name: str) -> list[Row]:
    """The rows of an experiment; refuses a file that cannot be extended without loss."""
    path = _path(folder, name)
    check_file(path)
    return read_csv(path, strict=True) if path.exists() else []


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.csv"


def _completeness(row: Row) -> tuple[bool, int]:
    return row.status == "done", sum(text != "" for text in row.texts().values())


def _order(row: Row) -> tuple[object, ...]:
    names = (row.profile, row.dataset, row.backbone, row.method, row.variation)
    return (*names, row.sparsity, row.seed, row.key)
