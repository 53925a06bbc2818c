"""Saves killed at every call to the disk, and loads beside a process that saves continuously."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import gst
from gst.base.errors import InputError
from gst.storage.checkpoint import Checkpoint
from reliability.faults import dying

FIXTURES = Path(__file__).parent.parent / "fixtures"
STARTS = ("nothing", "format 1", "format 2", "format 3")


def numbered(number: int) -> gst.Result:
    """A small result whose number is stored in each of its three files."""
    result = gst.Result.load(FIXTURES / "run-format-2")
    assert result.model is not None
    with torch.no_grad():
        for parameter in result.model.parameters():
            parameter.fill_(number)
    return replace(result, scores=torch.full_like(result.scores, number), metrics={**result.metrics, "number": number})


def number_of(result: gst.Result) -> int | None:
    """Its number; None for a mixture of several results."""
    assert result.model is not None
    numbers = {
        result.metrics.get("number"),
        int(result.scores[0]),
        int(next(iter(result.model.parameters())).flatten()[0]),
    }
    return numbers.pop() if len(numbers) == 1 else None


def killed_at(number: int, work: Callable[[], Any]) -> bool:
    """Works in a child that is killed at its ``number``-th call to the disk; whether it got that far."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL), f"exit code {code}"
        return code != 0
    try:
        with dying(number):
            work()
        os._exit(0)
    finally:
        os._exit(1)


def prepare(folder: Path, start: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if start == "format 3":
        numbered(1).save(folder)
    elif start != "nothing":
        shutil.copytree(FIXTURES / f"run-{start.replace(' ', '-')}", folder)


def state_of(folder: Path) -> str:
    """Which result a folder holds."""
    try:
        result = gst.Result.load(folder)
    except InputError as error:
        return "nothing" if "not a run folder" in str(error) else "broken"
    if "number" not in result.metrics:
        return "old"
    return {1: "old", 2: "new", None: "mixed"}[number_of(result)]


def kill_saves(root: Path, start: str) -> dict[str, int]:
    """Kills a save at every call to the disk: what the folder holds then, and after the next start."""
    folder, new, seen, number = root / "run", numbered(2), Counter[str](), 0
    while True:
        number += 1
        prepare(folder, start)
        if not killed_at(number, lambda: new.save(folder)):
            break
        held = state_of(folder)
        seen[held] += 1
        with Checkpoint(folder) as checkpoint:  # the next start, which sweeps
            checkpoint.commit()
            seen["lost at the next start"] += state_of(folder) != held
            checkpoint.clear()
        seen["cannot be saved again"] += number_of(gst.Result.load(numbered(3).save(folder))) != 3
        names = sorted(path.name.split("-")[0] for path in folder.iterdir())
        seen["leftovers"] += names != ["graph", "model", "run.json"]
    shutil.rmtree(folder)
    return {"positions": number - 1, **seen}


def wrong_saves(start: str, seen: dict[str, int]) -> int:
    """How often the folder held neither the old result nor the new one, or lost it later."""
    right = {"positions", "new", "nothing" if start == "nothing" else "old"}
    return sum(count for what, count in seen.items() if what not in right)


def load_beside_a_writer(folder: Path, loads: int) -> dict[str, int]:
    """Loads while another process saves one result after the other to the same folder."""
    results = [numbered(number) for number in (1, 2, 3)]
    results[0].save(folder)
    writer = os.fork()
    if writer == 0:
        try:
            while True:
                for result in results:
                    result.save(folder)
        finally:
            os._exit(1)
    seen: Counter[str] = Counter({"loads": loads, "failed": 0, "mixed": 0})
    numbers: set[int | None] = set()
    try:
        for _ in range(loads):
            try:
                numbers.add(number_of(gst.Result.load(folder)))
            except InputError:
                seen["failed"] += 1
    finally:
        seen["mixed"] += None in numbers
        seen["results_seen"] = len(numbers)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    return dict(seen)
