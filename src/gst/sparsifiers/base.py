"""What every topology sparsifier shares: budget, selection, and its face as a PyG transform."""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gst.graph import EdgeSet
from gst.select import budget, top_k


class TopologySparsifier(BaseTransform):
    """Keeps the edges of highest score. A subclass says only how edges are scored.

    Args:
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.
        seed: of whatever is random.
    """

    def __init__(self, sparsity: float | None = None, keep: int | None = None, *, seed: int = 0) -> None:
        budget(1, sparsity, None if keep is None else min(keep, 1))  # a bad budget is refused before any work
        self.sparsity, self.keep, self.seed = sparsity, keep, seed

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        """One score per edge."""
        raise NotImplementedError

    def score(self, data: Data) -> Tensor:
        """float64, one per column of ``edge_index``, both arcs of a pair alike; infinite for self-loops, which stay."""
        edges = EdgeSet.from_data(data)
        return edges.to_columns(self.edge_scores(edges).double(), torch.inf)

    def select(self, edges: EdgeSet) -> tuple[Tensor, Tensor]:
        """Which edges stay, and the score of each."""
        scores = self.edge_scores(edges).double()
        return top_k(scores, budget(edges.num_edges, self.sparsity, self.keep)), scores

    def forward(self, data: Data) -> Data:
        edges = EdgeSet.from_data(data)
        return edges.sparse_graph(data, self.select(edges)[0])

    def __repr__(self) -> str:
        amount = f"sparsity={self.sparsity}" if self.keep is None else f"keep={self.keep}"
        return f"{type(self).__name__}({amount})"
