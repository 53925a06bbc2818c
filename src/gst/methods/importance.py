"""The user's own scores."""

from typing import Any

import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.methods.base import TopologySparsifier


def mean_over_columns(edges: EdgeSet, scores: Tensor) -> Tensor:
    """One score per edge from one per column of ``edge_index``, float64; those of self-loops are left out."""
    real = edges.column_edge >= 0
    edge = edges.column_edge[real]
    total = torch.zeros(edges.num_edges, dtype=torch.float64, device=edge.device)
    total.index_add_(0, edge, scores.to(edge.device).double()[real])
    return total / torch.bincount(edge, minlength=edges.num_edges)


class ImportanceScores(TopologySparsifier):
    """Keeps the edges of highest score, the scores being yours.

    Args:
        scores: one number per column of ``edge_index``, of which an edge gets the mean over its arcs and duplicates; or
            one per edge in the order of :class:`~gst.graph.edgeset.EdgeSet`. Infinite means surely or never, NaN is refused.
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.

    >>> from torch_geometric.data import Data
    >>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> ImportanceScores(torch.tensor([0.0, 1.0, 0.9, 0.3]), keep=1)(data).edge_index.tolist()
    [[1, 2], [2, 1]]
    """

    def __init__(self, scores: Any, sparsity: float | None = None, keep: int | None = None, *, seed: int = 0) -> None:
        super().__init__(sparsity, keep, seed=seed)
        try:
            self.scores = torch.as_tensor(scores).detach()
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"scores is a {type(scores).__name__}: a tensor of numbers is needed") from error
        if self.scores.dim() != 1 or self.scores.is_complex():
            got = f"{list(self.scores.shape)} of {self.scores.dtype}"
            raise InputError(f"scores has shape {got}: one real number per column of edge_index is needed")

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        columns = edges.column_edge.numel()
        if self.scores.numel() == columns:
            scores = mean_over_columns(edges, self.scores)
        elif self.scores.numel() == edges.num_edges:
            scores = self.scores.double().to(edges.pairs.device)
        else:
            raise InputError(
                f"scores has {self.scores.numel()} numbers: {columns} are needed, one per column of edge_index, "
                f"or {edges.num_edges}, one per edge"
            )
        broken = scores.isnan().nonzero()
        if broken.numel():
            u, v = edges.pairs[:, int(broken[0])].tolist()
            raise InputError(f"scores is NaN at the edge of nodes {u} and {v} ({broken.numel()} such edges)")
        return scores
