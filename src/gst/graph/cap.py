"""A cap on how many neighbours a node reads: exact selection of edges with at most so many kept arcs into each node."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gst.base.arguments import check_number
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet


@dataclass(frozen=True)
class Cap:
    """Room for so many more arcs into each node.

    >>> index = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 1]])
    >>> cap = Cap.of(EdgeSet.from_edge_index(index, num_nodes=4), 2)
    >>> cap.capacity, cap.top_k(torch.tensor([0.0, 3.0, 1.0, 2.0]), 2).tolist()  # arcs 0 → 1, 1 → 0, 2 → 0, 3 → 0
    (3, [False, True, False, True])
    """

    room: Tensor  # [N]
    target: Tensor  # [E] the node that each arc enters

    @classmethod
    def of(cls, edges: EdgeSet, limit: int) -> "Cap":
        """At most ``limit`` arcs into every node; a pair has two, so edges must be arcs."""
        assert edges.directed, "a cap is for edges that are arcs"
        target = edges.pairs[1]
        return cls(torch.full((edges.num_nodes,), limit, device=target.device), target)

    @property
    def capacity(self) -> int:
        """The largest number of arcs that can stay."""
        return int(torch.minimum(torch.bincount(self.target, minlength=self.room.numel()), self.room).sum())

    def without(self, keep_mask: Tensor) -> "Cap":
        """The room that is left beside these edges."""
        return replace(self, room=self.room - torch.bincount(self.target[keep_mask], minlength=self.room.numel()))

    def among(self, seen: Tensor) -> "Cap":
        """The same room for these edges alone."""
        return replace(self, target=self.target[seen])

    def top_k(self, scores: Tensor, k: int, candidates: Tensor | None = None) -> Tensor:
        """Mask of the edges of highest score that fit, at most ``k``; ties go to the lower id.

        To take the next best edge that fits is the best there is: room at single nodes is a partition matroid.
        ``candidates``: mask of the edges to choose from; None: all.
        """
        order = torch.sort(scores, descending=True, stable=True).indices
        if candidates is not None:
            order = order[candidates[order]]
        target = self.target[order]
        order = order[place_in_group(target) < self.room[target]][:k]
        return torch.zeros(scores.shape, dtype=torch.bool, device=scores.device).index_fill_(0, order, True)

    def exchange(self, keep_mask: Tensor, drop: Tensor, count: int, grow: Tensor) -> Tensor:
        """:func:`~gst.graph.select.exchange` within the room; where too few pruned edges fit, dropped ones return."""
        total = int(keep_mask.sum())
        stays = self.top_k(drop, total - count, keep_mask)
        grown = stays | self.without(stays).top_k(grow, count, ~keep_mask)
        return grown | self.without(grown).top_k(drop, total - int(grown.sum()), keep_mask & ~stays)


def place_in_group(group: Tensor) -> Tensor:
    """How many elements of the same group come before each.

    >>> place_in_group(torch.tensor([1, 0, 1, 1, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = torch.sort(group, stable=True).indices
    sizes = torch.bincount(group)
    first = sizes.cumsum(0) - sizes
    place = torch.empty_like(group)
    place[order] = torch.arange(group.numel(), device=group.device) - first[group[order]]
    return place


def check_max_degree(max_degree: Any) -> None:
    """Refuses what is no number of neighbours."""
    if max_degree is not None:
        check_number("max_degree", max_degree, "the largest number of neighbours that a node reads", int)
        if not 1 <= max_degree < 2**31:
            raise InputError(f"max_degree = {max_degree}: a number of neighbours from 1 on is needed")


def capped_budget(edges: EdgeSet, max_degree: int | None, sparsity: Any, keep: int | None) -> int:
    """Number of edges to keep, which has to fit; with a cap alone, as many as fit."""
    if max_degree is None:
        return edges.budget(sparsity, keep)
    capacity = Cap.of(edges, max_degree).capacity
    if sparsity is None and keep is None:
        return capacity
    num_kept = edges.budget(sparsity, keep)
    if num_kept > capacity:
        raise InputError(
            f"max_degree = {max_degree} leaves room for {capacity} of {edges.num_edges} arcs, and {num_kept} are to "
            f"stay: take keep = {capacity} at most, or max_degree alone"
        )
    return num_kept
