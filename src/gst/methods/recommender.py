"""Sparse message graphs for recommenders: which arcs a trained LightGCN keeps, and at which weight."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.select import budget
from gst.methods.greedy.linear import balanced_weight, removal_order
from gst.nn.lightgcn import LightGCN
from gst.nn.recommend import Interactions


@dataclass(frozen=True)
class SparseRecommender:
    """A trained LightGCN on fewer arcs.

    Attributes:
        graph: a ``Data`` with the kept arcs in ``edge_index`` and their weights in ``edge_weight``.
        edge_mask: [A] which columns of ``seen.edge_index`` stay.
        model: the model that was given, untouched.
    """

    graph: Data
    edge_mask: Tensor
    model: LightGCN

    @torch.no_grad()
    def embeddings(self) -> Tensor:
        """Z of all users, then all items, on the sparse graph."""
        return self.model(self.graph.edge_index, self.graph.edge_weight)


class RecommenderPath:
    """Deploy for LightGCN: one order of removals, of which every prefix is the result for its number of arcs.

    Args:
        model: trained; its embeddings are not changed.
        seen: the interactions whose graph carries the messages.

    >>> seen = Interactions.of(torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2]]), 2, 3)
    >>> path = RecommenderPath(LightGCN(5, width=4), seen)
    >>> path.sparse(sparsity=0.5).graph.num_edges
    4
    """

    def __init__(self, model: LightGCN, seen: Interactions) -> None:
        nodes = seen.num_users + seen.num_items
        if model.embedding.shape[0] != nodes:
            raise InputError(f"the model has {model.embedding.shape[0]} embeddings, users and items are {nodes}")
        self.model, self.edge_index = model, seen.edge_index
        self.order = removal_order(model, self.edge_index, seen.num_users)

    def sparse(self, sparsity: float | None = None, keep: int | None = None) -> SparseRecommender:
        """The graph with the share ``sparsity`` of its arcs removed, or with ``keep`` arcs."""
        arcs = self.edge_index.shape[1]
        mask = torch.ones(arcs, dtype=torch.bool)
        mask[self.order[: arcs - budget(arcs, sparsity, keep)]] = False
        return with_arcs(self.model, self.edge_index, mask)


def with_arcs(model: LightGCN, edge_index: Tensor, mask: Tensor, balanced: bool = True) -> SparseRecommender:
    """The model on some arcs; ``balanced``: a target that keeps k of d arcs gives each the weight d / k."""
    nodes = model.embedding.shape[0]
    kept = edge_index[:, mask]
    weight = balanced_weight(edge_index, mask, nodes) if balanced else torch.ones(kept.shape[1])
    return SparseRecommender(Data(edge_index=kept, edge_weight=weight, num_nodes=nodes), mask, model)
