"""Pairs of nodes: sets of them, and random ones that are not in a set."""

import torch
from torch import Tensor

from gst.base.errors import InputError

_TRIES = 20  # rounds of drawing pairs anew that turned out to be known


class Keys:
    """A set of unordered pairs of nodes that answers for many at once."""

    def __init__(self, sorted_keys: Tensor) -> None:
        self.sorted = sorted_keys

    @classmethod
    def of(cls, pairs: Tensor) -> "Keys":
        return cls(pair_keys(pairs).unique())

    def has(self, pairs: Tensor) -> Tensor:
        """Whether each of these pairs, in either order, is in the set."""
        keys = pair_keys(pairs)
        if self.sorted.numel() == 0:
            return torch.zeros_like(keys, dtype=torch.bool)
        place = torch.searchsorted(self.sorted, keys).clamp_(max=self.sorted.numel() - 1)
        return self.sorted[place] == keys


def pair_keys(pairs: Tensor) -> Tensor:
    """One number for each unordered pair of nodes (ids below 2³¹)."""
    return pairs.amin(0) * 2**31 + pairs.amax(0)


def draw_negatives(count: int, num_nodes: int, known: Keys, generator: torch.Generator | None) -> Tensor:
    """Pairs of two different nodes, uniform over those that are not ``known``; repetition is possible.

    Fewer than ``count`` only if drawing does not find them, in a graph that has nearly all edges.
    """
    device = known.sorted.device
    found = [torch.zeros(2, 0, dtype=torch.long, device=device)]
    missing = count
    for _ in range(_TRIES):
        if missing == 0:
            break
        pairs = torch.randint(num_nodes, (2, missing), generator=generator).to(device)
        pairs = pairs[:, (pairs[0] != pairs[1]) & ~known.has(pairs)]
        found.append(pairs)
        missing -= pairs.shape[1]
    if missing == count:
        raise InputError("the graph has an edge between nearly all nodes: no pair without one was found")
    return torch.cat(found, 1)
