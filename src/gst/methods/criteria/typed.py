"""Scores of topology on a typed graph: on all relations as one graph, or on each alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.typed import TypedEdges
from gst.methods.criteria.topology import topology_scores

Score = Callable[[EdgeSet], Tensor]


def typed_scores(score: Score, edges: TypedEdges, scope: str) -> Tensor:
    """float64, one per edge, from a score of undirected graphs with one type.

    ``scope="union"``: of the union graph, in which parallel edges score alike. ``"relation"``: of the graph of each
    relation; these scores are on scales of their own, so they are replaced by their ranks within the relation, from 0
    to 1: one ranking over all then takes the same share of every relation.
    """
    if scope == "union":
        graph, edge = edges.simple
        return score(graph).double()[edge]
    scores = torch.empty(edges.num_edges, dtype=torch.float64, device=edges.pairs.device)
    for relation, count in enumerate(edges.counts.tolist()):
        if count:
            graph, edge, ids = edges.simple_of(relation)
            scores[ids] = ranks(score(graph).double()[edge])
    return scores


def topology_by_relation(edges: TypedEdges, mask: Tensor, **arguments: Any) -> Tensor:
    """φ_topo of every edge in the graph of its own relation, divided by the mean of that relation."""
    total = torch.zeros(edges.num_edges, dtype=torch.float64, device=edges.pairs.device)
    for relation, count in enumerate(edges.counts.tolist()):
        if count:
            graph, edge, ids = edges.simple_of(relation)
            weight = mask.new_zeros(graph.num_edges).index_add(0, edge, mask[ids].detach())
            scores = topology_scores(graph, weight, **arguments).to(total.device)[edge]
            total[ids] = scores / scores.mean().clamp(min=1e-300)
    return total


def ranks(scores: Tensor) -> Tensor:
    """The share of scores below each, ties by id as in :func:`gst.graph.select.top_k`: the first of equal is highest.

    >>> ranks(torch.tensor([2.0, 1.0, 2.0])).tolist()
    [0.6666666666666666, 0.0, 0.3333333333333333]
    """
    order = torch.sort(scores, descending=True, stable=True).indices
    rank = torch.empty(scores.shape, dtype=torch.float64, device=scores.device)
    rank[order] = torch.arange(scores.numel() - 1, -1, -1, dtype=torch.float64, device=scores.device)
    return rank / max(scores.numel(), 1)
