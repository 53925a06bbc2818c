"""Random edges: the baseline below which no method should fall."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.methods.base import TopologySparsifier
from gst.methods.registry import register


@register("random")
@dataclass(kw_only=True, eq=False, repr=False)
class Random(TopologySparsifier):
    """Keeps edges drawn uniformly.

    >>> import gst
    >>> data = gst.load("digits")
    >>> Random(keep=100)(data).num_edges
    200
    """

    reference: ClassVar[str] = "baseline"
    complexity: ClassVar[str] = "O(|E|)"
    scores_typed: ClassVar[bool] = True

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        return torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(self.seed), dtype=torch.float64)
