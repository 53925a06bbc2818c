"""Several processes on one run, as started by ``torchrun``; a single one is a world of its own and waits for nobody.

Every worker holds the graph, takes its share of the work and ends with the same weights, scores and mask.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist

from gst.base import randomness
from gst.base.errors import InputError
from gst.base.text import is_whole, shown

T = TypeVar("T")
_PATIENCE = timedelta(minutes=30)  # of a worker that waits for another


@contextmanager
def joined() -> Iterator[None]:
    """Inside, the processes that ``torchrun`` has started work together."""
    if dist.is_initialized() or _world_size() < 2:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store, number, count = next(dist.rendezvous("env://", timeout=_PATIENCE))
    # torchrun's store outlives a restart, with the addresses of workers that are dead by then
    attempt = dist.PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=attempt, rank=number, world_size=count, timeout=_PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _world_size() -> int:
    """How many processes ``torchrun`` says there are; refuses a description that nobody could join by."""
    known = {name: os.environ.get(name) for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT")}
    count = _whole("WORLD_SIZE", known["WORLD_SIZE"] or "1", 1, 2**20)
    if count > 1:
        if missing := [name for name, value in known.items() if not value]:
            raise InputError(
                f"WORLD_SIZE is {count} but {missing[0]} is not set: start with torchrun, or unset WORLD_SIZE"
            )
        _whole("RANK", known["RANK"] or "", 0, count - 1)
        _whole("MASTER_PORT", known["MASTER_PORT"] or "", 1, 65_535)
    return count


def _whole(name: str, text: str, low: int, high: int) -> int:
    """A number of the environment."""
    if not (is_whole(text) and low <= int(text) <= high):
        raise InputError(f"{name} is '{shown(text)}' in the environment: a number from {low} to {high} is needed")
    return int(text)


def size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if size() > 1 else 0


def sum_(tensor: Tensor) -> Tensor:
    """Adds up a tensor over all workers, in place; the same bits everywhere."""
    if size() > 1:
        dist.all_reduce(tensor)
    return tensor


def same(value: T) -> T:
    """The first worker's value, everywhere."""
    if size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box)
    return box[0]


def same_random_numbers() -> None:
    """From here on all workers draw the numbers that the first one would."""
    if size() > 1:
        randomness.reseed(same(int(torch.randint(2**62, (), generator=randomness.generator()))))


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Adds up the gradients over all workers; None counts as zero."""
    if size() == 1:
        return
    known = list(parameters)
    flat = torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in known])
    parts = sum_(flat).split([p.numel() for p in known])
    for parameter, part in zip(known, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def run_of(length: int) -> slice:
    """Which of so many things, in their order, are this worker's."""
    return slice(length * rank() // size(), length * (rank() + 1) // size())
