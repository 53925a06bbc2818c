"""Kills of ``gst bench``: the process that hands out cells, or one that works on them, here and under Ray.

Whoever dies, the same command with the same store ends with the rows of the sweep that nobody disturbed.
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
from reliability.alike import MOST, differences, untimed

ONLY = "backbone=gcn,method=random,method=set,method=ugs,method=gst,recipe=paper,recipe="
ENGINES = ("local", "ray")
MARK = "GST_TRIAL"  # in the environment of all processes of a sweep, also of those whose parent is gone
BAD = ("missed", "failed", "different_results", "left_processes")
PATIENCE = 60  # seconds in which the helpers of a killed process must have left by themselves


class Sweep:
    """One ``gst bench`` with its helpers, a store and a cache of its own."""

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
        """All its living processes but the one that hands out cells."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if wanted in (place / "environ").read_bytes().split(b"\0") and int(place.name) != self.process.pid:
                    found.append(int(place.name))
        return found

    def workers(self) -> list[int]:
        """Those that work on cells."""
        members = self.members()
        if self.engine == "ray":
            return [pid for pid in members if "ray::run_cell" in _command(pid)]
        return [pid for pid in members if _parent(pid) in members]  # copies of the one that has imported everything

    def end(self) -> int:
        """Ends what is left of it; how many processes had not left by themselves, the services of Ray aside."""
        self._log.close()
        mine = self.workers if self.engine == "ray" else self.members
        deadline = time.monotonic() + PATIENCE
        while (left := mine()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._ray.cleanup()
        return len(left)


@contextmanager
def sweep(engine: str, folder: Path) -> Iterator[Sweep]:
    begun = Sweep(engine, folder)
    try:
        yield begun
    finally:
        begun.process.kill()
        begun.process.wait()
        begun.end()


def rows_of(folder: Path) -> dict[str, Any]:
    """Every row by its key, but for clocks."""
    with Store(folder / "rows.db") as store:
        return {row.key: untimed(asdict(row)) for row in store.rows()}


def kill_sweeps(engine: str, kills: int, place: Path, seed: int = 0) -> dict[str, Any]:
    """Kills the first process of a sweep, a worker of the next, and so on; what became of them."""
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        return {"skipped": "Ray is not installed (extra: ray)"}
    rng, reference = random.Random(f"{engine} {seed}"), place / f"{engine}-reference"
    with sweep(engine, reference) as undisturbed:
        length = _from_first_worker(undisturbed)
    failures = _failure(undisturbed)
    wanted, told = rows_of(reference), []
    assert not failures and wanted, (reference / "log").read_text()
    killed: Counter[str] = Counter()
    different = left = 0
    for number in range(2 * kills):  # some may be faster than the kill
        if killed.total() == kills:
            break
        folder, victim = place / f"{engine}-{number}", ("first", "worker")[killed.total() % 2]
        with sweep(engine, folder) as cut:
            if _killed(cut, victim, rng.uniform(0, length)):
                killed[victim] += 1
            else:
                length /= 2
            cut.process.wait()
            left += cut.end() if victim == "first" else 0
        if cut.process.returncode == -signal.SIGKILL:
            with sweep(engine, folder) as cut:
                cut.process.wait()
        failures += _failure(cut)
        lines = differences(rows_of(folder), wanted)
        different += bool(lines)
        told += lines
    return {
        "kills": dict(killed),
        "missed": kills - killed.total(),
        "failed": len(failures),
        "different_results": different,
        "left_processes": left,
        "told": [*failures, *told][:MOST],
        "rows": len(wanted),
        "uninterrupted_seconds": round(length, 2),
    }


def _until_workers(begun: Sweep) -> None:
    while begun.process.poll() is None and not begun.workers():
        time.sleep(0.2)


def _from_first_worker(begun: Sweep) -> float:
    """Seconds from the first worker to the end."""
    _until_workers(begun)
    start = time.perf_counter()
    begun.process.wait()
    return time.perf_counter() - start


def _killed(begun: Sweep, victim: str, seconds: float) -> bool:
    """Kills it so many seconds after it has workers; False where it was faster."""
    _until_workers(begun)
    with suppress(subprocess.TimeoutExpired):
        begun.process.wait(seconds)
        return False
    found = [begun.process.pid] if victim == "first" else begun.workers()
    for pid in found[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


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
