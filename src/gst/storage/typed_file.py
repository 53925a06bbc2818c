"""Typed graphs as tensors and metadata for a file, and back from an untrusted file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.base.memory import check_claim
from gst.graph.relations import EdgeType, check_typed
from gst.nn.features import SPARSE_BELOW
from gst.sparse.layouts import entries, is_sparse, sparse_claim

_PLAIN = str | int | float
_MOST_TYPES = 100_000


def pack_typed(
    graph: HeteroData, masks: Mapping[EdgeType, Tensor], scores: Mapping[EdgeType, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and plain values; tensors are named by the number of their type, for names of types may be anything."""
    tensors: dict[str, Tensor] = {}
    kinds = list(graph.edge_types)
    plain = {name: value for name, value in graph.stores[0].items() if isinstance(value, _PLAIN)}
    sparse: dict[str, list[Any]] = {}
    for number, name in enumerate(graph.node_types):
        for key, value in graph[name].items():
            place = f"node{number}/{key}"
            if key == "x" and (is_sparse(value) or torch.count_nonzero(value) < SPARSE_BELOW * value.numel()):
                tensors |= dict(
                    zip((f"{place}/row", f"{place}/column", f"{place}/value"), _entries(value), strict=True)
                )
                sparse[str(number)] = [*value.shape, is_sparse(value)]
            elif isinstance(value, Tensor):
                tensors[place] = value
    for number, kind in enumerate(kinds):
        parts = {key: value for key, value in graph[kind].items() if isinstance(value, Tensor)}
        tensors |= {f"edge{number}/{key}": value for key, value in parts.items()}
        tensors |= {f"edge_mask/{number}": masks[kind], f"scores/{number}": scores[kind]}
    counts = [int(graph[name].num_nodes) for name in graph.node_types]
    types = {"nodes": list(graph.node_types), "num_nodes": counts, "edges": kinds, "sparse": sparse}
    return tensors, {"typed": types, "plain": plain}


def _entries(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if is_sparse(x):
        return entries(x)
    row, column = x.nonzero(as_tuple=True)
    return row, column, x[row, column]


def unpack_typed(
    tensors: dict[str, Tensor], metadata: dict[str, Any], path: Path
) -> tuple[HeteroData, dict[EdgeType, Tensor], dict[EdgeType, Tensor]]:
    """The inverse of :func:`pack_typed`, with all checks; ``path`` is for messages."""
    nodes, counts, kinds, sparse = _types(metadata.get("typed"), path)
    graph = HeteroData()
    for key, value in metadata.get("plain", {}).items() if isinstance(metadata.get("plain"), dict) else ():
        if isinstance(value, _PLAIN):
            graph[key] = value
    for number, (name, count) in enumerate(zip(nodes, counts, strict=True)):
        store = graph[name]
        parts = _attributes(tensors, f"node{number}/")
        if str(number) in sparse:
            parts["x"] = _features(parts, sparse[str(number)], path)
        for key, value in parts.items():
            store[key] = value
        if "x" not in parts:
            store.num_nodes = count
        elif parts["x"].shape[0] != count:
            raise InputError(f"{path} claims {count} nodes of type {number}: that is not what its features have")
    masks, scores = dict[EdgeType, Tensor](), dict[EdgeType, Tensor]()
    for number, kind in enumerate(kinds):
        for key, value in _attributes(tensors, f"edge{number}/").items():
            graph[kind][key] = value
        mask, score = tensors.get(f"edge_mask/{number}"), tensors.get(f"scores/{number}")
        if mask is None or score is None or mask.dtype != torch.bool or mask.dim() != 1 or score.shape != mask.shape:
            raise InputError(f"{path}: edge_mask and scores have no value for each column of the dense graph")
        masks[kind], scores[kind] = mask, score
    try:
        check_typed(graph, sparse=True)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for kind, mask in masks.items():
        if int(mask.sum()) != graph[kind].edge_index.shape[1]:
            raise InputError(f"{path}: edge_mask keeps {int(mask.sum())} columns, edge_index has others")
    return graph, masks, scores


def _any(value: object) -> Any:
    return value


def _attributes(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _types(types: Any, path: Path) -> tuple[list[str], list[int], list[EdgeType], dict[str, Any]]:
    """Names and sizes of the types, if that is what the file says."""
    if isinstance(types, dict):
        nodes, counts, edges, sparse = (_any(types.get(key)) for key in ("nodes", "num_nodes", "edges", "sparse"))
        lists = isinstance(nodes, list) and isinstance(counts, list) and isinstance(edges, list)
        if lists and isinstance(sparse, dict) and len(nodes) == len(counts) and len(nodes) + len(edges) < _MOST_TYPES:
            named = all(isinstance(name, str) for name in nodes) and len(set(nodes)) == len(nodes)
            sized = all(type(count) is int and 0 <= count < 2**40 for count in counts)
            joined = all(isinstance(e, list) and len(e) == 3 and e[0] in nodes and e[2] in nodes for e in edges)
            if named and sized and joined and all(isinstance(e[1], str) for e in edges):
                return nodes, counts, [(e[0], e[1], e[2]) for e in edges], sparse
    raise InputError(f"{path} does not say which types its graph has: it is damaged")


def _features(parts: dict[str, Tensor], shape: Any, path: Path) -> Tensor:
    row, column, value = (_any(parts.pop(f"x/{part}", None)) for part in ("row", "column", "value"))
    sized = isinstance(shape, list) and len(shape) == 3 and all(type(size) is int and size >= 0 for size in shape[:2])
    whole = sized and row is not None and column is not None and value is not None
    if not whole or not row.shape == column.shape == value.shape or not row.dtype == column.dtype == torch.int64:
        raise InputError(f"{path} has features that do not fit together: it is damaged")
    if row.numel() and not (0 <= int(row.min()) <= int(row.max()) < shape[0]):
        raise InputError(f"{path} has features that do not fit together: it is damaged")
    if row.numel() and not (0 <= int(column.min()) <= int(column.max()) < shape[1]):
        raise InputError(f"{path} has features that do not fit together: it is damaged")
    if shape[2]:
        check_claim(path, sparse_claim(shape[:2], value.numel()))
        return torch.sparse_coo_tensor(torch.stack([row, column]), value, shape[:2]).to_sparse_csr()
    check_claim(path, shape[0] * shape[1] * value.element_size())
    return torch.zeros(shape[:2], dtype=value.dtype).index_put_((row, column), value)
