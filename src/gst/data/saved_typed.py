"""A ``HeteroData`` from the fields of an untrusted file."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.graph.relations import check_typed, find_target

_MASKS = ("train_mask", "val_mask", "test_mask")


def is_typed(fields: dict[Any, Any]) -> bool:
    """Whether these are the fields of a ``HeteroData``: those of an edge type are under a name of three parts."""
    return any(isinstance(kind, tuple) and isinstance(part, dict) for kind, part in fields.items())


def typed_graph(fields: dict[Any, Any], path: Path | str) -> HeteroData:
    """A new ``HeteroData`` of the tensors in the fields; refuses fields whose shapes disagree."""
    data = HeteroData()
    for kind, part in fields.items():
        if isinstance(kind, str) and not isinstance(part, dict):
            continue
        edge = isinstance(kind, tuple) and len(kind) == 3 and all(isinstance(name, str) for name in kind)
        if not isinstance(part, dict) or not (edge or isinstance(kind, str)):
            raise InputError(f"{path}: a typed graph has node types by name and edge types by three names")
        for name, value in part.items():
            if isinstance(name, str) and not name.startswith("_") and isinstance(value, Tensor | int):
                data[kind][name] = value
    for name in ("metric", "name"):
        if isinstance(fields.get(name), str):
            data[name] = fields[name]
    try:
        check_typed(data)
        _check_sizes(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return data


def _check_sizes(data: HeteroData) -> None:
    store = data[find_target(data)]
    nodes, y = int(store.num_nodes), store.get("y")
    if not isinstance(y, Tensor) or y.dim() not in (1, 2) or y.shape[0] != nodes or y.is_complex():
        raise InputError(f"y should be labels 0, 1, … (−1 unlabelled), one for each of the {nodes} nodes of its type")
    if bool((y != y.long()).any()) or int(y.min()) < -1 or int(y.max()) >= max(nodes, 2):
        raise InputError("y should be whole numbers from 0 up, −1 where unknown")
    for name in _MASKS:
        mask = store.get(name)
        if mask is not None and not (isinstance(mask, Tensor) and mask.shape == (nodes,) and mask.dtype == torch.bool):
            raise InputError(f"{name} should be a bool tensor with one value for each of the {nodes} nodes of its type")
    for kind in data.edge_types:
        columns = data[kind].edge_index.shape[1]
        for name, value in data[kind].items():
            if name in ("edge_attr", "edge_weight") and (
                not isinstance(value, Tensor) or value.shape[:1] != (columns,)
            ):
                raise InputError(f"{name} of {'__'.join(kind)} has not one row for each of the {columns} columns")
