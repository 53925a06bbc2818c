"""Nonsensical command lines: whatever they contain, they end soon, with one line and a known exit code."""

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
MAX_LINE = 300  # characters of a message
MAX_MEBIBYTES = 500  # beyond the imports
MAX_SECONDS = 10.0  # of processor time
MAX_OUTPUT = 100_000  # characters that are kept
TIMEOUT = 60.0  # seconds of wall time, however busy the machine


@dataclass
class Ended:
    """The outcome of a call."""

    arguments: list[str]
    environment: dict[str, str]  # additional variables
    stdout: str  # a file, a full disk, or a pipe without a reader
    code: int
    seconds: float  # of processor time
    mebibytes: float
    out: str
    err: str
    hung: bool


def faults(call: Ended) -> list[str]:
    """The rules that a call broke."""
    last = (call.err.splitlines() or [""])[-1]
    checks = {
        "traceback": "Traceback" in call.err + call.out,
        "hang": call.hung or call.seconds > MAX_SECONDS,
        "memory": call.mebibytes > MAX_MEBIBYTES,
        "code": call.code not in CODES and not call.hung,
        "no line": call.code in (2, 130, 143) and not last.startswith("gst: "),
        "long line": last.startswith("gst: ") and len(last) > MAX_LINE + len("gst: "),
        "escape": any(char in call.err + call.out for char in "\x1b\x07\x9b"),
        "no JSON": call.code == 0
        and "--json" in call.arguments
        and "--help" not in call.arguments
        and not _is_json(call),
    }
    return [name for name, wrong in checks.items() if wrong]


def _is_json(call: Ended) -> bool:
    try:
        return isinstance(json.loads(call.out), dict)
    except ValueError:
        return False


def run_calls(count: int, seed: int, root: Path) -> dict[str, Any]:
    """``count`` random calls, two at a time, each in its own process; counts, peaks and everything that went wrong."""
    wordings.commands()  # imports them here, and not in every fork
    for arguments in wordings.KINDS:  # compiling the kernels, once per machine, would take longer than a call may
        assert call(arguments, root, timeout=10 * TIMEOUT).code == 0, arguments
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        halves = [pool.submit(some_calls, range(part, count, 2), seed, root / str(part)) for part in range(2)]
        ended = [call for half in halves for call in half.result()]
    return {
        "calls": count,
        "seed": seed,
        "codes": dict(sorted(Counter(call.code for call in ended).items())),
        "peak": {name: round(max(getattr(call, name) for call in ended), 1) for name in ("seconds", "mebibytes")},
        "wrong": [{"faults": broken, **vars(call)} for call in ended if (broken := faults(call))],
    }


def some_calls(numbers: Iterable[int], seed: int, root: Path) -> list[Ended]:
    """The calls with these numbers; a call depends only on its number and the seed."""
    files = strangers.make_files(root / "files", lambda *arguments: call(list(arguments), root))
    ended = []
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        arguments, environment = wordings.command(rng, files), wordings.environment(rng, files)
        ended.append(call(arguments, root, environment, rng.choices(["file", "full", "closed"], [18, 1, 1])[0]))
    return ended


def call(
    arguments: list[str],
    root: Path,
    environment: dict[str, str] | None = None,
    stdout: str = "file",
    timeout: float = TIMEOUT,
) -> Ended:
    """Runs ``gst …`` in a fork of this process, which has imported everything and trained nothing."""
    folder = root / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("stdout", "stderr", "memory"):
        (root / name).unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _run(arguments, folder, root, environment or {}, stdout)
    used, status, hung = _wait(child, timeout)
    for orphan in _group(child):
        os.kill(orphan, signal.SIGKILL)
    out, err = (_text(root / name) for name in ("stdout", "stderr"))
    code = os.waitstatus_to_exitcode(status)
    taken = used.ru_utime + used.ru_stime
    more = used.ru_maxrss / 1024 - float(_text(root / "memory") or 0)
    return Ended(arguments, environment or {}, stdout, code, taken, more, out[-MAX_OUTPUT:], err[-MAX_OUTPUT:], hung)


def _run(arguments: list[str], folder: Path, root: Path, environment: dict[str, str], stdout: str) -> None:
    """The child: never returns."""
    code = 1
    try:
        (root / "memory").write_text(str(_resident()))
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(_target(stdout, root), 1)
        os.dup2(os.open(root / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1, errors="backslashreplace")
        os.environ.pop("GST_MIRROR", None)
        os.environ |= {"GST_DATA": str(root / "data"), "BROWSER": "true", **environment}
        sys.argv = ["gst", *arguments]
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


def _target(stdout: str, root: Path) -> int:
    if stdout == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if stdout == "closed":
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return os.open(root / "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _wait(child: int, timeout: float) -> tuple[resource.struct_rusage, int, bool]:
    """The resources the child used, its exit status, and whether it had to be killed."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return used, status, False
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return used, status, True


def _group(leader: int) -> Iterator[int]:
    """Processes left behind by a call."""
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
