"""Command lines that nobody should write: whatever stands in them, they end soon, in one line and with a known code."""

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gst.cli import main as cli
from reliability import strangers, wordings

CODES = {0, 2, 130, 141, 143}
LONGEST = 300  # characters of a message
MEBIBYTES = 500  # above what the imports take
PATIENCE = 10.0  # seconds of the processor
MOST_KEPT = 100_000  # characters of what it printed
WAIT = 60.0  # seconds on the wall, however busy the machine


@dataclass
class Ended:
    """What became of a call."""

    words: list[str]
    world: dict[str, str]  # its environment, beside the usual one
    stdout: str  # what its output went to: a file, a full disk, or a pipe that nobody reads
    code: int
    seconds: float  # of the processor
    mebibytes: float
    out: str
    err: str
    hung: bool


def faults(call: Ended) -> list[str]:
    """What a call did that none may do."""
    last = (call.err.splitlines() or [""])[-1]
    checks = {
        "traceback": "Traceback" in call.err + call.out,
        "hang": call.hung or call.seconds > PATIENCE,
        "memory": call.mebibytes > MEBIBYTES,
        "code": call.code not in CODES and not call.hung,
        "no line": call.code in (2, 130, 143) and not last.startswith("gst: "),
        "long line": last.startswith("gst: ") and len(last) > LONGEST + len("gst: "),
        "escape": any(sign in call.err + call.out for sign in "\x1b\x07\x9b"),
        "no JSON": call.code == 0 and "--json" in call.words and "--help" not in call.words and not _is_json(call),
    }
    return [name for name, wrong in checks.items() if wrong]


def _is_json(call: Ended) -> bool:
    try:
        return isinstance(json.loads(call.out), dict)
    except ValueError:
        return False


def run_calls(count: int, seed: int, place: Path) -> dict[str, Any]:
    """So many calls of a seed, two at a time, each in a process of its own; counts, peaks and all that went wrong."""
    for words in wordings.KINDS:  # kernels are compiled once on a machine, which takes longer than any call may
        assert call(words, place, patience=10 * WAIT).code == 0, words
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        halves = [pool.submit(some_calls, range(part, count, 2), seed, place / str(part)) for part in range(2)]
        ended = [call for half in halves for call in half.result()]
    return {
        "calls": count,
        "seed": seed,
        "codes": dict(sorted(Counter(call.code for call in ended).items())),
        "most": {name: round(max(getattr(call, name) for call in ended), 1) for name in ("seconds", "mebibytes")},
        "wrong": [{"faults": found, **vars(call)} for call in ended if (found := faults(call))],
    }


def some_calls(numbers: Iterable[int], seed: int, place: Path) -> list[Ended]:
    """The calls of these numbers; what a call is depends on its number and the seed alone."""
    files = strangers.make_files(place / "files", lambda *words: call(list(words), place))
    ended = []
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        words, world = wordings.command(rng, files), wordings.environment(rng, files)
        ended.append(call(words, place, world, rng.choices(["file", "full", "closed"], [18, 1, 1])[0]))
    return ended


def call(
    words: list[str], place: Path, world: dict[str, str] | None = None, stdout: str = "file", patience: float = WAIT
) -> Ended:
    """Runs ``gst …`` in a fork of this process, which has imported everything and trained nothing."""
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("stdout", "stderr", "memory"):
        (place / name).unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _run(words, folder, place, world or {}, stdout)
    used, status, hung = _wait(child, patience)
    for stranded in _group(child):
        os.kill(stranded, signal.SIGKILL)
    out, err = (_text(place / name) for name in ("stdout", "stderr"))
    code = os.waitstatus_to_exitcode(status)
    taken = used.ru_utime + used.ru_stime
    more = used.ru_maxrss / 1024 - float(_text(place / "memory") or 0)
    return Ended(words, world or {}, stdout, code, taken, more, out[-MOST_KEPT:], err[-MOST_KEPT:], hung)


def _run(words: list[str], folder: Path, place: Path, world: dict[str, str], stdout: str) -> None:
    """The child: never returns."""
    code = 1
    try:
        (place / "memory").write_text(str(_resident()))
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(_target(stdout, place), 1)
        os.dup2(os.open(place / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1, errors="backslashreplace")
        os.environ.pop("GST_MIRROR", None)
        os.environ |= {"GST_DATA": str(place / "data"), "BROWSER": "true", **world}
        sys.argv = ["gst", *words]
        cli.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _target(stdout: str, place: Path) -> int:
    if stdout == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if stdout == "closed":
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return os.open(place / "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _wait(child: int, patience: float) -> tuple[resource.struct_rusage, int, bool]:
    """What the child used, how it ended, and whether it had to be ended."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return used, status, False
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return used, status, True


def _group(leader: int) -> Iterator[int]:
    """Processes that a call has left behind."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            group = int(status.read_text().rpartition(")")[2].split()[2])
        except (OSError, ValueError):
            continue
        if group == leader:
            yield int(status.parent.name)


def _resident() -> float:
    """MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.exists() else ""
