"""What a search by whole forward passes will cost, said before it begins, and how long it still takes."""

import sys
import time
import warnings

import torch

from gst.base.errors import CostWarning
from gst.methods.greedy.batched import BatchedSearch

LONG = 10.0  # seconds from which a search is announced


@torch.no_grad()
def announce(search: BatchedSearch, count: int, model: str, reason: str) -> float:
    """The seconds of ``count`` more steps, by a timed pass; if they are many, a :class:`CostWarning` says so."""
    start = time.perf_counter()
    for network in search.networks:
        network.logits(search.edges)
    each = (time.perf_counter() - start) / len(search.networks)
    passes = search.passes(count)
    if each * passes >= LONG:
        text = (
            f"{model} is no native network ({reason}): its search takes up to {passes} passes "
            f"of {1000 * each:.0f} ms, about {duration(each * passes)}"
        )
        warnings.warn(text, CostWarning, stacklevel=2)
    return each * passes


def show_time_left(done: int, of: int, seconds: float) -> None:
    """One line on a terminal, rewritten each time; nothing elsewhere."""
    if sys.stderr.isatty():
        text = f"greedy {done}/{of}, about {duration(seconds)} left" if done < of else ""
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """
    >>> duration(42.4), duration(600)
    ('42 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
