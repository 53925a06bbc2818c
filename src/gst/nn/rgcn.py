"""R-GCN: Schlichtkrull et al., Modeling relational data with graph convolutional networks, ESWC 2018."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from gst.graph.relations import EdgeType, Schema
from gst.graph.typed import TypedEdges
from gst.nn.features import Features, as_features, dropout, feature_dropout, linear
from gst.nn.layers import glorot, sums_first
from gst.sparse.csr import Pattern, row_sum, spmm

TypedFeatures = Sequence[Features | None]  # of each node type in the order of the schema; None: it has none


@dataclass(frozen=True)
class TypedBlock:
    """The columns of one edge type as a matrix: row = target, column = source."""

    pattern: Pattern
    position: Tensor  # of each entry among the columns of its EdgeSet
    weight: Tensor | None  # edge_weight of each entry; None: 1


class TypedBlocks:
    """Makes the blocks of any subset of the edges of a typed graph; columns are sorted once."""

    def __init__(self, edges: TypedEdges) -> None:
        schema, self.weight = edges.schema, edges.column_weight
        self.total = edges.union.shape[1]
        self.parts: list[tuple[Tensor, Tensor, Tensor, tuple[int, int]]] = []
        for source, _, target in schema.edge_types:
            part = schema.slices[(source, _, target)]
            shift = torch.tensor([[schema.offset[source]], [schema.offset[target]]])
            col, row = edges.union[:, part] - shift
            order = torch.sort(row * schema.size[source] + col, stable=True).indices
            self.parts.append((row[order], col[order], order + part.start, (schema.size[target], schema.size[source])))
        self._last: tuple[TypedEdges, list[TypedBlock]] | None = None  # consecutive epochs ask for the same edges

    def of(self, edges: TypedEdges) -> list[TypedBlock]:
        if self._last is None or self._last[0] is not edges:
            self._last = edges, self._make(edges)
        return self._last[1]

    def _make(self, edges: TypedEdges) -> list[TypedBlock]:
        device = edges.columns.device
        position = torch.full((self.total,), -1)
        position[edges.columns.cpu()] = torch.arange(edges.columns.numel())
        blocks = []
        for row, col, column, shape in self.parts:
            place = position[column]
            here = place >= 0
            pattern = Pattern(row[here].to(device), col[here].to(device), shape)
            weight = None if self.weight is None else self.weight[column[here]].to(device)
            blocks.append(TypedBlock(pattern, place[here].to(device), weight))
        return blocks


class RelationalLayer(nn.Module):
    r"""The mean over the remaining neighbours of every relation, each with weights of its own, beside the node itself.

    .. math:: x_i W_{τ(i)} + b_{τ(i)} + \sum_r \frac{\sum_j m_{ij} g_{ij} x_j}{\sum_j m_{ij} g_{ij}} W_r
    """

    def __init__(self, ends: Mapping[int, tuple[int, int]], types: Sequence[int], inputs: int, outputs: int) -> None:
        super().__init__()
        self.ends = dict(ends)  # of every edge type that the layer passes messages along: its source and target type
        self.root = nn.ParameterDict({str(t): glorot(inputs, outputs) for t in types})
        self.bias = nn.ParameterDict({str(t): nn.Parameter(torch.zeros(outputs)) for t in types})
        self.weight = nn.ParameterDict({str(kind): glorot(inputs, outputs) for kind in ends})

    def forward(
        self, x: Mapping[int, Tensor], blocks: Sequence[TypedBlock], values: Tensor | None
    ) -> dict[int, Tensor]:
        out = {int(t): x[int(t)] @ self.root[t] + self.bias[t] for t in self.root}
        for kind, (source, target) in self.ends.items():
            block = blocks[kind]
            if block.pattern.nnz:
                entries, weight = mean_entries(block, values, x[source]), self.weight[str(kind)]
                first = sums_first(*block.pattern.shape, block.pattern.nnz, *weight.shape)
                part = spmm(block.pattern, entries, x[source] if first else x[source] @ weight)
                out[target] = out[target] + (part @ weight if first else part)
        return out


def mean_entries(block: TypedBlock, values: Tensor | None, like: Tensor) -> Tensor:
    """The entries of a block, divided by the sum of their row, so that the matrix takes means.

    The divisor is at least half the least weight: a node that has lost all its edges has mean 0, and a gradient in each
    of them.
    """
    entries = like.new_ones(block.pattern.nnz) if values is None else values[block.position].to(like.dtype)
    if block.weight is not None:
        entries = entries * block.weight.to(like.dtype)
    least = 1.0 if block.weight is None else float(block.weight.min())
    return entries / row_sum(block.pattern, entries).clamp(min=least / 2)[block.pattern.row]


class RGCN(nn.Module):
    """A stack of relational layers over a projection of the features; types without features get learned vectors.

    Only what the target's scores depend on is computed: a layer has no weights for types and relations that no later
    layer reads.
    """

    def __init__(
        self,
        schema: Schema,
        inputs: Sequence[int | None],
        hidden: int,
        outputs: int,
        *,
        layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.schema, self.outputs, self.dropout = schema, outputs, dropout
        number = {name: i for i, name in enumerate(schema.node_types)}
        ends = {k: (number[kind[0]], number[kind[2]]) for k, kind in enumerate(schema.edge_types)}
        needed, plan = [0], list[tuple[dict[int, tuple[int, int]], list[int]]]()
        for _ in range(layers):
            read = {k: pair for k, pair in ends.items() if pair[1] in needed}
            plan.insert(0, (read, needed))
            needed = sorted({*needed, *(source for source, _ in read.values())})
        self.enter = nn.ParameterDict(
            {str(t): glorot(inputs[t] or schema.num_nodes[t], hidden) for t in needed}  # type: ignore[arg-type]
        )
        self.start = nn.ParameterDict({str(t): nn.Parameter(torch.zeros(hidden)) for t in needed if inputs[t]})
        widths = [hidden] * layers + [outputs]
        self.layers = nn.ModuleList(
            RelationalLayer(read, types, widths[i], widths[i + 1]) for i, (read, types) in enumerate(plan)
        )

    def run(self, x: TypedFeatures, blocks: Sequence[TypedBlock], column_values: Tensor | None = None) -> Tensor:
        """Logits of the target's nodes; ``column_values``: one per column of the blocks' edges (None: 1)."""
        hidden: dict[int, Tensor] = {}
        for name, weight in self.enter.items():
            given = x[int(name)]
            projected = weight
            if given is not None:
                projected = linear(feature_dropout(given, self.dropout, self.training), weight) + self.start[name]
            hidden[int(name)] = dropout(projected, self.dropout, self.training)
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, blocks, column_values)
            if number < len(self.layers) - 1:
                hidden = {t: dropout(part.relu(), self.dropout, self.training) for t, part in hidden.items()}
        return hidden[0]

    def forward(
        self,
        x_dict: Mapping[str, Tensor],
        edge_index_dict: Mapping[EdgeType, Tensor],
        edge_weight_dict: Mapping[EdgeType, Tensor] | None = None,
    ) -> Tensor:
        """Logits of the target's nodes on a typed graph with the types that the network was made for."""
        x = [None if (part := x_dict.get(name)) is None else as_features(part) for name in self.schema.node_types]
        blocks, begin = [], 0
        for kind in self.schema.edge_types:
            col, row = edge_index_dict[kind]
            shape = (self.schema.size[kind[2]], self.schema.size[kind[0]])
            order = torch.sort(row * shape[1] + col, stable=True).indices
            weight = None if edge_weight_dict is None else edge_weight_dict.get(kind)
            if weight is None and edge_weight_dict:
                weight = torch.ones(row.numel())
            blocks.append(
                TypedBlock(
                    Pattern(row[order], col[order], shape), order + begin, None if weight is None else weight[order]
                )
            )
            begin += row.numel()
        return self.run(x, blocks)


def typed_features(data: HeteroData, schema: Schema, device: torch.device | None = None) -> list[Features | None]:
    """The features of every type in the order of the schema."""
    parts = [data[name].get("x") for name in schema.node_types]
    return [None if x is None else as_features(x if device is None else x.to(device)) for x in parts]
