"""The committed record: CSV files, one an experiment, that sweeps begin from and add to."""

from pathlib import Path

from gst.bench.rows import Row, read_csv, write_csv


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
