"""Progress on stderr, with the time left in every phase: bars on a terminal, elsewhere a line a minute."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from gst.base import jit
from gst.cli.console import err, say
from gst.train.trainer import Progress, Watcher, silent

PAUSE = 60.0  # seconds between two lines


@contextmanager
def show_progress(quiet: bool) -> Iterator[Watcher]:
    """A watcher that shows a person what is being done: phase, epoch, validation, sparsity, time left."""
    if quiet:
        yield silent
        return
    with _compiling_announced(), _bars() if err.is_terminal else _lines() as watch:
        yield watch


@contextmanager
def _bars() -> Iterator[Watcher]:
    """One bar per phase."""
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("val {task.fields[val]:5.1f}  best {task.fields[best]:5.1f}  sparsity {task.fields[sparsity]:.0%}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    bars = Bars(*columns, console=err)
    tasks: dict[str, TaskID] = {}

    def watch(step: Progress) -> None:
        fields: dict[str, Any] = {"val": step.val, "best": step.best, "sparsity": step.sparsity}
        if not tasks:  # not earlier: an error before the first epoch should print one line and no empty bars
            bars.start()
        if step.phase not in tasks or step.epoch == 1:
            tasks[step.phase] = bars.add_task(step.phase, total=step.epochs, **fields)
        bars.update(tasks[step.phase], completed=step.epoch, **fields)

    try:
        yield watch
    finally:
        if tasks:
            bars.stop()


class Lines:
    """What is known of the running phase, as a line of text."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin = clock()
        self._step: Progress | None = None
        self._first, self._since = 0, self._begin  # epoch and time at which the phase was first seen

    def watch(self, step: Progress) -> None:
        if self._step is None or (self._step.phase, self._step.epochs) != (step.phase, step.epochs):
            self._first, self._since = step.epoch, self._clock()
        self._step = step

    def line(self) -> str:
        """``anchor 120 of 200 · val 81.0 · sparsity 0% · 3:10 so far · 0:40 left``."""
        now, step = self._clock(), self._step
        if step is None:
            return f"preparing · {_time(now - self._begin)} so far"
        parts = [f"{step.phase} {step.epoch} of {step.epochs}", f"val {step.val:.1f}", f"sparsity {step.sparsity:.0%}"]
        parts.append(f"{_time(now - self._begin)} so far")
        if step.epoch == step.epochs:
            parts.append("phase done")
        elif step.epoch > self._first:
            parts.append(f"{_time((now - self._since) / (step.epoch - self._first) * (step.epochs - step.epoch))} left")
        return " · ".join(parts)


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


@contextmanager
def _lines() -> Iterator[Watcher]:
    """A line a minute, also while a single step takes longer than that, and one for every phase that is done."""
    lines, done = Lines(), threading.Event()
    finished: set[str] = set()

    def watch(step: Progress) -> None:
        lines.watch(step)
        if step.epoch == step.epochs and step.phase not in finished:  # those that are repeated many times: once
            finished.add(step.phase)
            say(lines.line(), to=err)

    def speak() -> None:
        while not done.wait(PAUSE):
            say(lines.line(), to=err)

    speaker = threading.Thread(target=speak, name="gst-progress", daemon=True)
    speaker.start()
    try:
        yield watch
    finally:
        done.set()
        speaker.join()


@contextmanager
def _compiling_announced() -> Iterator[None]:
    """One line before the first kernel is compiled."""
    announced = threading.Event()

    def announce(name: str) -> None:
        if not announced.is_set():
            announced.set()
            say("compiling kernels for their first use, up to a minute (gst warmup compiles all of them)", to=err)

    jit.listeners.append(announce)
    try:
        yield
    finally:
        jit.listeners.remove(announce)
