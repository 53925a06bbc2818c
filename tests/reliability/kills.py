"""SIGKILL at random instants: a killed run resumes to the result of an uninterrupted one.

Children are forked from a parent that has imported everything, because importing takes longer than the job itself. The
parent must not have run autograd, so tests start this in a separate process.
"""

import math
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch

from gst.base.errors import InputError
from gst.storage import files
from reliability.alike import MAX_SHOWN, differences
from reliability.faults import dying
from reliability.jobs import JOBS


def start(job: str, folder: Path, every: float = 0.05, dies: int = 0) -> int:
    """Forks a child that does the job in this folder and is killed at its ``dies``-th call to the disk (0: never).

    Its output goes to ``folder.out`` and ``folder.log``, the number of its calls to the disk to ``folder.calls``.
    """
    child = os.fork()
    if child:
        return child
    try:
        torch.set_num_threads(1)
        for stream, name, how in ((1, ".out", os.O_TRUNC), (2, ".log", os.O_APPEND)):
            os.dup2(os.open(folder.with_suffix(name), os.O_WRONLY | os.O_CREAT | how), stream)
        code = 0
        with dying(dies) as calls:
            try:
                JOBS[job].work(folder, every)
            except SystemExit as stopped:
                code = int(stopped.code or 0)
        folder.with_suffix(".calls").write_text(str(len(calls)))
        sys.stdout.flush()
        os._exit(code)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(99)


def unreadable(folder: Path) -> int:
    """The number of unreadable states on disk, temporary files aside."""
    count = 0
    for path in (folder / "checkpoint").glob("*.safetensors"):
        try:
            files.read_tensors(path)
        except InputError:
            count += 1
    return count


def newest_phase(folder: Path) -> str:
    states = sorted((folder / "checkpoint").glob("*.[ab].safetensors"), key=lambda path: path.stat().st_mtime)
    return states[-1].name.split(".")[0] if states else "before the first state"


def kill_after(child: int, seconds: float, folder: Path, phase: str) -> int:
    """Kills a child after some seconds, counted from the first state of ``phase`` if it is given; its exit code."""
    deadline = math.inf if phase else time.perf_counter() + seconds
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if phase and deadline == math.inf and _begun(folder, phase):
            deadline = time.perf_counter() + seconds
        if time.perf_counter() >= deadline:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def _begun(folder: Path, phase: str) -> bool:
    """Whether a state of this phase is on disk; the child removes the folder when it is done."""
    with suppress(FileNotFoundError):
        return any((folder / "checkpoint").glob(f"{phase}.[ab].*"))
    return False


def uninterrupted(job: str, folder: Path) -> float:
    """Runs a job to the end; its seconds."""
    began = time.perf_counter()
    code = os.waitstatus_to_exitcode(os.waitpid(start(job, folder), 0)[1])
    assert code == 0, f"{job}: {folder.with_suffix('.log').read_text()}"
    return time.perf_counter() - began


def kill_at_random(job: str, kills: int, root: Path, seed: int = 0) -> dict[str, object]:
    """Kills and restarts a job until it was killed ``kills`` times; the outcome.

    The first kill happens in the phase that the job aims at; half of the others happen at any instant, half at a call
    to the disk: those instants are short, but most likely to reveal errors.
    """
    rng, aim = random.Random(f"{job} {seed}"), JOBS[job].aim
    reference, twin = root / f"{job}-reference", root / f"{job}-twin"
    length = min(uninterrupted(job, reference), uninterrupted(job, twin))  # the first one may include compiling kernels
    calls, expected = int(twin.with_suffix(".calls").read_text()), JOBS[job].outcome(reference)
    details = differences(JOBS[job].outcome(twin), expected)
    different = len(details[:1])
    killed = broken = finished = missed = 0
    phases: Counter[str] = Counter()
    failures: list[str] = []
    while len(failures) < MAX_SHOWN and (killed < kills or (aim and not phases[aim] and killed < kills + MAX_SHOWN)):
        folder = root / f"{job}-{finished}"
        while True:
            reached = aim and _begun(folder, aim)  # its states stay on disk: only a fresh run can be hit in that phase
            aimed = aim if not (reached or phases[aim]) and killed < kills + MAX_SHOWN else ""
            amid = 0 if aimed or killed >= kills else rng.randint(0, 1) * rng.randint(1, calls)
            seconds = rng.uniform(0, length / (10 + 10 * missed) if aimed else length)
            if amid or not (aimed or killed < kills):
                seconds = math.inf
            ended = kill_after(start(job, folder, dies=amid), seconds, folder, aimed)
            if ended != -signal.SIGKILL:
                break
            killed += 1
            phases[newest_phase(folder)] += 1
            missed += bool(aimed) and not phases[aim]
            broken += unreadable(folder)
        if ended:
            failures.append(f"exit code {ended}: {last_line(folder.with_suffix('.log'))}")
        elif lines := differences(JOBS[job].outcome(folder), expected):
            different += 1
            details += lines
        finished += 1
    return {
        "kills": killed,
        "runs_finished": finished,
        "failed_resumes": len(failures),
        "different_results": different,
        "unreadable_states": broken,
        "details": [*failures, *details][:MAX_SHOWN],
        "phases": dict(phases),
        "uninterrupted_seconds": round(length, 2),
    }


def last_line(log: Path) -> str:
    return next(reversed(log.read_text().strip().splitlines()), "")
