"""The networks Θ: stacks of gated layers with dropout before each."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.nn.features import Features, as_features, dropout, feature_dropout
from gst.nn.layers import ClusterGCNLayer, GATLayer, GCNLayer, GINLayer, SAGELayer
from gst.sparse.adjacency import Block
from gst.sparse.layouts import is_sparse


class Backbone(nn.Module):
    """A stack of gated layers.

    Called like any PyG model, ``model(x, edge_index, edge_weight)``; inside gst by :meth:`run`, on blocks that are
    built once and with one value per edge.
    """

    activation: Callable[[Tensor], Tensor] = staticmethod(torch.relu)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        *,
        layers: int = 2,
        dropout: float = 0.5,
        residual: bool = False,
        norm: str = "none",
    ) -> None:
        super().__init__()
        self.dropout, self.residual, self.outputs = dropout, residual, outputs
        last = layers - 1
        self.layers = nn.ModuleList(
            self.layer(inputs if i == 0 else hidden, outputs if i == last else hidden, last=i == last)
            for i in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(last if norm == "layer" else 0))

    def layer(self, inputs: int, outputs: int, *, last: bool) -> nn.Module:
        raise NotImplementedError

    @staticmethod
    def through_activation(slope: Tensor, active: Tensor) -> Tensor:
        """The slope before the activation from the one after it and from what it gave, in place: both are used up."""
        return slope.mul_(active.sign_())

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits of all nodes; ``x`` may be of any kind of number, and a sparse tensor."""
        if isinstance(x, Tensor):
            dtype = next(self.parameters()).dtype
            x = as_features(x, dtype) if is_sparse(x) else x.to(dtype)
        edges = EdgeSet.from_edge_index(edge_index, x.shape[0], edge_weight)
        return self.run(x, edges.adjacency.blocks(len(self.layers)))

    def run(self, x: Features, blocks: list[Block], edge_values: Tensor | list[Tensor] | None = None) -> Tensor:
        """Logits of the last block's rows from the features of the first block's columns.

        ``edge_values`` is one list for all blocks, or one for each.
        """
        values = edge_values if isinstance(edge_values, list) else [edge_values] * len(blocks)
        hidden: Tensor = self.layers[0](feature_dropout(x, self.dropout, self.training), blocks[0], values[0])
        for i in range(1, len(self.layers)):
            read = dropout(self.between(i - 1, hidden), self.dropout, self.training)
            hidden = self.layers[i](read, blocks[i], values[i])
        return hidden

    def between(self, number: int, given: Tensor) -> Tensor:
        """What the next layer reads of what this one gives: normalised, if the network has norms, and activated."""
        return self.activation(self.norms[number](given) if self.norms else given)


class GCN(Backbone):
    """Graph convolutional network (Kipf & Welling, ICLR 2017)."""

    def layer(self, inputs: int, outputs: int, *, last: bool) -> nn.Module:
        return GCNLayer(inputs, outputs, residual=self.residual)


class GIN(Backbone):
    """Graph isomorphism network (Xu et al., ICLR 2019)."""

    def layer(self, inputs: int, outputs: int, *, last: bool) -> nn.Module:
        return GINLayer(inputs, outputs, residual=self.residual)


class GAT(Backbone):
    """Graph attention network (Veličković et al., ICLR 2018): ``hidden`` is the width of all heads together."""

    activation = staticmethod(functional.elu)

    @staticmethod
    def through_activation(slope: Tensor, active: Tensor) -> Tensor:
        return slope.mul_(active.clamp_(max=0).add_(1))

    def __init__(self, inputs: int, hidden: int, outputs: int, *, heads: int = 8, **rest: Any) -> None:
        if hidden % heads:
            raise InputError(f"hidden {hidden} is not a multiple of the {heads} attention heads of GAT")
        self.heads = heads
        super().__init__(inputs, hidden, outputs, **rest)

    def layer(self, inputs: int, outputs: int, *, last: bool) -> nn.Module:
        heads = 1 if last else self.heads
        return GATLayer(inputs, outputs // heads, heads, residual=self.residual)


class SAGE(Backbone):
    """GraphSAGE with the mean (Hamilton et al., NeurIPS 2017)."""

    def layer(self, inputs: int, outputs: int, *, last: bool) -> nn.Module:
        return SAGELayer(inputs, outputs)


class ClusterGCN(Backbone):
    """The network of Cluster-GCN (Chiang et al., KDD 2019)."""

    def layer(self, inputs: int, outputs: int, *, last: bool) -> nn.Module:
        return ClusterGCNLayer(inputs, outputs)


BACKBONES: dict[str, type[Backbone]] = {
    "gcn": GCN,
    "gin": GIN,
    "gat": GAT,
    "sage": SAGE,
    "cluster-gcn": ClusterGCN,
}
