"""One run on several processes started by ``torchrun``. In a single process every function here is trivial.

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
_TIMEOUT = timedelta(minutes=30)  # for a worker that waits for another


@contextmanager
def process_group() -> Iterator[None]:
    """Inside, the processes started by ``torchrun`` form a process group."""
    if dist.is_initialized() or _world_size() < 2:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store, number, count = next(dist.rendezvous("env://", timeout=_TIMEOUT))
    # torchrun's store survives a restart and then still holds the addresses of dead workers
    attempt = dist.PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=attempt, rank=number, world_size=count, timeout=_TIMEOUT)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _world_size() -> int:
    """The number of processes according to the environment, whose variables must suffice to join them."""
    variables = {name: os.environ.get(name) for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT")}
    count = _parse_integer("WORLD_SIZE", variables["WORLD_SIZE"] or "1", 1, 2**20)
    if count > 1:
        if missing := [name for name, value in variables.items() if not value]:
            raise InputError(
                f"WORLD_SIZE is {count} but {missing[0]} is not set: start with torchrun, or unset WORLD_SIZE"
            )
        _parse_integer("RANK", variables["RANK"] or "", 0, count - 1)
        _parse_integer("MASTER_PORT", variables["MASTER_PORT"] or "", 1, 65_535)
    return count


def _parse_integer(name: str, text: str, low: int, high: int) -> int:
    """The value of an environment variable as an integer in [low, high]."""
    if not (is_whole(text) and low <= int(text) <= high):
        raise InputError(f"{name} is '{shown(text)}' in the environment: a number from {low} to {high} is needed")
    return int(text)


def size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if size() > 1 else 0


def sum_(tensor: Tensor) -> Tensor:
    """Sums a tensor over all workers, in place; every worker gets the same bits."""
    if size() > 1:
        dist.all_reduce(tensor)
    return tensor


def broadcast(value: T) -> T:
    """Broadcasts the first worker's value to all."""
    if size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def share_random_seed() -> None:
    """Gives all workers the same random seed, drawn by the first one."""
    if size() > 1:
        randomness.reseed(broadcast(int(torch.randint(2**62, (), generator=randomness.generator()))))


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Sums the gradients over all workers; None counts as zero."""
    if size() == 1:
        return
    params = list(parameters)
    flat = torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in params])
    parts = sum_(flat).split([p.numel() for p in params])
    for parameter, part in zip(params, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def local_slice(length: int) -> slice:
    """This worker's contiguous share of ``length`` items."""
    return slice(length * rank() // size(), length * (rank() + 1) // size())
