"""Several processes on one run, as started by ``torchrun``; a single one is a world of its own and waits for nobody.

Every worker holds the graph, takes its share of the work and ends with the same weights, scores and mask.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist

from gst import randomness, select
from gst.errors import InputError
from gst.text import is_whole, shown

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


def top_k(scores: Tensor, k: int) -> Tensor:
    """:func:`gst.select.top_k` where every worker looks at its own run of the scores only.

    The k-th highest is found digit by digit, from counts that are added up over all workers: eight rounds of 256
    numbers, however many edges there are. Ties go to the lower id: workers hold their runs in the order of ids.
    """
    if size() == 1 or k == 0 or k >= scores.numel():
        return select.top_k(scores, k)
    part = run_of(scores.numel())
    above, ties = split_at(_keys(scores[part]), k, sum_)
    counts = torch.zeros(size(), dtype=torch.long)
    counts[rank()] = ties.sum()
    missing = k - int(sum_(above.sum()))
    mine = max(0, missing - int(sum_(counts)[: rank()].sum()))
    above[ties.nonzero().flatten()[:mine]] = True
    mask = torch.zeros(scores.shape, dtype=torch.uint8)
    mask[part] = above
    return sum_(mask).bool().to(scores.device)


def split_at(keys: Tensor, k: int, total: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Which of these keys lie above the k-th highest of all, and which are equal to it; ``total`` adds up counts."""
    prefix, left = 0, k
    alive = torch.ones(keys.shape, dtype=torch.bool)
    for shift in range(56, -8, -8):
        digit = (keys >> shift) & 255
        if shift == 56:
            digit = digit ^ 128  # of signed numbers the highest digit counts from −128
        counts = total(torch.bincount(digit[alive], minlength=256))
        higher = counts.flip(0).cumsum(0).flip(0)  # keys with this digit or a higher one
        chosen = int((higher >= left).nonzero().max())
        left -= int(higher[chosen] - counts[chosen])
        alive &= digit == chosen
        prefix = (prefix << 8) | ((chosen ^ 128) if shift == 56 else chosen)
    threshold = prefix - (1 << 64) if prefix >= 1 << 63 else prefix
    return keys > threshold, alive


def _keys(scores: Tensor) -> Tensor:
    """int64 in the order of the scores; NaN above all numbers, −0 equal to 0."""
    bits = (scores.detach().cpu().double() + 0.0).view(torch.int64)
    keys = bits ^ ((bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF)
    return keys.masked_fill_(scores.cpu().isnan(), 2**63 - 1)
