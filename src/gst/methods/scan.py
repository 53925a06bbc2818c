"""SCAN: edges inside dense neighbourhoods."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet, undirected
from gst.graph.triangles import triangles
from gst.methods.base import TopologySparsifier
from gst.methods.registry import register


@undirected
def scan_scores(edges: EdgeSet) -> Tensor:
    """Structural similarity (t + 1) / sqrt((d_u + 1)(d_v + 1)) of every edge, float64."""
    u, v = edges.pairs
    degree = edges.degree + 1
    root = np.sqrt((degree[u] * degree[v]).cpu().numpy())  # rounds correctly, which torch's need not do
    return (triangles(edges) + 1) / torch.from_numpy(root).to(u.device)


@register("scan")
@dataclass(kw_only=True, eq=False, repr=False)
class SCAN(TopologySparsifier):
    r"""Keeps the edges of highest structural similarity (Xu et al., KDD 2007).

    .. math:: \sigma(u, v) = \frac{t_{uv} + 1}{\sqrt{(d_u + 1)(d_v + 1)}}

    with t the triangles on the edge and d the degrees; of a directed graph, those of the undirected graph beneath.

    Arguments are those of :class:`~gst.methods.base.TopologySparsifier`; nothing is random.

    >>> import gst
    >>> data = gst.load("digits")
    >>> SCAN(keep=100)(data).num_edges
    200
    """

    reference: ClassVar[str] = "Xu et al., KDD 2007"
    complexity: ClassVar[str] = "O(|E|^1.5)"

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        return scan_scores(edges)
