"""The networks Θ: stacks of gated layers with dropout before each."""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from gst.base.errors import InputError
from gst.base.registry import Registry
from gst.graph.edgeset import EdgeSet
from gst.nn.features import Features, as_features, dropout, feature_dropout
from gst.nn.layers import Layer
from gst.sparse.adjacency import Block
from gst.sparse.layouts import is_sparse


class Backbone(nn.Module):
    """A stack of gated layers.

    Called like any PyG model, ``model(x, edge_index, edge_weight)``; inside gst by :meth:`run`, on blocks that are
    built once and with one value per edge.

    A new backbone is one file with its layer and its stack, which ``@BACKBONES.register("name")`` registers; other
    packages add theirs by an entry point of the group ``gst.backbones``.

    Attributes:
        layer_class: the class of all layers; a stack with layers of several kinds overrides :meth:`layer` instead.
        activation: applied between two layers.
        always_residual: whether all layers have a skip connection, asked for or not.
        arguments: training settings that the constructor takes in addition to those below.
        bytes_per_arc: memory that full-batch training takes per arc, for the estimate in :mod:`gst.train.footprint`.
    """

    layer_class: ClassVar[type[Layer]]
    activation: Callable[[Tensor], Tensor] = staticmethod(torch.relu)
    always_residual: ClassVar[bool] = False
    arguments: ClassVar[tuple[str, ...]] = ()
    bytes_per_arc: ClassVar[int] = 600

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
        self.dropout = dropout
        self.residual = residual or self.always_residual
        self.outputs = outputs
        last = layers - 1
        self.layers = nn.ModuleList(
            self.layer(inputs if i == 0 else hidden, outputs if i == last else hidden, last=i == last)
            for i in range(layers)
        )
        for part in self.layers:
            if not isinstance(part, Layer):
                kind = type(part).__name__
                raise InputError(f"{type(self).__name__}.layer() returned a {kind}: it must be a gst.nn.layers.Layer")
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(last if norm == "layer" else 0))

    def layer(self, inputs: int, outputs: int, *, last: bool) -> Layer:
        """A new layer; ``last``: whether it gives the logits."""
        return self.layer_class(inputs, outputs, residual=self.residual)

    @property
    def stack(self) -> list[Layer]:
        """The layers in order."""
        return list(self.layers)  # type: ignore[arg-type]

    @property
    def sequential(self) -> bool:
        """Whether each layer reads just the one before it: not known of a subclass that overrides :meth:`run`."""
        return type(self).run is Backbone.run and type(self).between is Backbone.between

    @property
    def described(self) -> bool:
        """Whether layers, norms and activation say all about the network; else only :meth:`run` does."""
        return self.sequential and all(layer.described for layer in self.stack)

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits of all nodes; ``x`` may be of any dtype, and a sparse tensor."""
        if isinstance(x, Tensor):
            dtype = next(self.parameters()).dtype
            x = as_features(x, dtype) if is_sparse(x) else x.to(dtype)
        edges = EdgeSet.from_edge_index(edge_index, x.shape[0], edge_weight)
        return self.run(x, edges.adjacency.blocks(len(self.layers)))

    def run(self, x: Features, blocks: list[Block], edge_values: Tensor | list[Tensor] | None = None) -> Tensor:
        """Logits of the last block's rows from the features of the first block's columns.

        ``edge_values``: one tensor for all blocks, or one for each.
        """
        values = edge_values if isinstance(edge_values, list) else [edge_values] * len(blocks)
        hidden: Tensor = self.layers[0](feature_dropout(x, self.dropout, self.training), blocks[0], values[0])
        for i in range(1, len(self.layers)):
            read = dropout(self.between(i - 1, hidden), self.dropout, self.training)
            hidden = self.layers[i](read, blocks[i], values[i])
        return hidden

    def between(self, number: int, output: Tensor) -> Tensor:
        """The input of the next layer from the output of this one: normalised, if there are norms, and activated."""
        return self.activation(self.norms[number](output) if self.norms else output)


BACKBONES = Registry[type[Backbone]]("backbone", "gst.backbones")
