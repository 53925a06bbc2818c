"""Plans and runs the cells of an experiment that the store does not have yet."""

import hashlib
import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import gst
from gst.base.errors import GSTError
from gst.base.names import resolve
from gst.lab.bench.cells import Cell, group_cells
from gst.lab.bench.engines import ENGINES
from gst.lab.bench.rows import Row
from gst.lab.bench.store import Store
from gst.lab.bench.work import load_once
from gst.storage.cache import fingerprint


@dataclass(frozen=True)
class Plan:
    """Cells by key, and which of them to run."""

    cells: dict[str, Cell]
    known: int  # cells that are done already
    todo: dict[str, Cell]
    impossible: dict[str, Row]  # failed rows of cells whose data cannot be loaded

    @property
    def num_rows(self) -> int:
        """How many rows carrying it out will add."""
        return len(self.todo) + len(self.impossible)


def make_plan(cells: Iterable[Cell], store: Store, limit: int | None = None, root: Path | None = None) -> Plan:
    """Computes the key of every cell and leaves out what is done; plans at most ``limit`` cells."""
    fingerprints: dict[tuple[str, str], str] = {}
    reasons: dict[str, str] = {}
    keyed: dict[str, Cell] = {}
    for cell in cells:
        data = cell.dataset, cell.split
        if data not in fingerprints:
            try:
                fingerprints[data] = fingerprint(load_once(cell.dataset, cell.split, root))
            except GSTError as error:
                fingerprints[data] = f"missing {cell.dataset}"
                reasons[cell.dataset] = str(error)
        keyed[cell.key(fingerprints[data])] = cell
    load_once.cache_clear()  # workers load their own copies
    done = store.done(keyed)
    missing = {key: cell for key, cell in keyed.items() if key not in done}
    impossible = {
        key: cell.row(status="failed", reason=reasons[cell.dataset])
        for key, cell in missing.items()
        if cell.dataset in reasons
    }
    planned = [key for key in missing if key not in impossible][:limit]
    return Plan(keyed, len(done), {key: missing[key] for key in planned}, impossible)


def carry_out(
    plan: Plan, store: Store, engine: str, workers: int, root: Path | None, on_row: Callable[[Row], None]
) -> None:
    """Runs the plan; every row is stored before ``on_row`` is called with it."""
    run = resolve("engine", engine, ENGINES)
    keys = {_name(cell): key for key, cell in plan.todo.items()}
    code, machine = code_version(), environment()

    def save(row: Row, key: str) -> None:
        row = replace(row, key=key, code=code, environment=machine)
        store.add([row])
        on_row(row)

    for key, row in plan.impossible.items():
        save(row, key)
    for row in run(group_cells(plan.todo.values()), workers, root) if plan.todo else ():
        save(row, keys[_name(row)])


def _name(run: Cell | Row) -> tuple[object, ...]:
    """What distinguishes the cells of one experiment."""
    variation = run.variation_text if isinstance(run, Cell) else run.variation
    return run.dataset, run.backbone, run.method, run.sparsity, run.seed, variation


def code_version() -> str:
    """The version of gst and a hash of its sources, which tells development versions apart."""
    folder = Path(gst.__file__).parent
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{gst.__version__}+{digest.hexdigest()}"


def environment() -> str:
    """Libraries and processor, on which the last digits and the times depend."""
    libraries = " ".join(f"{name} {version(name)}" for name in ("torch", "torch_geometric", "numpy", "scipy"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{platform.system()} {platform.machine()}, {cores} cores, one thread per run"
    return f"Python {platform.python_version()}, {libraries}, {machine}, MKL_CBWR {os.environ.get('MKL_CBWR', 'unset')}"
