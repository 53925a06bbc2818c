"""The committed record: CSV files, one an experiment, that sweeps begin from and add to."""

from pathlib import Path

from gst.base.user_paths import check_file
from gst.lab.bench.rows import Row, read_csv, write_csv
from gst.storage import lock


def write_record(folder: Path, rows: list[Row]) -> list[Path]:
    """Adds rows to the files of their experiments, in the order of their names, one process after the other.

    What is done there stays, unless the same run comes with more measured.
    """
    paths = []
    with lock.Lock(folder, lock.RECORD, wait=True):
        for name in sorted({row.experiment for row in rows}):
            merged = {(row.profile, row.key): row for row in read_record(folder, name)}
            for row in rows:
                known = merged.get((row.profile, row.key))
                if row.experiment == name and (known is None or _worth(row) > _worth(known)):
                    merged[row.profile, row.key] = row
            paths.append(_path(folder, name))
            write_csv(paths[-1], sorted(merged.values(), key=_order))
    return paths


def read_record(folder: Path, name: str) -> list[Row]:
    """The rows of an experiment; a file that cannot be added to without loss is refused."""
    path = _path(folder, name)
    check_file(path)
    return read_csv(path, only=True) if path.exists() else []


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.csv"


def _worth(row: Row) -> tuple[bool, int]:
    return row.status == "done", sum(word != "" for word in row.words().values())


def _order(row: Row) -> tuple[object, ...]:
    names = (row.profile, row.dataset, row.backbone, row.method, row.recipe, row.variation)
    return (*names, row.sparsity, row.seed, row.key)
