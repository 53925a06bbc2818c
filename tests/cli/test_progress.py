"""What a person sees of a long run whose output goes to a file."""

import threading

from gst.base import jit
from gst.cli import progress
from gst.cli.progress import Lines, show_progress
from gst.train.trainer import Progress


def test_a_line_says_what_is_done_and_how_long_it_will_take():
    now = 100.0
    lines = Lines(lambda: now)
    now = 105.0
    assert lines.line() == "preparing · 0:00:05 so far"
    lines.watch(Progress("anchor", 11, 200, 70.0, 72.0, 0.0))  # resumed
    assert lines.line() == "anchor 11 of 200 · val 70.0 · sparsity 0% · 0:00:05 so far"
    now = 125.0
    lines.watch(Progress("anchor", 51, 200, 80.5, 81.0, 0.0))  # 40 epochs in 20 s
    assert lines.line() == "anchor 51 of 200 · val 80.5 · sparsity 0% · 0:00:25 so far · 0:01:14 left"
    lines.watch(Progress("anchor", 200, 200, 80.5, 81.0, 0.0))
    assert lines.line().endswith("phase done")
    now = 130.0
    lines.watch(Progress("greedy", 1, 20, 80.5, 81.0, 0.25))
    now = 140.0
    lines.watch(Progress("greedy", 2, 20, 80.5, 81.0, 0.5))
    assert lines.line() == "greedy 2 of 20 · val 80.5 · sparsity 50% · 0:00:40 so far · 0:03:00 left"


def test_lines_come_also_while_nothing_is_reported(monkeypatch, capsys):
    spoken = threading.Semaphore(0)
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    monkeypatch.setattr(progress, "say", lambda text, to: spoken.release())
    with show_progress(quiet=False) as watch:
        assert spoken.acquire(timeout=30)
        watch(Progress("anchor", 1, 2, 70.0, 70.0, 0.0))
        assert spoken.acquire(timeout=30)
    assert not [thread for thread in threading.enumerate() if thread.name == "gst-progress"]


def test_a_phase_that_is_done_has_one_line_however_often_it_is_repeated(monkeypatch):
    said = []
    monkeypatch.setattr(progress, "say", lambda text, to: said.append(text))
    with show_progress(quiet=False) as watch:
        for _ in range(3):
            for epoch in (1, 2):
                watch(Progress("prune", epoch, 2, 70.0, 70.0, 0.1))
    assert len(said) == 1 and said[0].startswith("prune 2 of 2 · val 70.0 · sparsity 10%")


def test_compiling_is_announced_once(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(progress, "say", lambda text, to: said.append(text))
    with show_progress(quiet=False):
        for listener in [*jit.listeners, *jit.listeners]:
            listener("walk")
    assert len(said) == 1 and "gst warmup" in said[0] and not jit.listeners
    with show_progress(quiet=True):
        assert not jit.listeners
