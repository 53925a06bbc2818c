"""DSpar: effective resistance read off the degrees."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gst.graph.edgeset import EdgeSet, undirected
from gst.methods.registry import register
from gst.methods.sampled import SampledSparsifier


@undirected
def dspar_rates(edges: EdgeSet) -> Tensor:
    """1/d_u + 1/d_v of every edge, float64."""
    inverse = 1 / edges.degree.double()
    u, v = edges.pairs
    return inverse[u] + inverse[v]


@register("dspar")
@dataclass(kw_only=True, eq=False, repr=False)
class DSpar(SampledSparsifier):
    r"""Draws edges by the degrees of their ends, those between low-degree nodes first (Liu et al., TMLR 2023).

    .. math:: p_{uv} \propto \frac{1}{d_u} + \frac{1}{d_v}

    which bounds the effective resistance from both sides, up to the spectral gap. The sample is drawn without
    replacement and holds the exact number of edges; of a directed graph, degrees are those of the undirected graph
    beneath.

    Arguments are those of :class:`~gst.methods.sampled.SampledSparsifier`.

    >>> import gst
    >>> data = gst.load("digits")
    >>> graph = DSpar(keep=5000, weights=True, seed=1)(data)
    >>> graph.num_edges, round(float(graph.edge_weight.sum()) / data.num_edges, 1)
    (10000, 1.0)
    """

    reference: ClassVar[str] = "Liu et al., TMLR 2023"
    complexity: ClassVar[str] = "O(|E|)"

    def edge_rates(self, edges: EdgeSet) -> Tensor:
        return dspar_rates(edges)
