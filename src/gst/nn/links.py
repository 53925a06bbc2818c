"""Scores of links from the embeddings of their two ends."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gst.base.randomness import generator
from gst.graph.edgeset import EdgeSet
from gst.graph.pairs import Keys, draw_negatives
from gst.nn.layers import glorot
from gst.nn.network import Network

Decoder = Literal["dot", "mlp"]
PART = "link_decoder"  # the name of the decoder in a model


class LinkDecoder(nn.Module):
    r"""A perceptron on the product of both ends, so that the order of the ends does not matter:

    .. math:: s_{uv} = w · \mathrm{ReLU}(W (z_u ⊙ z_v) + b) + c
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.hidden_bias = glorot(width, width), nn.Parameter(torch.zeros(width))
        self.last, self.bias = glorot(width, 1), nn.Parameter(torch.zeros(1))

    def reset_parameters(self) -> None:
        """New weights; the caller seeds."""
        fresh = LinkDecoder(self.last.shape[0])
        for old, new in zip(self.parameters(), fresh.parameters(), strict=True):
            old.data.copy_(new.data)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden = (source * target @ self.hidden + self.hidden_bias).relu()
        return (hidden @ self.last).squeeze(-1) + self.bias


def add_decoder(module: nn.Module, width: int, decoder: str) -> None:
    """Gives a model of embeddings its decoder; the dot product needs none. The caller seeds."""
    if decoder == "mlp":
        weight = next(module.parameters())
        module.add_module(PART, LinkDecoder(width).to(weight.device, weight.dtype))


def link_scores(module: nn.Module, embeddings: Tensor, pairs: Tensor) -> Tensor:
    """[P] the score of a link between both ends of each pair, by the model's decoder or the dot product.

    >>> link_scores(nn.Identity(), torch.eye(2), torch.tensor([[0, 0], [0, 1]])).tolist()
    [1.0, 0.0]
    """
    source, target = embeddings[pairs[0]], embeddings[pairs[1]]
    decoder = getattr(module, PART, None)
    return (source * target).sum(-1) if decoder is None else decoder(source, target)


@dataclass(frozen=True)
class Pairs:
    """The pairs that a link task asks about."""

    ends: Tensor  # [2, P]
    searched: Tensor  # ids of those that a search may look at, the pairs of training
    redrawn: Tensor  # [P] negatives of training, which training draws anew every time
    known: Keys  # what training knows to be edges
    num_nodes: int

    def of(self, ids: Tensor | None, redraw: bool) -> Tensor:
        """The ends of some pairs (None: all)."""
        ends = self.ends if ids is None else self.ends[:, ids]
        if not redraw:
            return ends
        places = (self.redrawn if ids is None else self.redrawn[ids]).nonzero().flatten()
        fresh = draw_negatives(places.numel(), self.num_nodes, self.known, generator()) if places.numel() else None
        if fresh is not None:
            ends = ends.clone()
            ends[:, places[: fresh.shape[1]]] = fresh
        return ends

    def to(self, device: torch.device) -> "Pairs":
        known = Keys(self.known.sorted.to(device))
        ends, searched, redrawn = (t.to(device) for t in (self.ends, self.searched, self.redrawn))
        return Pairs(ends, searched, redrawn, known, self.num_nodes)


class LinkNetwork:
    """A network of embeddings whose answers are the scores of pairs: [P, 1], one row for each pair of the task.

    In training mode the negative pairs of training are drawn anew in every pass; in evaluation mode they are fixed.
    """

    def __init__(self, inner: Network, pairs: Pairs) -> None:
        self.inner = inner
        self.pairs = pairs

    @property
    def module(self) -> nn.Module:
        return self.inner.module

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        """[pairs, 1] on these edges, each with its value (None: 1); ``nodes``: ids of pairs (None: all)."""
        ends = self.pairs.of(nodes, self.module.training)
        return link_scores(self.module, self.inner.logits(edges, edge_values), ends).unsqueeze(1)

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> Network:
        raise NotImplementedError("links are predicted on the whole graph")
