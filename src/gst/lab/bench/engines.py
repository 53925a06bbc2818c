"""Where cells run: processes of this machine, or Ray. Both survive the death of a worker."""

import logging
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from gst.base.errors import InputError
from gst.base.memory import reuse_memory
from gst.lab.bench.cells import Cell
from gst.lab.bench.rows import Row

ATTEMPTS = 3  # of a cell whose worker dies; then it counts as failed
Engine = Callable[[list[list[Cell]], int, Path | None], Iterator[Row]]


@dataclass
class Worker:
    """A process, the pipe to it, the cells it has been given and how often the first of them was tried."""

    process: Any
    pipe: Connection
    cells: list[Cell] = field(default_factory=list)
    attempts: int = 0


def local(groups: list[list[Cell]], workers: int, root: Path | None) -> Iterator[Row]:
    """One cell at a time in each of so many processes, the cells of a group in one process; rows as they come."""
    waiting = list(groups)
    running = {worker.pipe: worker for worker in (_start(root) for _ in range(min(workers, len(groups))))}
    try:
        for worker in running.values():
            _give(worker, waiting)
        while running:
            for pipe in wait(list(running)):
                worker = running.pop(cast(Connection, pipe))
                row, alive = _take(worker)
                if row is not None:
                    worker.cells, worker.attempts = worker.cells[1:], 0
                if worker.cells or waiting:
                    if not alive:
                        worker = replace(_start(root), cells=worker.cells, attempts=worker.attempts)
                    running[worker.pipe] = worker
                    _give(worker, waiting)
                else:
                    worker.pipe.close()
                if row is not None:
                    yield row
    finally:
        for worker in running.values():
            worker.process.terminate()
            worker.process.join()


def _take(worker: Worker) -> tuple[Row | None, bool]:
    """The row it sends, and whether it lives; of one that died, no row if its cell is to be tried again."""
    try:
        return worker.pipe.recv(), True
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        died = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        given_up = worker.attempts >= ATTEMPTS
        return worker.cells[0].row(status="failed", reason=f"its worker {died}") if given_up else None, False


def _give(worker: Worker, waiting: list[list[Cell]]) -> None:
    """Sends the next cell of its group, or the first of the next group."""
    worker.cells = worker.cells or waiting.pop(0)
    worker.attempts += 1
    with suppress(OSError):  # it has died: the pipe will say so
        worker.pipe.send(worker.cells[0])


def nursery() -> Any:
    """Where workers come from: if it can be had, a server that imports everything once, for them to be copies of.

    It begins to do so now: whoever calls this early has it import while the plan is made.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    from multiprocessing import forkserver  # noqa: PLC0415 - not to be had everywhere

    context.set_forkserver_preload(["gst.lab.bench.work"])
    forkserver.ensure_running()
    return context


def _start(root: Path | None) -> Worker:
    context = nursery()
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, root), daemon=True)
    process.start()
    there.close()
    return Worker(process, here)


def _work(pipe: Connection, root: Path | None) -> None:
    """A worker: runs what it is sent. When its parent dies, so does it, even amid a cell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    reuse_memory()
    todo: queue.SimpleQueue[Cell] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                todo.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    from gst.lab.bench.work import run_cell  # noqa: PLC0415 - heavy, and not needed where cells are handed out

    while True:
        pipe.send(run_cell(todo.get(), root))


def on_ray(groups: list[list[Cell]], workers: int, root: Path | None) -> Iterator[Row]:
    """The same as tasks of Ray, one a cell, so many at a time; Ray itself redoes those of a worker that dies."""
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("--engine ray needs Ray: pip install 'graph-sparse-training[ray]'") from None
    from gst.lab.bench.work import run_cell  # noqa: PLC0415

    begun = not ray.is_initialized()
    if begun:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = os.environ.get("RAY_ADDRESS")
        mine: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **mine)
    task: Any = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(run_cell)
    waiting = list(groups)
    running: dict[Any, list[Cell]] = {}
    try:
        while running or waiting:
            while waiting and len(running) < workers:
                cells = waiting.pop(0)
                running[task.remote(cells[0], root)] = cells
            for reference in ray.wait(list(running))[0]:
                cells = running.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield cells[0].row(status="failed", reason=f"Ray: {str(error).splitlines()[0]}")
                if cells[1:]:
                    running[task.remote(cells[1], root)] = cells[1:]
    finally:
        if begun:
            ray.shutdown()


ENGINES: dict[str, Engine] = {"local": local, "ray": on_ray}
