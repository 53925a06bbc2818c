"""A model bound to one graph: logits of all nodes for any set of its edges and any edge values."""

from typing import Protocol

from torch import Tensor, nn
from torch_geometric.data import Data

from gst.graph import EdgeSet
from gst.nn.adjacency import Block
from gst.nn.backbones import Backbone
from gst.nn.compat import call_model, check_model, gated
from gst.nn.features import Features, rows


class Network(Protocol):
    """What training and criteria need of a model."""

    @property
    def module(self) -> nn.Module: ...

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        """[nodes, classes] on these edges, each with its value (None: 1); of some nodes (sorted ids) or all."""


class NativeNetwork:
    """One of our backbones, on the fast path."""

    def __init__(self, module: Backbone, x: Features) -> None:
        self.module = module
        self.x = x
        self._edges: EdgeSet | None = None  # the same edges and nodes come many epochs in a row
        self._fields: dict[int, tuple[Tensor, list[Block], Features]] = {}

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        depth = len(self.module.layers)
        if nodes is None:
            return self.module.run(self.x, edges.adjacency.blocks(depth), edge_values)
        if self._edges is not edges:
            self._edges, self._fields = edges, {}
        if id(nodes) not in self._fields:
            blocks = edges.adjacency.blocks(depth, nodes)
            self._fields[id(nodes)] = nodes, blocks, rows(self.x, blocks[0].nodes)
        _, blocks, x = self._fields[id(nodes)]
        return self.module.run(x, blocks, edge_values)


class OwnNetwork:
    """A user's own model of PyG ``MessagePassing`` layers."""

    def __init__(self, module: nn.Module, data: Data) -> None:
        check_model(module, data)
        self.module = module
        self.data = data
        self._last: tuple[EdgeSet, Data] | None = None  # the same edges come many epochs in a row

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        if self._last is None or self._last[0] is not edges:
            self._last = edges, self.data.edge_subgraph(edges.columns)
        graph = self._last[1]
        if edge_values is None:
            logits = call_model(self.module, graph)
        else:
            with gated(self.module, graph, edges.to_columns(edge_values, 1.0)):
                logits = call_model(self.module, graph)
        return logits if nodes is None else logits[nodes]
