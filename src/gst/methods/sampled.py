"""What sparsifiers that draw edges at random share."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.graph.edgeset import EdgeSet
from gst.graph.sampling import gumbel_scores, inverse_inclusion
from gst.graph.select import budget, top_k
from gst.methods.base import TopologySparsifier


class SampledSparsifier(TopologySparsifier):
    """Draws edges at random without replacement. A subclass says only at which rate each comes.

    Args:
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.
        sample: draw at random; else keep the edges of highest rate.
        weights: give the sparse graph an ``edge_weight``: that of the data (or 1) divided by the edge's probability of
            being in the sample (:func:`gst.graph.sampling.inverse_inclusion`), so that the expected weighted adjacency is the
            adjacency of the data.
        seed: of the draw.
    """

    def __init__(
        self,
        sparsity: float | None = None,
        keep: int | None = None,
        *,
        sample: bool = True,
        weights: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(sparsity, keep, seed=seed)
        if weights and not sample:
            raise InputError("weights=True needs sample=True: edges that are not drawn have no probability to undo")
        self.sample, self.weights = sample, weights

    def edge_rates(self, edges: EdgeSet) -> Tensor:
        """What each edge's probability of being drawn first is proportional to; positive."""
        raise NotImplementedError

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        rates = self.edge_rates(edges)
        return gumbel_scores(rates, self.seed) if self.sample else rates

    def forward(self, data: Data) -> Data:
        if not self.weights:
            return super().forward(data)
        kind = torch.get_default_dtype()
        with plain_torch():
            edges = EdgeSet.from_data(data)
            rates = self.edge_rates(edges)
            scores = gumbel_scores(rates, self.seed)
            kept = budget(edges.num_edges, self.sparsity, self.keep)
            graph = edges.sparse_graph(data, top_k(scores, kept))
            factor = edges.to_columns(inverse_inclusion(rates, scores, kept), 1.0)
            factor = factor[factor > 0].to(kind)  # of the columns that stay, self-loops among them
            graph.edge_weight = graph.edge_weight * factor if "edge_weight" in graph else factor
        return graph
