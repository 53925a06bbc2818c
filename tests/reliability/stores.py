"""Bits flipped in a store and in a record of rows: the same rows or a refusal, never a different number."""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gst.base.errors import InputError
from gst.lab.bench.load import load_rows
from gst.lab.bench.rows import Row, write_csv
from gst.lab.bench.store import Store
from reliability.damage import damaged

ROWS = [
    Row(
        *("rq1", "quick", "Cora", "gcn", "gst", 0.1 * (seed % 9), seed),
        test=46.35 + seed / 7,
        macs_dense=1e-05 * seed,
        edges_kept=4000 + seed,
        facts={"degree": {"from": [1, 2, 4], "kept": [seed, 1.5, 0]}, "note": "ü"},
        command="gst bench rq1 --profile quick",
        key=f"{seed:032x}",
    )
    for seed in range(40)
]


def by_key(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.key)


def read_store(path: Path) -> list[Row]:
    """The rows as seen by a writer and by a reader, which must agree."""
    with Store(path, patience=0.1) as store:
        rows = store.rows()
    if rows:
        assert by_key(rows) == by_key(load_rows(path).rows)
    return rows


def read_record(path: Path) -> list[Row]:
    return load_rows(path).rows


def written(root: Path) -> dict[Path, Callable[[Path], list[Row]]]:
    """A store and a record of the same rows, each with its reader."""
    with Store(root / "rows.db") as store:
        store.add(ROWS)
    write_csv(root / "rows.csv", ROWS)
    return {root / "rows.db": read_store, root / "rows.csv": read_record}


def outcome(path: Path, content: bytes, read: Callable[[Path], list[Row]]) -> str:
    """The outcome of reading a file with this content."""
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()
    path.write_bytes(content)
    try:
        rows = read(path)
    except InputError as error:
        line = str(error)
        return "refused" if "\n" not in line and len(line) <= 300 + len(str(path)) else f"more than one line: {line}"
    except Exception as error:
        return f"crashed with {type(error).__name__}: {error}"
    return "the same" if by_key(rows) == ROWS else "CHANGED"


def flip(root: Path, flips: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Flips bits in each file, and truncates it a twentieth as often."""
    outcomes: dict[str, Any] = {}
    rng = random.Random(seed)
    for path, read in written(root).items():
        whole = path.read_bytes()
        trials = root / "trial"
        trials.mkdir()
        # a record cut after a complete line, or an empty file, looks like one that was never longer
        cuts = damaged(whole, flips // 20 if path.suffix == ".db" else 0, flips, rng)
        outcomes[path.name] = dict(Counter(outcome(trials / path.name, content, read) for content in cuts if content))
        shutil.rmtree(trials)
    return outcomes
