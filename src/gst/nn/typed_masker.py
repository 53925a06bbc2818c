"""The edge masker Ψ of typed graphs."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gst.base.randomness import generator
from gst.graph.edgeset import EdgeSet
from gst.graph.relations import Schema
from gst.graph.typed import TypedEdges
from gst.nn.edge_mlp import edge_mlp
from gst.nn.features import linear
from gst.nn.layers import glorot
from gst.nn.masker import Masker


class TypedMasker(Masker):
    r"""One score per edge from the features of both ends, their types and the relation:

    .. math:: Ψ(i, j, r) = w · \mathrm{ReLU}(W_a^{τ(i)} x_i + W_b^{τ(j)} x_j + e_r + b)

    A type without features has a learned vector instead. Edges have the mean of both orders.
    """

    def __init__(self, schema: Schema, inputs: Sequence[int | None], hidden: int = 64, deviation: float = 0.01) -> None:
        nn.Module.__init__(self)
        self.schema, self.deviation = schema, deviation
        self.by_type = nn.ParameterList(
            glorot(size, 2 * hidden) if size else nn.Parameter(torch.zeros(1, 2 * hidden)) for size in inputs
        )
        self.relation = nn.Parameter(torch.empty(len(schema.relations), hidden).normal_(std=0.1, generator=generator()))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.last = nn.Parameter(torch.empty(hidden).uniform_(-1, 1, generator=generator()) / hidden**0.5)

    def forward(self, x: Sequence[object], edges: EdgeSet) -> Tensor:  # type: ignore[override]
        assert isinstance(edges, TypedEdges)
        halves = [
            weight.expand(nodes, -1) if part is None else linear(part, weight)  # type: ignore[arg-type]
            for part, weight, nodes in zip(x, self.by_type, self.schema.num_nodes, strict=True)
        ]
        target, source = torch.cat(halves).chunk(2, dim=1)
        scores, order = [], []
        for number, (pattern, ids) in enumerate(edges.patterns):
            if ids.numel():
                shifted = target + (self.bias + self.relation[number])
                one = edge_mlp(pattern, shifted, source.contiguous(), self.last)
                swapped = source + (self.bias + self.relation[number])
                scores.append((one + edge_mlp(pattern, swapped, target.contiguous(), self.last)) / 2)
                order.append(ids)
        joined = torch.cat(scores)
        return self._standard(torch.empty_like(joined).index_copy(0, torch.cat(order), joined))
