"""The edge masker Ψ."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gst.base.randomness import generator
from gst.graph.edgeset import EdgeSet
from gst.nn.edge_mlp import edge_mlp
from gst.nn.features import Features, linear
from gst.nn.layers import glorot
from gst.sparse.csr import Pattern
from gst.sparse.neighbours import LocalBlock


class Masker(nn.Module):
    r"""A two-layer perceptron on the features of both ends, one score per edge:

    .. math:: Ψ(i, j) = w · \mathrm{ReLU}(W_a x_i + W_b x_j + b)

    The first layer is split, so that both products are taken once per node instead of once per edge. A pair of an
    undirected graph has the mean of both orders. Scores are standardised over the edges to mean 1 and a small
    deviation, which keeps their ranking: otherwise the masker closes edges until the network is a plain perceptron.
    """

    def __init__(self, inputs: int, hidden: int = 64, deviation: float = 0.01) -> None:
        super().__init__()
        self.deviation = deviation
        self.first = glorot(inputs, 2 * hidden)  # [W_a | W_b]
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.last = nn.Parameter(torch.empty(hidden).uniform_(-1, 1, generator=generator()) / hidden**0.5)

    def forward(self, x: Features, edges: EdgeSet) -> Tensor:
        """The mask m_g of these edges, ``[E]``."""
        target, source = self._halves(x)
        return self._standard(edges.edge_mean(edge_mlp(edges.arc_pattern, target, source, self.last)))

    @torch.no_grad()
    def everywhere(self, x: Features, edges: EdgeSet) -> Tensor:
        """The same mask without gradients and without a list of arcs, for graphs of any size."""
        target, source = self._halves(x)
        pairs = Pattern(edges.pairs[0], edges.pairs[1], (edges.num_nodes, edges.num_nodes))
        scores = edge_mlp(pairs, source, target, self.last)  # rows are u, the source of the arc u → v
        if not edges.directed:
            scores = scores.add_(edge_mlp(pairs, target, source, self.last)).div_(2)
        return self._standard(scores)

    def at_entries(self, x: Features, blocks: Sequence[LocalBlock], directed: bool) -> list[Tensor]:
        """The mask of the arcs in sampled blocks, standardised over these; ``x``: of the first block's columns."""
        target, source = self._halves(x)
        scores = []
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            rows, arcs = block.block.row_columns, block.arcs()
            forward = edge_mlp(arcs, target[rows], source, self.last)
            scores.append(forward if directed else (forward + edge_mlp(arcs, source[rows], target, self.last)) / 2)
            if after is not None:  # the columns of a block are the rows of the one before it
                target, source = target[rows], source[rows]
        return list(self._standard(torch.cat(scores)).split([part.numel() for part in scores]))

    def _halves(self, x: Features) -> tuple[Tensor, Tensor]:
        target, source = linear(x, self.first).chunk(2, dim=1)
        return target + self.bias, source

    def _standard(self, scores: Tensor) -> Tensor:
        centred = scores - scores.mean()
        # added inside the root, whose gradient at 0 (a single edge, or equal scores) would be infinite
        standard = centred / (centred.square().mean() + 1e-24).sqrt()
        return 1 + self.deviation * standard.clamp(-9, 9)
