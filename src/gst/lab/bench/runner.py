"""Runs the cells of an experiment that the store does not have, and watches over them."""

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
from gst.lab.bench.cells import Cell, groups
from gst.lab.bench.engines import ENGINES
from gst.lab.bench.rows import Row
from gst.lab.bench.store import Store
from gst.lab.bench.work import load_once
from gst.storage.cache import fingerprint


@dataclass(frozen=True)
class Plan:
    """What is to do: cells by key, and which of them run."""

    cells: dict[str, Cell]
    known: int  # how many of them are done
    todo: dict[str, Cell]
    hopeless: dict[str, Row]  # cells whose data cannot be had


def make_plan(cells: Iterable[Cell], store: Store, limit: int | None = None, root: Path | None = None) -> Plan:
    """Gives every cell its key and leaves out what is done; at most ``limit`` cells are left to do."""
    prints: dict[str, str] = {}
    reasons: dict[str, str] = {}
    keyed: dict[str, Cell] = {}
    for cell in cells:
        if cell.dataset not in prints:
            try:
                prints[cell.dataset] = fingerprint(load_once(cell.dataset, root))
            except GSTError as error:
                prints[cell.dataset], reasons[cell.dataset] = f"missing {cell.dataset}", str(error)
        keyed[cell.key(prints[cell.dataset])] = cell
    load_once.cache_clear()  # the workers have their own
    done = store.done(keyed)
    todo = {key: cell for key, cell in keyed.items() if key not in done}
    hopeless = {
        key: cell.row(status="failed", reason=reasons[cell.dataset])
        for key, cell in todo.items()
        if cell.dataset in reasons
    }
    chosen = [key for key in todo if key not in hopeless][:limit]
    return Plan(keyed, len(done), {key: todo[key] for key in chosen}, hopeless)


def carry_out(
    plan: Plan, store: Store, engine: str, workers: int, root: Path | None, watch: Callable[[Row], None]
) -> None:
    """Runs what is to do; every row is in the store before anyone hears of it."""
    run = resolve("engine", engine, ENGINES)
    keys = {_name(cell): key for key, cell in plan.todo.items()}
    code, machine = code_version(), environment()

    def keep(row: Row, key: str) -> None:
        row = replace(row, key=key, code=code, environment=machine)
        store.add([row])
        watch(row)

    for key, row in plan.hopeless.items():
        keep(row, key)
    for row in run(groups(plan.todo.values()), workers, root) if plan.todo else ():
        keep(row, keys[_name(row)])


def _name(run: Cell | Row) -> tuple[object, ...]:
    """What tells the cells of one experiment apart."""
    variation = run.varied if isinstance(run, Cell) else run.variation
    return run.dataset, run.backbone, run.method, run.recipe, run.sparsity, run.seed, variation


def code_version() -> str:
    """The version, and a hash of the sources for those that are between versions."""
    folder = Path(gst.__file__).parent
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{gst.__version__}+{digest.hexdigest()}"


def environment() -> str:
    """Versions and processor: what the last bits and the times depend on."""
    libraries = " ".join(f"{name} {version(name)}" for name in ("torch", "torch_geometric", "numpy", "scipy"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{platform.system()} {platform.machine()}, {cores} cores, one thread a run"
    return f"Python {platform.python_version()}, {libraries}, {machine}"
