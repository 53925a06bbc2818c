"""Graphs that PyG users save with ``torch.save``, read without running any code from the file."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.memory import check_claim, check_size
from gst.data.saved_typed import is_typed, typed_graph
from gst.data.torch_file import read_torch
from gst.data.untrusted import one_line
from gst.data.validate import MASK_KEYS
from gst.sparse.layouts import as_float, is_sparse, sparse_claim, stored_values

SUFFIXES = (".pt", ".pth")
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
EDGE_LEVEL = ("edge_attr", "edge_weight")


def read_saved(path: Path) -> Any:
    """A ``Data``, a ``HeteroData`` or their fields as a dict of tensors; everything else in the file is refused."""
    expected = "a torch_geometric Data or a dict of tensors, saved with torch.save"
    check_size(path)
    try:
        fields = read_torch(path)
        if isinstance(fields, dict) and isinstance(x := fields.get("x"), Tensor) and is_sparse(x) and x.dim() == 2:
            check_claim(path, sparse_claim(x.shape, stored_values(x).numel()))
    except InputError:
        raise
    except Exception as error:  # zip, pickle and torch have no common base class for a broken file
        raise InputError(f"{path} does not load safely as {expected}: {_reason(error)}") from error
    if not isinstance(fields, dict):
        raise InputError(f"{path} holds a {type(fields).__name__}: it should hold {expected}")
    return typed_graph(fields, path) if is_typed(fields) else checked(fields, path)


def _reason(error: Exception) -> str:
    if "AttrType" in str(error) or "defaultdict" in str(error):
        return (
            "PyG stores extra state in a Data that was used, which cannot be read safely: save data.to_dict() instead"
        )
    return str(error) if type(error) is ValueError else one_line(error)


def checked(fields: dict[Any, Any], path: Path | str) -> Data:
    """A new ``Data`` of the fields, converted to the usual types; refuses fields whose shapes disagree."""
    # names that begin with _ are internal state of PyG's storage
    fields = {str(k): v for k, v in fields.items() if v is not None and not str(k).startswith("_")}
    for key in ("x", "y", "edge_index"):
        if not isinstance(fields.get(key), Tensor) or (key != "x" and is_sparse(fields[key])):
            raise InputError(f"{path} has no dense tensor {key!r}: x, y and edge_index are needed")
    x, y, edge_index = fields["x"], fields["y"], fields["edge_index"]
    y = y.flatten() if y.dim() == 2 and y.shape[1] == 1 else y
    if x.dim() != 2 or 0 in x.shape or x.is_complex():
        raise InputError(f"{path}: x has shape {tuple(x.shape)}: it should be numbers, [nodes, features]")
    try:
        x = as_float(x)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    nodes = x.shape[0]
    if y.shape[:1] != (nodes,) or y.dim() > 2 or not _whole(y) or int(y.min()) < -1 or int(y.max()) >= nodes:
        raise InputError(f"{path}: y should be labels 0, 1, … (−1 unlabelled), one for each of the {nodes} nodes of x")
    if y.dim() == 2 and int(y.max()) > 1:
        raise InputError(f"{path}: y has {y.shape[1]} labels per node: they should be 0 or 1 (−1 unlabelled)")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype not in WHOLE:
        raise InputError(f"{path}: edge_index has shape {tuple(edge_index.shape)}: it should be whole numbers, [2, E]")
    outside = ((edge_index < 0) | (edge_index >= nodes)).any(dim=0)
    if outside.any():
        column = int(outside.int().argmax())
        pair = edge_index[:, column].tolist()
        raise InputError(f"{path}: column {column} of edge_index is {pair}: nodes go from 0 to {nodes - 1}")
    for key in EDGE_LEVEL:
        if key in fields and (not isinstance(fields[key], Tensor) or fields[key].shape[:1] != edge_index.shape[1:]):
            raise InputError(
                f"{path}: {key} should be a tensor with one row for each of the {edge_index.shape[1]} columns"
            )
    for key in MASK_KEYS:
        mask = fields.get(key)
        if mask is not None and not (isinstance(mask, Tensor) and mask.dim() in (1, 2) and mask.shape[0] == nodes):
            raise InputError(f"{path}: {key} should be a bool tensor with one row for each of the {nodes} nodes")
    fields.pop("num_nodes", None)  # x decides
    masks = {key: fields[key].bool() for key in MASK_KEYS if fields.get(key) is not None}
    return Data(**{**fields, **masks, "x": x, "y": y.long(), "edge_index": edge_index.long()})


def _whole(y: Tensor) -> bool:
    return not y.is_complex() and bool((y == y.long()).all())
