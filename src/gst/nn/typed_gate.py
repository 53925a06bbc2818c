"""Gated edges for models of typed graphs: the values of :mod:`gst.nn.own_model`, relation by relation.

Layers that see one relation at a time (``HeteroConv``, ``to_hetero``, ``HANConv``), all of them joined (``HGTConv``) or
a part of all (``RGCNConv``) are told apart by the very tensors of columns that they are given.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import MeanAggregation, SumAggregation
from torch_geometric.nn.conv.rgcn_conv import masked_edge_index
from torch_geometric.utils import degree
from torch_geometric.utils.hetero import construct_bipartite_edge_index

from gst.base.errors import InputError
from gst.graph.relations import EdgeType, Schema
from gst.nn.own_model import TOLERANCE, Gate, hooked, layers_of, undisturbed
from gst.nn.typed_model import TypedCall, target_rows, typed_call

Values = Mapping[EdgeType, Tensor]


@contextmanager
def typed_gated(model: nn.Module, call: TypedCall, values: Values) -> Iterator[None]:
    """Inside, the call sees column e of relation r with value ``values[r][e]``; see :func:`gst.nn.own_model.gated`."""
    with hooked(model, TypedGate(model, call, values)):
        yield


class TypedGate(Gate):
    """The values of one gated call on a typed graph."""

    replaced: ClassVar[Any] = (*Gate.replaced, construct_bipartite_edge_index, masked_edge_index)

    def __init__(self, model: nn.Module, call: TypedCall, values: Values) -> None:
        self.known = [(index, torch.cat([values[kind] for kind in kinds])) for index, kinds in call.columns]
        self._watch(model)

    def match(self, index: Any, caller: nn.Module | None = None) -> Any:
        if self.active and isinstance(index, Tensor) and index.layout == torch.strided:
            for columns, values in self.known:
                if _is_part(index, columns):
                    return values
            found = [values for columns, values in self._variants(index.shape[-1]) if _equals(index, columns)]
            if found and all(torch.equal(found[0], other) for other in found[1:]):
                return found[0]
            if found:
                raise InputError("two relations have the same columns, and a layer hides which of them it works on")
        if caller is not None:
            raise InputError(
                f"{type(caller).__name__} must take the edge_index of a relation as it is; change edges before the call"
            )
        return None

    def _variants(self, width: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Columns and values as layers rewrite them: without self-loops of the data, with one added for every node."""
        for columns, values in self.known:
            yield columns, values
            plain = columns[0] != columns[1]
            for mask in (torch.ones_like(plain), plain):
                nodes = width - int(mask.sum())  # as many self-loops as there are columns too many
                if nodes > 0:
                    loops = torch.arange(nodes, device=columns.device).expand(2, -1)
                    yield torch.cat([columns[:, mask], loops], 1), torch.cat([values[mask], values.new_ones(nodes)])

    def construct_bipartite_edge_index(self, edge_index_dict: Any, src_offset_dict: Any, *args: Any, **kw: Any) -> Any:
        joined, attributes = construct_bipartite_edge_index(edge_index_dict, src_offset_dict, *args, **kw)
        parts = [self.match(edge_index_dict[kind]) for kind in src_offset_dict]
        if all(part is not None for part in parts):
            self.known.append((joined, torch.cat(parts)))
        return joined, attributes

    def masked_edge_index(self, edge_index: Any, edge_mask: Tensor) -> Any:
        part, values = masked_edge_index(edge_index, edge_mask), self.match(edge_index)
        if values is not None:
            self.known.append((part, values[edge_mask]))
        return part


def _is_part(index: Tensor, columns: Tensor) -> bool:
    """Whether these are the very columns, or one row of them."""
    rows = (columns,) if index.dim() == 2 else tuple(columns)
    return any(index.shape == row.shape and index.data_ptr() == row.data_ptr() for row in rows)


def _equals(index: Tensor, columns: Tensor) -> bool:
    if index.shape[-1] != columns.shape[1]:
        return False
    return any(torch.equal(index, c) for c in ((columns, columns.flip(0)) if index.dim() == 2 else columns))


def check_typed_model(model: nn.Module, data: HeteroData, schema: Schema) -> tuple[int, str]:
    """The number of outputs, and the reason why edges cannot be gated; empty if they can.

    Measured in evaluation mode, as :func:`gst.nn.own_model.check_model` does: values 0, 1, 2 of the columns must equal
    0, 1, 2 copies of them. The model and the state of the random generators are not changed.
    """
    name = type(model).__name__
    copied, values = _trial(data, schema)
    with undisturbed(model):
        with torch.no_grad():
            output = target_rows(typed_call(model, data)(model), data, schema, model)
            fewer = target_rows(typed_call(model, _without_edges(data))(model), data, schema, model)
        if torch.equal(output, fewer):
            raise InputError(f"the output of {name} does not change when edges are removed; does it keep a cache?")
        return output.shape[1], _reason(model, data, copied, values, schema)


def _reason(model: nn.Module, data: HeteroData, copied: HeteroData, values: dict[EdgeType, Tensor], s: Schema) -> str:
    for layer in layers_of(model):
        if not isinstance(layer.aggr_module, SumAggregation | MeanAggregation | None):
            return f"{type(layer).__name__} has aggr={layer.aggr!r}; only 'sum' and 'mean' can be gated"
    try:
        with torch.no_grad():
            expected = target_rows(typed_call(model, copied)(model), copied, s, model)
        call = typed_call(model, data)
        with torch.enable_grad(), typed_gated(model, call, values):
            output = target_rows(call(model), data, s, model)
    except InputError as error:
        return str(error)
    gap = float((output.detach() - expected).abs().max() / expected.abs().max().clamp(min=1))
    if not gap <= TOLERANCE:
        return f"values 0, 1, 2 are not the same as 0, 1, 2 copies of an edge (difference {gap:.2g})"
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(0)).to(output)
    grads = torch.autograd.grad(output, list(values.values()), weights, allow_unused=True)
    removed = [grad[value == 0] for grad, value in zip(grads, values.values(), strict=True) if grad is not None]
    if not removed or not all(part.isfinite().all() for part in removed) or not any(part.any() for part in removed):
        return "removed edges have no finite, non-zero gradient to bring them back"
    return ""


def _trial(data: HeteroData, schema: Schema) -> tuple[HeteroData, dict[EdgeType, Tensor]]:
    """``data`` with 0, 1 or 2 copies of each column, and these numbers as values; some nodes lose all columns."""
    copied, values = _without_edges(data), {}
    dtype = next((data[n].x.dtype for n in data.node_types if "x" in data[n] and data[n].x.is_floating_point()), None)
    for number, kind in enumerate(schema.edge_types):
        source, target = data[kind].edge_index
        copies = torch.randint(3, (target.numel(),), generator=torch.Generator().manual_seed(number))
        rarest = target[degree(target)[target].argmin()]
        copies[target.cpu() == int(rarest)] = 0
        if kind[0] == kind[2]:
            copies[(source == target).cpu()] = 1
        repeated = torch.arange(copies.numel()).repeat_interleave(copies).to(target.device)
        for name, value in data[kind].items():
            if name == "edge_index":
                copied[kind].edge_index = value[:, repeated]
            elif isinstance(value, Tensor) and data[kind].is_edge_attr(name):
                copied[kind][name] = value[repeated]
        values[kind] = copies.to(dtype or torch.get_default_dtype()).to(target.device).requires_grad_()
    return copied, values


def _without_edges(data: HeteroData) -> HeteroData:
    return data.edge_subgraph({kind: data[kind].edge_index.new_zeros(0) for kind in data.edge_types})
