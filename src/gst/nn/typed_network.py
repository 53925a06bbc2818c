"""Models bound to one typed graph; their logits are those of the target's nodes."""

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.relations import Schema
from gst.graph.typed import TypedEdges, typed_subgraph
from gst.nn.network import Network
from gst.nn.own_input import check_outputs
from gst.nn.rgcn import RGCN, TypedBlocks, TypedFeatures
from gst.nn.typed_gate import check_typed_model, typed_gated
from gst.nn.typed_model import in_dtype_of, target_rows, typed_call


class _Whole:
    """A network that sees the whole graph at once."""

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> Network:
        raise InputError("typed graphs are trained in full batches: take batch full")


class TypedNative(_Whole):
    """R-GCN, on the fast path."""

    def __init__(self, module: RGCN, x: TypedFeatures, blocks: TypedBlocks) -> None:
        self.module = module
        self.x = x
        self.blocks = blocks
        self.gates = ""  # why edges cannot be gated: they can

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        assert isinstance(edges, TypedEdges)
        values = None if edge_values is None else edges.to_columns(edge_values, 1.0)
        logits = self.module.run(self.x, self.blocks.of(edges), values)
        return logits if nodes is None else logits[nodes]


class TypedOwn(_Whole):
    """A user's own model of a typed graph."""

    def __init__(self, module: nn.Module, data: HeteroData, schema: Schema, classes: int | None = None) -> None:
        self.module = module
        self.schema = schema
        self.data = in_dtype_of(module, data)
        outputs, self.gates = check_typed_model(module, self.data, schema)
        check_outputs(module, outputs, classes)
        self._last: tuple[EdgeSet, HeteroData] | None = None  # consecutive epochs ask for the same edges

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        assert isinstance(edges, TypedEdges)
        graph = self._graph(edges)
        call = typed_call(self.module, graph)
        if edge_values is None:
            output = call(self.module)
        elif self.gates:
            raise InputError(f"edges of {type(self.module).__name__} cannot be gated: {self.gates}")
        else:
            columns = torch.ones(edges.union.shape[1], dtype=edge_values.dtype, device=edge_values.device)
            columns = columns.index_copy(0, edges.columns, edges.to_columns(edge_values, 1.0))
            kept = self._kept(edges)
            values = {kind: part[kept[kind]] for kind, part in self.schema.split(columns).items()}
            with typed_gated(self.module, call, values):
                output = call(self.module)
        logits = target_rows(output, self.data, self.schema, self.module)
        return logits if nodes is None else logits[nodes]

    def _kept(self, edges: TypedEdges) -> dict[tuple[str, str, str], Tensor]:
        mask = torch.zeros(edges.union.shape[1], dtype=torch.bool, device=edges.columns.device)
        mask[edges.columns] = True
        return self.schema.split(mask)

    def _graph(self, edges: TypedEdges) -> HeteroData:
        if self._last is None or self._last[0] is not edges:
            self._last = edges, typed_subgraph(self.data, self._kept(edges))
        return self._last[1]
