"""``gst bench`` from the command line: rows, record, resuming, also after a kill."""

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gst.cli.main import app
from gst.lab.bench.rows import read_csv
from gst.lab.bench.store import Store

NOT_MEASURED = {"environment": "", "seconds": None, "dense_ms": None, "sparse_ms": None, "finished": "", "code": ""}
SWEEP = ("rq5-interval", "--profile", "smoke", "--only", "backbone=gcn", "--workers", "1", "--json", "--quiet")


def bench(*arguments):
    result = CliRunner().invoke(app, ["bench", *map(str, arguments)], catch_exceptions=False)
    return json.loads(result.stdout)


def rows_of(path):
    with Store(path) as store:
        return [replace(row, **NOT_MEASURED) for row in store.rows()]


def test_a_sweep_resumes_and_leaves_a_record(tmp_path):
    sweep = ("fig1", "--profile", "smoke", "--only", "method=spectral-radius,variation=", "--workers", 1, "--json")
    first = bench(*sweep, "--db", tmp_path / "a.db", "--limit", 1, "--record", tmp_path)
    assert (first["cells"], first["ran"], first["done"], first["failed"]) == (2, 1, 1, [])
    again = bench(*sweep, "--db", tmp_path / "b.db", "--from", tmp_path, "--record", tmp_path)
    assert (again["ran"], again["done"]) == (1, 2)
    assert bench(*sweep, "--db", tmp_path / "b.db")["ran"] == 0
    rows = read_csv(tmp_path / "fig1.csv")
    assert [row.sparsity for row in rows] == [0.1, 0.6]
    assert [line["test"] for line in again["table"]] == [row.test for row in rows]
    for row in rows:
        assert row.command.startswith("gst bench fig1 --profile smoke")
        assert "torch" in row.environment
        assert 0 < row.spectrum_top < 1
        assert row.facts["neighbourhood"]["nodes"]
        assert row.code.startswith("0.")


def test_missing_data_is_a_failure_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("GST_MIRROR", str(tmp_path / "none"))
    monkeypatch.setattr("gst.lab.bench.runner.load_once", _missing)
    summary = bench("rq1", "--only", "dataset=cora,method=scan,seed=0", "--db", tmp_path / "a.db", "--json")
    assert summary["done"] == 0
    assert {failure["reason"] for failure in summary["failed"]} == {"no such data"}
    assert len(summary["failed"]) == 3 * 8


def _missing(dataset, split, root):
    from gst.base.errors import InputError  # noqa: PLC0415

    raise InputError("no such data")


_missing.cache_clear = lambda: None


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["rq9"], "unknown experiment 'rq9'"),
        (["rq1", "--profile", "huge"], "unknown profile 'huge'"),
        (["rq1", "--engine", "steam"], "unknown engine 'steam'"),
        (["rq1", "--only", "dataset=karate"], "no run of rq1"),
        (["rq1", "--only", "karate"], "NAME=VALUE is needed"),
        (["rq1", "--profile", "smoke", "--from", "nowhere"], "nowhere does not exist"),
    ],
)
def test_bad_arguments_get_one_line(tmp_path, arguments, line):
    result = CliRunner().invoke(app, ["bench", *arguments, "--db", str(tmp_path / "a.db")])
    assert line in str(result.exception)


def begin(db):
    command = [sys.executable, "-m", "gst", "bench", *SWEEP, "--db", str(db)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def count(db):
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as base:
            return base.execute("SELECT COUNT(*) FROM rows").fetchone()[0]
    except sqlite3.Error:
        return 0


def alive(session):
    """Living processes of a session."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # gone in the meantime
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            pids.append(stat.parent.name)
    return pids


def kill_and_resume(tmp_path, kills, seed):
    rng, db = random.Random(seed), tmp_path / "killed.db"
    before: list = []
    interrupted = 0
    for _ in range(kills):
        process = begin(db)
        start, ripe = time.monotonic(), count(db) + rng.choice([-1, 0, 0, 1])  # sometimes before the first row
        while process.poll() is None and count(db) <= ripe and time.monotonic() - start < 120:
            time.sleep(0.02)
        time.sleep(rng.random())
        interrupted += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = rows_of(db)
        assert all(row in after for row in before)  # nothing lost, nothing changed
        before = after
        while alive(process.pid):  # its workers end, too
            assert time.monotonic() - start < 180
            time.sleep(0.1)
    bench(*SWEEP, "--db", db)
    bench(*SWEEP, "--db", tmp_path / "whole.db")
    assert rows_of(db) == rows_of(tmp_path / "whole.db")
    assert len(rows_of(db)) == 8
    return interrupted


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_killed_sweep_goes_on(tmp_path):
    assert kill_and_resume(tmp_path, 1, seed=0) == 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_sweep_killed_ten_times_goes_on(tmp_path):
    assert kill_and_resume(tmp_path, 10, seed=1) >= 5
