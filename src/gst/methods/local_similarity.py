"""Local similarity: every node keeps the neighbours most like itself."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.graph.edgeset import EdgeSet, undirected
from gst.graph.triangles import triangles
from gst.methods.base import TopologySparsifier
from gst.methods.registry import register


@undirected
def local_similarity_scores(edges: EdgeSet) -> Tensor:
    """max over both ends of 1 − ln(rank) / ln(d), the rank by Jaccard similarity among the end's edges, float64.

    Of equal similarities the neighbour with the lower id comes first, as in NetworKit.
    """
    u, v = edges.pairs
    count = triangles(edges)
    jaccard = count.double() / (edges.degree[u] + edges.degree[v] - count).double()
    # edges are numbered by (u, v): at either end, the stable order of equal ones is that of the neighbours' ids
    order = torch.sort(jaccard, descending=True, stable=True).indices
    scores = _scores(order.cpu().numpy(), u.cpu().numpy(), v.cpu().numpy(), edges.degree.cpu().numpy())
    return torch.from_numpy(scores).to(u.device)


@njit(cache=True)
def _scores(order: np.ndarray, u: np.ndarray, v: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Going through all edges from the best to the worst, the rank at a node is how many of its edges have passed."""
    logs = np.array([math.log(rank) for rank in range(1, degree.max() + 1)])
    passed = np.zeros(degree.size, np.int64)  # one less than the rank, as are positions in the table
    scores = np.ones(order.size, np.float64)
    for e in order:
        x, y = u[e], v[e]
        if passed[x] > 0 and passed[y] > 0:
            at_x = 1 - logs[passed[x]] / logs[degree[x] - 1]
            at_y = 1 - logs[passed[y]] / logs[degree[y] - 1]
            scores[e] = max(at_x, at_y)
        passed[x] += 1
        passed[y] += 1
    return scores


@register("local-similarity")
@dataclass(kw_only=True, eq=False, repr=False)
class LocalSimilarity(TopologySparsifier):
    r"""Keeps the edges that rank highest among the edges of one of their ends (Satuluri et al., SIGMOD 2011).

    .. math:: s(u, v) = \max_{x \in \{u, v\}} 1 - \frac{\ln r_x(uv)}{\ln d_x}, \quad
              J(u, v) = \frac{t_{uv}}{d_u + d_v - t_{uv}}

    with r_x the rank of the edge among those of x by the Jaccard similarity J, 1 the highest, t the triangles on the
    edge and d the degrees; s = 1 where d_x = 1. Every node keeps its best edge longest. Of a directed graph, all is
    taken from the undirected graph beneath.

    Arguments are those of :class:`~gst.methods.base.TopologySparsifier`; nothing is random.

    >>> import gst
    >>> data = gst.load("digits")
    >>> LocalSimilarity(sparsity=0.4)(data).num_edges / data.num_edges
    0.6
    """

    reference: ClassVar[str] = "Satuluri et al., SIGMOD 2011"
    complexity: ClassVar[str] = "O(|E|^1.5)"

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        return local_similarity_scores(edges)
