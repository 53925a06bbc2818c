"""Cells in other processes: the same rows, also when a worker is killed."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gst.lab.bench.cells import Cell, group_cells
from gst.lab.bench.engines import local, on_ray
from gst.lab.bench.work import run_cell

SETTINGS = {"hidden": 8, "lr": 0.02, "anchor_epochs": 5, "sparse_epochs": 5}
QUICK = [
    Cell("rq1", "smoke", "synthetic:nodes=100,degree=4", "gcn", method, s, 0, settings=SETTINGS)
    for method in ("random", "scan")
    for s in (0.3, 0.6)
]
LONG = replace(QUICK[0], sparsity=0.5, settings={**SETTINGS, "anchor_epochs": 400})
ENDLESS = replace(LONG, sparsity=0.7, settings={**SETTINGS, "anchor_epochs": 10**6})
BROKEN = replace(QUICK[0], sparsity=1.5)
MEASURED = (
    "method",
    "sparsity",
    "variation",
    "status",
    "reason",
    "edges_kept",
    "val",
    "test",
    "warm_test",
    "dense_test",
)


def table(rows):
    return sorted(str([getattr(row, name) for name in MEASURED]) for row in rows)


def descendants(pid):
    """Process ids below this one."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # gone in the meantime
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    pids = [pid]
    for parent in pids:
        pids += children.get(parent, [])
    return pids[1:]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def local_workers():
    return [child.pid for child in multiprocessing.active_children()]


def ray_workers():
    return [pid for pid in descendants(os.getpid()) if "ray::run_cell" in command(pid)]


def kill_one(workers, killed):
    """Kills one of these processes as soon as there is one."""
    for _ in range(600):
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return
        time.sleep(0.05)


def killing(rows, workers):
    """Passes rows on; after the first, when imports are done, kills a worker during the next cell."""
    killed, thread = [], None
    for row in rows:
        if thread is None:
            thread = threading.Timer(0.2, kill_one, (workers, killed))
            thread.start()
        yield row
    thread.join()
    assert killed


def test_other_processes_give_the_same_rows_even_if_one_is_killed():
    cells = [QUICK[0], LONG, *QUICK[1:], BROKEN]
    rows = list(killing(local(group_cells(cells), 1, None), local_workers))
    assert table(rows) == table(run_cell(cell) for cell in cells)
    assert [row.status for row in rows].count("failed") == 1
    assert len(rows) == len(cells)


def test_a_cell_that_kills_its_worker_is_given_up(monkeypatch):
    monkeypatch.setattr("gst.lab.bench.engines.ATTEMPTS", 1)
    rows = killing(local([[QUICK[0], ENDLESS, QUICK[1]]], 1, None), local_workers)
    outcomes = [(row.status, row.reason) for row in rows]
    assert outcomes == [("done", ""), ("failed", "its worker was killed by signal 9"), ("done", "")]


def test_workers_end_with_their_consumer():
    rows = local([[QUICK[0], ENDLESS]], 1, None)
    next(rows)
    assert local_workers()
    rows.close()
    assert not local_workers()


@pytest.mark.slow
def test_ray_gives_the_same_rows_even_if_a_worker_is_killed():
    pytest.importorskip("ray", reason="Ray is not installed (extra: ray)")
    cells = [QUICK[0], LONG, *QUICK[1:], BROKEN]
    rows = list(killing(on_ray(group_cells(cells), 2, None), ray_workers))
    assert table(rows) == table(run_cell(cell) for cell in cells)
    assert len(rows) == len(cells)
