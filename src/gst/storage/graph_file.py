"""Graphs as tensors and metadata for a file, and back from an untrusted file."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.memory import check_claim
from gst.graph.edgeset import check_graph
from gst.nn.features import SPARSE_BELOW
from gst.sparse.layouts import entries, is_sparse, sparse_claim

NAMES = "node_id"
_X_PARTS = ("x/row", "x/column", "x/value")


def pack_graph(graph: Data) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and plain values of a graph; features that are mostly zeros are stored in sparse form."""
    tensors: dict[str, Tensor] = {}
    metadata: dict[str, Any] = {"num_nodes": graph.num_nodes}
    for name, value in graph.to_dict().items():
        if name == "x" and is_sparse(value):
            tensors |= dict(zip(_X_PARTS, entries(value), strict=True))
            metadata |= {"x_shape": list(value.shape), "x_layout": "csr"}
        elif isinstance(value, Tensor) and is_sparse(value):
            raise InputError(f"data.{name} is a sparse tensor: only x may be sparse in a result")
        elif name == "x" and torch.count_nonzero(value) < SPARSE_BELOW * value.numel():
            row, column = value.nonzero(as_tuple=True)
            tensors |= dict(zip(_X_PARTS, (row, column, value[row, column]), strict=True))
            metadata["x_shape"] = list(value.shape)
        elif isinstance(value, Tensor):
            tensors[name] = value
        elif name == NAMES and isinstance(value, list):
            tensors[f"{NAMES}/text"] = _pack_texts([str(text) for text in value])
        elif isinstance(value, (str, int, float, bool)):
            metadata[name] = value
    return tensors, metadata


def _pack_texts(texts: list[str]) -> Tensor:
    """The bytes of all texts, each with a zero after it."""
    content = "".join(f"{text.replace(chr(0), '')}\0" for text in texts).encode()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.zeros(0, dtype=torch.uint8)


def _unpack_texts(packed: Tensor, count: int, path: Path) -> list[str]:
    try:
        texts = packed.numpy().tobytes().decode().split("\0")
    except (UnicodeDecodeError, TypeError):
        texts = []
    if packed.dtype != torch.uint8 or texts[-1:] != [""] or len(texts) != count + 1:
        raise InputError(f"{path} has names that are not one per node: it is damaged")
    return texts[:-1]


def unpack_graph(tensors: dict[str, Tensor], metadata: dict[str, Any], path: Path) -> Data:
    """The inverse of :func:`pack_graph`, with all checks; ``path`` is for messages."""
    shape, layout = metadata.pop("x_shape", None), metadata.pop("x_layout", None)
    if shape is not None:
        row, column, value = (tensors.pop(part, None) for part in _X_PARTS)
        if row is None or column is None or value is None or not _is_consistent(row, column, value, shape):
            raise InputError(f"{path} has features that do not fit together: it is damaged")
        if layout == "csr":
            check_claim(path, sparse_claim(shape, value.numel()))
            tensors["x"] = torch.sparse_coo_tensor(torch.stack([row, column]), value, shape).to_sparse_csr()
        else:
            check_claim(path, shape[0] * shape[1] * value.element_size())
            tensors["x"] = torch.zeros(shape, dtype=value.dtype).index_put_((row, column), value)
    x = tensors.get("x")
    if x is None or metadata.get("num_nodes") != x.shape[:1].numel():
        raise InputError(f"{path} claims {metadata.get('num_nodes')!r} nodes: that is not what its features have")
    names = tensors.pop(f"{NAMES}/text", None)
    y, index = tensors.get("y", x), tensors.get("edge_index")
    if index is None or index.dtype != torch.int64 or y.shape[:1] != x.shape[:1]:
        raise InputError(f"{path} has no edge_index, or not one label per node: it does not belong to a run")
    plain = {name: value for name, value in metadata.items() if isinstance(value, str | int | float)}
    graph = Data.from_dict({**plain, **tensors})
    if names is not None:
        graph[NAMES] = _unpack_texts(names, x.shape[0], path)
    _check_stored(graph, path)
    return graph


def _is_consistent(row: Tensor, column: Tensor, value: Tensor, shape: Any) -> bool:
    """Whether these are the entries of a matrix of this shape."""
    if not (isinstance(shape, list) and len(shape) == 2 and all(isinstance(size, int) and size >= 0 for size in shape)):
        return False
    if not (row.shape == column.shape == value.shape and row.dtype == column.dtype == torch.int64):
        return False
    if row.numel() == 0:
        return True
    return 0 <= int(row.min()) <= int(row.max()) < shape[0] and 0 <= int(column.min()) <= int(column.max()) < shape[1]


def _check_stored(graph: Data, path: Path) -> None:
    """Checks a graph like any other, except that a sparse one may have no edges left."""
    if graph.edge_index.shape == (2, 0):
        return
    try:
        check_graph(graph)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
