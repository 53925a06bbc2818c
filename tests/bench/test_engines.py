"""Cells in other processes: the same rows, whoever runs them and whoever dies."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gst.bench.cells import Cell, groups
from gst.bench.engines import local, on_ray
from gst.bench.work import run_cell

SETTINGS = {"hidden": 8, "lr": 0.02, "anchor_epochs": 5, "sparse_epochs": 5}
QUICK = [
    Cell("rq1", "smoke", "synthetic:nodes=100,degree=4", "gcn", method, "", s, 0, settings=SETTINGS)
    for method in ("random", "scan")
    for s in (0.3, 0.6)
]
LONG = replace(QUICK[0], sparsity=0.5, settings={**SETTINGS, "anchor_epochs": 1500})
BROKEN = replace(QUICK[0], sparsity=1.5)
MEASURED = (
    "edges_kept",
    "val",
    "test",
    "warm_test",
    "dense_test",
    "status",
    "reason",
    "variation",
    "sparsity",
    "method",
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
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill_one(word, killed):
    """Kills one process of ours whose command has this word, as soon as there is one."""
    for _ in range(600):
        for pid in descendants(os.getpid()):
            if word in command(pid):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
        time.sleep(0.05)


def killing(rows, word, delay):
    """Passes rows on; after the first, when imports are behind, kills a worker amid the next cell."""
    killed, thread = [], None
    for row in rows:
        if thread is None:
            thread = threading.Timer(delay, kill_one, (word, killed))
            thread.start()
        yield row
    thread.join()
    assert killed


def test_other_processes_give_the_same_rows_and_one_that_is_killed_loses_nothing():
    cells = [QUICK[0], LONG, *QUICK[1:], BROKEN]
    found = list(killing(local(groups(cells), 1, None), "spawn_main", 0.3))
    assert table(found) == table(run_cell(cell) for cell in cells)
    assert [row.status for row in found].count("failed") == 1
    assert not any("spawn_main" in command(pid) for pid in descendants(os.getpid()))


def test_a_cell_that_kills_its_worker_is_given_up(monkeypatch):
    monkeypatch.setattr("gst.bench.engines.ATTEMPTS", 1)
    rows = killing(
        local([[QUICK[0], replace(LONG, settings={**SETTINGS, "anchor_epochs": 10**6}), QUICK[1]]], 1, None),
        "spawn_main",
        0.3,
    )
    assert [(row.status, row.reason) for row in rows] == [
        ("done", ""),
        ("failed", "its worker was killed by signal 9"),
        ("done", ""),
    ]


def test_workers_end_when_nobody_listens():
    rows = local([[QUICK[0], LONG]], 1, None)
    next(rows)
    rows.close()
    assert not any("spawn_main" in command(pid) for pid in descendants(os.getpid()))


def test_ray_gives_the_same_rows_and_redoes_what_a_killed_worker_had():
    pytest.importorskip("ray", reason="Ray is not installed (extra: ray)")
    cells = [QUICK[0], LONG, *QUICK[1:], BROKEN]
    found = list(killing(on_ray(groups(cells), 2, None), "ray::run_cell", 0.3))
    assert table(found) == table(run_cell(cell) for cell in cells)
