"""K-Neighbor: every node reads k of its neighbours."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.graph.cap import place_in_group
from gst.graph.edgeset import By, EdgeSet
from gst.methods.base import TopologySparsifier
from gst.methods.registry import METHODS, register


@register("k-neighbor")
@dataclass(kw_only=True, eq=False, repr=False)
class KNeighbor(TopologySparsifier):
    """Keeps k arcs into every node, all where it has fewer: random ones, or those of highest score.

    k is ``max_degree``. With ``sparsity`` or ``keep``, every node gets its first arc before any gets its second, and so
    on up to the budget. Edges are counted by arcs.

    Args:
        scores: the method of topology whose scores decide; ``"random"`` draws uniformly.

    The other arguments are those of :class:`~gst.methods.base.TopologySparsifier`; the seed is that of the scores.

    >>> import gst
    >>> data = gst.load("digits")
    >>> int(torch.bincount(KNeighbor(max_degree=3)(data).edge_index[1]).max())
    3
    """

    scores: str = "random"

    reference: ClassVar[str] = "Sadhanala et al., AISTATS 2016"
    takes_typed: ClassVar[bool] = False
    complexity: ClassVar[str] = "O(|E| log |E|)"

    def check(self) -> None:
        super().check()
        kind = METHODS[METHODS.resolve(self.scores)]
        if kind.kind != "topology" or issubclass(kind, KNeighbor):
            raise InputError(f"scores = {kind.name!r}: the name of a topology method is needed, such as random or scan")

    @property
    def counts_by(self) -> By:
        return "arcs"

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        """Minus the rank of an arc among those into its target, and a share of one by the scores of all arcs."""
        scores = METHODS[METHODS.resolve(self.scores)](keep=1, seed=self.seed).edge_scores(edges)
        order = torch.sort(scores, descending=True, stable=True).indices
        place = torch.arange(order.numel(), 0, -1, dtype=torch.float64, device=order.device)
        ranked = place / (order.numel() + 1) - place_in_group(edges.pairs[1][order])
        return torch.empty_like(ranked).index_copy_(0, order, ranked)
