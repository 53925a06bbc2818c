"""Effective resistance: edges that no other path replaces."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.text import shown
from gst.graph.edgeset import EdgeSet
from gst.graph.resistance import effective_resistance
from gst.methods.registry import register
from gst.methods.sampled import SampledSparsifier

MOST = 100_000  # projections: the error is below 0.5 % by then


def resistance_rates(edges: EdgeSet, *, projections: int | None = None, seed: int = 0) -> Tensor:
    """w_e R_e of every edge, float64: the share of spanning trees that hold the edge.

    R is at least (1/d_u + 1/d_v)/2 with the weighted degrees (Lovász 1993); estimates below that are lifted to it.
    """
    weight = edges.edge_weight.double()
    resistance = effective_resistance(edges, weight, projections=projections, seed=seed).to(weight.device)
    inverse = 1 / weight.new_zeros(edges.num_nodes).index_add_(0, edges.pairs.flatten(), weight.repeat(2))
    u, v = edges.pairs
    return weight * torch.maximum(resistance, (inverse[u] + inverse[v]) / 2)


@register("effective-resistance")
@dataclass(kw_only=True, eq=False, repr=False)
class EffectiveResistance(SampledSparsifier):
    r"""Draws edges by their leverage in the graph's Laplacian (Spielman & Srivastava, STOC 2008).

    .. math:: p_{ij} \propto w_{ij} R_{ij}, \quad R_{ij} = (e_i - e_j)^\top L^+ (e_i - e_j)

    A bridge has w R = 1, an edge of a dense region next to 0. The sample is drawn without replacement and holds the
    exact number of edges; directions do not matter to R.

    Args:
        projections: number of Johnson–Lindenstrauss projections k, for a relative standard error of √(2/k) an edge;
            None: exact, which takes a linear solve a node.

    The other arguments are those of :class:`~gst.methods.sampled.SampledSparsifier`; the seed is that of the
    projections, too.

    >>> import gst
    >>> data = gst.load("digits")
    >>> EffectiveResistance(sparsity=0.4, projections=32)(data).num_edges / data.num_edges
    0.6
    """

    projections: int | None = 128

    reference: ClassVar[str] = "Spielman & Srivastava, STOC 2008"
    complexity: ClassVar[str] = "128 solves"

    def check(self) -> None:
        super().check()
        if self.projections is not None and (
            not isinstance(self.projections, int) or not 1 <= self.projections <= MOST
        ):
            value = shown(repr(self.projections))
            raise InputError(f"projections {value} is neither a number from 1 to {MOST} nor None (exact)")

    def edge_rates(self, edges: EdgeSet) -> Tensor:
        return resistance_rates(edges, projections=self.projections, seed=self.seed)
