"""What sparsifiers that draw edges at random share."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.graph.edgeset import EdgeSet
from gst.graph.sampling import gumbel_scores, inverse_inclusion
from gst.graph.typed import TypedEdges
from gst.methods.base import TopologySparsifier


@dataclass(kw_only=True, eq=False, repr=False)
class SampledSparsifier(TopologySparsifier):
    """Draws edges at random without replacement. A subclass says only at which rate each comes.

    Args:
        sample: draw at random; else keep the edges of highest rate.
        weights: give the sparse graph an ``edge_weight``: that of the data (or 1) divided by the edge's probability of
            being in the sample (:func:`gst.graph.sampling.inverse_inclusion`), so that the expected weighted adjacency
            is the adjacency of the data.

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`; the seed is that of the draw.
    """

    sample: bool = True
    weights: bool = False

    def check(self) -> None:
        super().check()
        if self.weights and not self.sample:
            raise InputError("weights=True needs sample=True: edges that are not drawn have no probability to undo")

        if self.weights and self.max_degree is not None:
            raise InputError("weights=True and max_degree: under a cap no edge has a probability to undo")

    @abstractmethod
    def edge_rates(self, edges: EdgeSet) -> Tensor:
        """What each edge's probability of being drawn first is proportional to; positive."""

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        rates = self.edge_rates(edges)
        return gumbel_scores(rates, self.seed) if self.sample else rates

    def forward(self, data: Data) -> Data:
        if not self.weights:
            return super().forward(data)
        dtype = torch.get_default_dtype()
        with plain_torch():
            num_kept = self.num_kept(self.edges_of(data))
        return self._reweighted(data, num_kept, dtype)

    def reweighted(self, data: Data, num_kept: int) -> Data | None:
        return self._reweighted(data, num_kept, torch.get_default_dtype()) if self.weights and num_kept else None

    @plain_torch()
    def _reweighted(self, data: Data, num_kept: int, dtype: torch.dtype) -> Data:
        edges = self.edges_of(data)
        if isinstance(edges, TypedEdges):
            raise InputError("weights of the edges' own are for graphs of one type: leave weights off")
        rates = self.edge_rates(edges)
        scores = gumbel_scores(rates, self.seed)
        graph = edges.sparse_graph(data, self.highest(edges, scores, num_kept))
        factor = edges.to_columns(inverse_inclusion(rates, scores, num_kept), 1.0)
        factor = factor[factor > 0].to(dtype)  # of the columns that stay, self-loops among them
        graph.edge_weight = graph.edge_weight * factor if "edge_weight" in graph else factor
        return graph
