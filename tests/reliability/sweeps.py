"""Kills of ``gst bench``: of the process that distributes cells, or of a worker, with local processes and with Ray.

Whichever is killed, the same command with the same store ends with the rows of an uninterrupted sweep.
"""

import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gst.lab.bench.store import Store
from reliability.alike import MAX_SHOWN, differences, untimed

ONLY = "backbone=gcn,method=random,method=set,method=ugs,method=gst"
ENGINES = ("local", "ray")
MARK = "GST_TRIAL"  # in the environment of all processes of a sweep, including orphans
BAD = ("missed", "failed", "different_results", "left_processes")
TIMEOUT = 60  # seconds in which the helpers of a killed process must have ended by themselves


class Sweep:
    """One ``gst bench`` with its helper processes, its own store and its own cache."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine, self.folder, self.mark = engine, folder, f"{os.getpid()}-{time.monotonic_ns()}"
        folder.mkdir(parents=True, exist_ok=True)
        words = ["bench", "rq1", "--profile", "smoke", "--only", ONLY, "--workers", "2", "--engine", engine, "--quiet"]
        words += ["--db", str(folder / "rows.db"), "--data-root", str(folder / "data"), "--json"]
        self._log = (folder / "log").open("a")
        self._ray = tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True)  # sockets need short paths
        ray = {"RAY_TMPDIR": self._ray.name, "RAY_worker_niceness": "0"}
        marked = {**os.environ, MARK: self.mark, **ray}
        command = [sys.executable, "-m", "gst", *words]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log, env=marked)

    def members(self) -> list[int]:
        """All its living processes except for the one that distributes cells."""
        variable = f"{MARK}={self.mark}".encode()
        pids = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    variable in (process / "environ").read_bytes().split(b"\0")
                    and int(process.name) != self.process.pid
                ):
                    pids.append(int(process.name))
        return pids

    def workers(self) -> list[int]:
        """The processes that work on cells."""
        members = self.members()
        if self.engine == "ray":
            return [pid for pid in members if "ray::run_cell" in _command(pid)]
        return [pid for pid in members if _parent(pid) in members]  # copies of the one that has imported everything

    def end(self) -> int:
        """Ends its remaining processes; how many had not ended by themselves, the services of Ray aside."""
        self._log.close()
        remaining = self.workers if self.engine == "ray" else self.members
        deadline = time.monotonic() + TIMEOUT
        while (left := remaining()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._ray.cleanup()
        return len(left)


@contextmanager
def sweep(engine: str, folder: Path) -> Iterator[Sweep]:
    new = Sweep(engine, folder)
    try:
        yield new
    finally:
        new.process.kill()
        new.process.wait()
        new.end()


def rows_of(folder: Path) -> dict[str, Any]:
    """Every row by its key, without times."""
    with Store(folder / "rows.db") as store:
        return {row.key: untimed(asdict(row)) for row in store.rows()}


def kill_sweeps(engine: str, kills: int, root: Path, seed: int = 0) -> dict[str, Any]:
    """Kills the first process of a sweep, a worker of the next, and so on; the outcome."""
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        return {"skipped": "Ray is not installed (extra: ray)"}
    rng, reference = random.Random(f"{engine} {seed}"), root / f"{engine}-reference"
    with sweep(engine, reference) as uninterrupted:
        length = _from_first_worker(uninterrupted)
    failures = _failure(uninterrupted)
    expected, details = rows_of(reference), []
    assert not failures and expected, (reference / "log").read_text()
    killed: Counter[str] = Counter()
    different = left = 0
    for number in range(2 * kills):  # some end before the kill
        if killed.total() == kills:
            break
        folder, victim = root / f"{engine}-{number}", ("first", "worker")[killed.total() % 2]
        with sweep(engine, folder) as killed_sweep:
            if _killed(killed_sweep, victim, rng.uniform(0, length)):
                killed[victim] += 1
            else:
                length /= 2
            killed_sweep.process.wait()
            left += killed_sweep.end() if victim == "first" else 0
        if killed_sweep.process.returncode == -signal.SIGKILL:
            with sweep(engine, folder) as killed_sweep:
                killed_sweep.process.wait()
        failures += _failure(killed_sweep)
        lines = differences(rows_of(folder), expected)
        different += bool(lines)
        details += lines
    return {
        "kills": dict(killed),
        "missed": kills - killed.total(),
        "failed": len(failures),
        "different_results": different,
        "left_processes": left,
        "details": [*failures, *details][:MAX_SHOWN],
        "rows": len(expected),
        "uninterrupted_seconds": round(length, 2),
    }


def _until_workers(running: Sweep) -> None:
    while running.process.poll() is None and not running.workers():
        time.sleep(0.2)


def _from_first_worker(running: Sweep) -> float:
    """Seconds from the first worker to the end."""
    _until_workers(running)
    start = time.perf_counter()
    running.process.wait()
    return time.perf_counter() - start


def _killed(running: Sweep, victim: str, seconds: float) -> bool:
    """Kills it some seconds after it has workers; False if it ended before."""
    _until_workers(running)
    with suppress(subprocess.TimeoutExpired):
        running.process.wait(seconds)
        return False
    victims = [running.process.pid] if victim == "first" else running.workers()
    for pid in victims[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(victims)


def _failure(ended: Sweep) -> list[str]:
    code = ended.process.returncode
    return [f"exit code {code}: {(ended.folder / 'log').read_text().strip().splitlines()[-1:]}"] if code else []


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
