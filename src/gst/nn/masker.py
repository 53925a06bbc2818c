"""The edge masker Ψ."""

import torch
from torch import Tensor, nn

from gst.graph import EdgeSet
from gst.nn.edge_mlp import edge_mlp
from gst.nn.features import Features, linear
from gst.nn.layers import glorot


class Masker(nn.Module):
    r"""A two-layer perceptron on the features of both ends, one score per edge:

    .. math:: Ψ(i, j) = w · \mathrm{ReLU}(W_a x_i + W_b x_j + b)

    The first layer splits, so both products are taken once per node instead of once per edge. Pairs of an undirected
    graph take the mean of both orders. Scores are standardised over the edges to mean 1 and a small deviation: left
    free, the masker closes edges and the network behind it becomes a plain perceptron; the ranking is unchanged.
    """

    def __init__(self, inputs: int, hidden: int = 64, deviation: float = 0.01) -> None:
        super().__init__()
        self.deviation = deviation
        self.first = glorot(inputs, 2 * hidden)  # [W_a | W_b]
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.last = nn.Parameter(torch.empty(hidden).uniform_(-1, 1) / hidden**0.5)

    def forward(self, x: Features, edges: EdgeSet) -> Tensor:
        """The mask m_g of these edges, ``[E]``."""
        target, source = linear(x, self.first).chunk(2, dim=1)
        scores = edges.edge_mean(edge_mlp(edges.arc_pattern, target + self.bias, source, self.last))
        centred = scores - scores.mean()
        # added inside the root: of one edge, or of equals, the root of 0 would have an infinite slope
        standard = centred / (centred.square().mean() + 1e-24).sqrt()
        return 1 + self.deviation * standard.clamp(-9, 9)
