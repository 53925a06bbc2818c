"""How a user's model of a typed graph is called, and what it must return."""

import inspect
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from gst.base.errors import InputError
from gst.base.randomness import redirect_torch_random
from gst.graph.relations import EdgeType, Schema

_GRAPHS = ("data", "batch", "graph")


@dataclass(frozen=True)
class TypedCall:
    """A model's arguments on one typed graph, and which columns of the data each ``edge_index`` among them has."""

    arguments: dict[str, Any]
    columns: list[tuple[Tensor, tuple[EdgeType, ...]]]
    positional: bool = False

    def __call__(self, model: nn.Module) -> Any:
        with redirect_torch_random():
            return model(*self.arguments.values()) if self.positional else model(**self.arguments)


def typed_call(model: nn.Module, data: HeteroData) -> TypedCall:
    """The arguments that ``model.forward`` names.

    ``x_dict``, ``edge_index_dict`` and every other ``…_dict`` of the data; ``x`` and ``edge_index``, as ``to_hetero``
    has them, mean the same. A model that names ``edge_type`` gets the graph as ``data.to_homogeneous()`` numbers it.
    One whose only required parameter is named data, batch or graph gets ``data``.
    """
    parameters = [p for p in inspect.signature(model.forward).parameters.values() if p.kind is not p.VAR_KEYWORD]
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    names = {p.name for p in parameters}
    by_type: list[tuple[Tensor, tuple[EdgeType, ...]]] = [(data[kind].edge_index, (kind,)) for kind in data.edge_types]
    if len(required) == 1:
        annotation = getattr(required[0].annotation, "__name__", str(required[0].annotation))
        if required[0].name in _GRAPHS or annotation.split(".")[-1] == "HeteroData":
            return TypedCall({required[0].name: data}, by_type, positional=True)
    if "edge_type" in names:
        whole = _homogeneous(data, "x" in {p.name for p in required})
        known = {"num_nodes": whole.num_nodes, **whole.to_dict()}
        columns = [(whole.edge_index, tuple(data.edge_types))]
    else:
        known = _dictionaries(data)
        columns = by_type
    for name in (p.name for p in required if p.name not in known):
        raise InputError(f"{type(model).__name__}.forward needs {name!r}, but the data has only {_listed(known)}")
    return TypedCall({p.name: known[p.name] for p in parameters if p.name in known}, columns)


def _listed(known: dict[str, Any]) -> str:
    return ", ".join(sorted(known))


def _dictionaries(data: HeteroData) -> dict[str, Any]:
    """Every attribute that several types have, by type: ``x_dict``, ``edge_index_dict``, …"""
    known: dict[str, Any] = {}
    for store in data.stores[1:]:
        for name, value in store.items():
            known.setdefault(f"{name}_dict", {})[store._key] = value
    known["num_nodes_dict"] = {name: data[name].num_nodes for name in data.node_types}
    return {**{name.removesuffix("_dict"): value for name, value in known.items()}, **known}


def _homogeneous(data: HeteroData, needs_x: bool) -> Data:
    plain = HeteroData()
    for name in data.node_types:
        plain[name].num_nodes = data[name].num_nodes
        if needs_x:
            if "x" not in data[name]:
                raise InputError(f"the model needs x of all nodes, but {name!r} has none")
            plain[name].x = data[name].x
    for kind in data.edge_types:
        plain[kind].edge_index = data[kind].edge_index
    whole = plain.to_homogeneous()
    if needs_x and "x" not in whole:
        raise InputError("the model needs x of all nodes, but the types have different numbers of features")
    return whole


def target_rows(output: Any, data: HeteroData, schema: Schema, model: nn.Module) -> Tensor:
    """The scores of the target's nodes: from a dictionary by type, of these nodes alone, or of all nodes."""
    target, name = schema.target, type(model).__name__
    if isinstance(output, dict):
        if target not in output:
            raise InputError(f"{name} returns no scores of {target!r}, only of {', '.join(map(str, output))}")
        output = output[target]
    if not isinstance(output, Tensor) or not output.is_floating_point() or output.dim() != 2:
        kind = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(f"{name} must return float scores of shape [{schema.size[target]}, C], not {kind}")
    if output.shape[0] == sum(schema.num_nodes) != schema.size[target]:
        before = data.node_types[: data.node_types.index(target)]
        start = sum(schema.size[other] for other in before)
        output = output[start : start + schema.size[target]]
    if output.shape[0] != schema.size[target] or output.shape[1] < 2:
        raise InputError(
            f"{name} must return float scores of shape [{schema.size[target]}, C], C ≥ 2 classes, "
            f"not {list(output.shape)}"
        )
    return output


def in_dtype_of(model: nn.Module, data: HeteroData) -> HeteroData:
    """``data`` with every x dense and in the dtype of the model's parameters."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.get_default_dtype())
    graph = copy(data)
    for name in graph.node_types:
        x = graph[name].get("x")
        if x is not None:
            x = x.to_dense() if x.layout != torch.strided else x
            graph[name].x = x.detach().to(dtype)
    return graph
