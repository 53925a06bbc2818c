"""A model bound to one graph: logits for any subset of its edges and any edge values."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.nn.backbones import Backbone
from gst.nn.features import Features, rows
from gst.nn.own_input import check_own_model, graph_for, subgraph
from gst.nn.own_model import call_model, gated
from gst.sparse.adjacency import Block


class Network(Protocol):
    """What training and criteria need from a model."""

    @property
    def module(self) -> nn.Module: ...

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        """[nodes, classes] on these edges, each with its value (None: 1); of some nodes (sorted ids) or all."""

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> "Network":
        """The same model on the subgraph induced by some nodes (sorted ids); ``ids``: the edges inside it."""


class NativeNetwork:
    """A backbone, on the fast path."""

    def __init__(self, module: Backbone, x: Features) -> None:
        self.module = module
        self.x = x
        self._edges: EdgeSet | None = None  # of the cached fields: consecutive epochs ask for the same edges and nodes
        self._fields: dict[int, tuple[Tensor, list[Block], Features]] = {}

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        depth = len(self.module.layers)
        if nodes is None:
            return self.module.run(self.x, edges.adjacency.blocks(depth), edge_values)
        if self._edges is not edges:
            self._edges = edges
            self._fields = {}
        if id(nodes) not in self._fields:
            blocks = edges.adjacency.blocks(depth, nodes)
            reached = blocks[0].nodes
            assert reached is not None
            self._fields[id(nodes)] = nodes, blocks, rows(self.x, reached)
        _, blocks, x = self._fields[id(nodes)]
        return self.module.run(x, blocks, edge_values)

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> "NativeNetwork":
        return NativeNetwork(self.module, rows(self.x, nodes))


class OwnNetwork:
    """A user's own model of PyG ``MessagePassing`` layers."""

    def __init__(self, module: nn.Module, data: Data, classes: int | None = None) -> None:
        self.module = module
        self.data = graph_for(module, data)
        check_own_model(module, self.data, classes)
        self._last: tuple[EdgeSet, Data] | None = None  # consecutive epochs ask for the same edges

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

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> "OwnPart":
        return OwnPart(self, edges, nodes, ids)


class OwnPart:
    """A user's own model on the subgraph induced by some nodes."""

    def __init__(self, whole: OwnNetwork, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> None:
        self.module = whole.module
        number = torch.full((edges.num_edges + 1,), -1, device=ids.device)  # the last one is for self-loops
        number[ids] = torch.arange(ids.numel(), device=ids.device)
        inside = torch.zeros(edges.num_nodes, dtype=torch.bool, device=ids.device)
        inside[nodes] = True
        columns = edges.columns[inside[whole.data.edge_index[:, edges.columns]].all(0)]
        self.graph = subgraph(whole.data.edge_subgraph(columns), nodes)
        self.column_edge = number[edges.column_edge[torch.searchsorted(edges.columns, columns)]]

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        if edge_values is None:
            logits = call_model(self.module, self.graph)
        else:
            values = torch.cat([edge_values, edge_values.new_ones(1)])[self.column_edge]
            with gated(self.module, self.graph, values):
                logits = call_model(self.module, self.graph)
        return logits if nodes is None else logits[nodes]

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> Network:
        raise InputError("a part of a graph is not divided again")
