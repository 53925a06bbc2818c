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
from gst.lab.bench.work import run_cell

try:
    from multiprocessing import forkserver
except ImportError:  # not available on this platform
    forkserver = None  # type: ignore[assignment]

ATTEMPTS = 3  # for a cell whose worker dies; then it counts as failed
Engine = Callable[[list[list[Cell]], int, Path | None], Iterator[Row]]


@dataclass
class Worker:
    """A process, the pipe to it, the cells assigned to it and the number of attempts at the first of them."""

    process: Any
    pipe: Connection
    cells: list[Cell] = field(default_factory=list)
    attempts: int = 0


def local(groups: list[list[Cell]], workers: int, root: Path | None) -> Iterator[Row]:
    """Runs cells in ``workers`` processes, each group in one process; yields rows as they finish."""
    waiting = list(groups)
    running = {worker.pipe: worker for worker in (_start(root) for _ in range(min(workers, len(groups))))}
    try:
        for worker in running.values():
            _assign(worker, waiting)
        while running:
            for pipe in wait(list(running)):
                worker = running.pop(cast(Connection, pipe))
                row, alive = _receive(worker)
                if row is not None:
                    worker.cells, worker.attempts = worker.cells[1:], 0
                if worker.cells or waiting:
                    if not alive:
                        worker = replace(_start(root), cells=worker.cells, attempts=worker.attempts)
                    running[worker.pipe] = worker
                    _assign(worker, waiting)
                else:
                    worker.pipe.close()
                if row is not None:
                    yield row
    finally:
        for worker in running.values():
            worker.process.terminate()
            worker.process.join()


def _receive(worker: Worker) -> tuple[Row | None, bool]:
    """A worker's row and whether it is alive; no row of a dead one whose cell is to be tried again."""
    try:
        return worker.pipe.recv(), True
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        died = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        last = worker.attempts >= ATTEMPTS
        return worker.cells[0].row(status="failed", reason=f"its worker {died}") if last else None, False


def _assign(worker: Worker, waiting: list[list[Cell]]) -> None:
    """Sends the next cell of the worker's group, or the first of the next group."""
    worker.cells = worker.cells or waiting.pop(0)
    worker.attempts += 1
    with suppress(OSError):  # it has died: reading the pipe will show it
        worker.pipe.send(worker.cells[0])


def worker_context() -> Any:
    """The multiprocessing context of workers: a fork server that has imported everything, where there is one.

    The server starts importing at once, so an early call lets it work while the plan is made.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if forkserver is None:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["gst.lab.bench.work"])
    forkserver.ensure_running()
    return context


def _start(root: Path | None) -> Worker:
    context = worker_context()
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, root), daemon=True)
    process.start()
    there.close()
    return Worker(process, here)


def _work(pipe: Connection, root: Path | None) -> None:
    """The main function of a worker: runs the cells it receives and exits with its parent, even during a cell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which ends this process
    reuse_memory()
    received: queue.SimpleQueue[Cell] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                received.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        pipe.send(run_cell(received.get(), root))


def on_ray(groups: list[list[Cell]], workers: int, root: Path | None) -> Iterator[Row]:
    """Runs each cell as a Ray task, ``workers`` at a time; Ray repeats the tasks of a worker that dies."""
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("--engine ray needs Ray: pip install 'graph-sparse-training[ray]'") from None

    started_here = not ray.is_initialized()
    if started_here:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = os.environ.get("RAY_ADDRESS")
        cluster: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **cluster)
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
        if started_here:
            ray.shutdown()


ENGINES: dict[str, Engine] = {"local": local, "ray": on_ray}
