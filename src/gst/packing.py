"""A graph as tensors and words, to be stored and read back from a stranger."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.errors import InputError
from gst.graph import check_graph
from gst.limits import check_claim
from gst.nn.features import SPARSE_BELOW


def pack_graph(graph: Data) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and plain words of a graph; features that are mostly zeros are stored as such."""
    tensors: dict[str, Tensor] = {}
    words: dict[str, Any] = {"num_nodes": graph.num_nodes}
    for name, value in graph.to_dict().items():
        if isinstance(value, Tensor) and value.is_sparse:
            raise InputError(f"data.{name} is a sparse tensor: only dense tensors can be saved")
        if name == "x" and torch.count_nonzero(value) < SPARSE_BELOW * value.numel():
            row, column = value.nonzero(as_tuple=True)
            tensors |= {"x/row": row, "x/column": column, "x/value": value[row, column]}
            words["x_shape"] = list(value.shape)
        elif isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, (str, int, float, bool)):
            words[name] = value
    return tensors, words


def unpack_graph(tensors: dict[str, Tensor], words: dict[str, Any], path: Path) -> Data:
    shape = words.pop("x_shape", None)
    if shape is not None:
        parts = [tensors.pop(f"x/{part}", None) for part in ("row", "column", "value")]
        row, column, value = parts
        if row is None or column is None or value is None or not _inside(row, column, value, shape):
            raise InputError(f"{path} has features that do not fit together: it is damaged")
        check_claim(path, shape[0] * shape[1] * value.element_size())
        tensors["x"] = torch.zeros(shape, dtype=value.dtype).index_put_((row, column), value)
    x = tensors.get("x")
    if x is None or words.get("num_nodes") != x.shape[:1].numel():
        raise InputError(f"{path} announces {words.get('num_nodes')!r} nodes: that is not what its features have")
    graph = Data.from_dict({**words, **tensors})
    check_graph_or_name(graph, path)
    return graph


def _inside(row: Tensor, column: Tensor, value: Tensor, shape: Any) -> bool:
    if not (isinstance(shape, list) and len(shape) == 2 and all(isinstance(size, int) and size >= 0 for size in shape)):
        return False
    if not (row.shape == column.shape == value.shape and row.dtype == column.dtype == torch.int64):
        return False
    if row.numel() == 0:
        return True
    return 0 <= int(row.min()) <= int(row.max()) < shape[0] and 0 <= int(column.min()) <= int(column.max()) < shape[1]


def check_graph_or_name(graph: Data, path: Path) -> None:
    """A stored graph may have lost all its edges, but is otherwise checked like any other."""
    if graph.get("edge_index") is not None and graph.edge_index.shape == (2, 0):
        return
    try:
        check_graph(graph)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
