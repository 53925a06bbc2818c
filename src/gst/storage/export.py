"""Exports of the sparse graph to formats of other tools."""

import io
import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.base.optional import optional
from gst.base.text import as_cell
from gst.graph.edgeset import check_data
from gst.sparse.layouts import checked_dense, is_sparse
from gst.storage.files import write_bytes
from gst.storage.typed_export import typed_export

if TYPE_CHECKING:
    from pandas import DataFrame


def export(graph: Data, to: str, path: str | PathLike[str]) -> Path:
    """Writes ``graph`` for ``"pyg"``, ``"networkx"``, ``"scipy"``, ``"csv"``, ``"parquet"`` or ``"dgl"``."""
    target = as_path("path", path)
    if isinstance(graph, HeteroData):
        write_bytes(target, typed_export(graph, resolve_name("format", to, FORMATS)))
        return target
    check_data(graph)
    write_bytes(target, FORMATS[resolve_name("format", to, FORMATS)][1](graph))
    return target


def default_name(to: str) -> str:
    """The usual file name of a format."""
    return FORMATS[resolve_name("format", to, FORMATS)][0]


def node_names(graph: Data) -> np.ndarray:
    """What every node is called: ``node_id`` where the data have it, else its number."""
    names = graph.get("node_id")
    if names is None:
        return np.arange(graph.num_nodes)
    return names.numpy() if isinstance(names, Tensor) else np.array(names, dtype=object)


def edge_table(graph: Data) -> "DataFrame":
    """One row per column of ``edge_index``: source, target, by name if nodes have one, and edge-level attributes."""
    names = node_names(graph)
    table = {end: names[graph.edge_index[i].numpy()] for i, end in enumerate(("source", "target"))}
    for name in sorted(graph.edge_attrs(), key=lambda name: (name != "edge_weight", name)):
        value = graph[name]
        if name == "edge_index" or not isinstance(value, Tensor):
            continue
        if value.dim() == 1:
            table[name] = value.detach().numpy()
        else:
            flat = value.detach().reshape(value.shape[0], -1)
            table |= {f"{name}_{i}": flat[:, i].numpy() for i in range(flat.shape[1])}
    return optional("pandas", "a table of edges").DataFrame(table)


def _pyg(graph: Data) -> bytes:
    """A dict of tensors, which ``Data.from_dict(torch.load(path))`` and ``gst.load`` read without running code."""
    buffer = io.BytesIO()
    torch.save(graph.to_dict(), buffer)
    return buffer.getvalue()


def _networkx(graph: Data) -> bytes:
    """Node-link JSON for ``networkx.node_link_graph``: a DiGraph with one edge per arc."""
    networkx = optional("networkx", "export to networkx")
    directed = networkx.DiGraph()
    labels = graph.y.tolist() if isinstance(graph.get("y"), Tensor) else [None] * graph.num_nodes
    names = node_names(graph).tolist()
    directed.add_nodes_from(
        (node, {} if label is None else {"y": label}) for node, label in zip(names, labels, strict=True)
    )
    table = edge_table(graph)
    attributes = [name for name in table.columns if name not in ("source", "target")]
    for source, target, *values in table.itertuples(index=False):
        directed.add_edge(source, target, **dict(zip(attributes, values, strict=True)))
    return json.dumps(networkx.node_link_data(directed, edges="edges")).encode()


def _scipy(graph: Data) -> bytes:
    """CSR matrix for ``scipy.sparse.load_npz``: entry [source, target] holds the weight, or the number of columns."""
    weight = graph.get("edge_weight")
    values = torch.ones(graph.edge_index.shape[1]) if weight is None else weight.detach()
    source, target = graph.edge_index.numpy()
    matrix = sparse.coo_matrix((values.numpy(), (source, target)), shape=(graph.num_nodes, graph.num_nodes)).tocsr()
    buffer = io.BytesIO()
    sparse.save_npz(buffer, matrix)
    return buffer.getvalue()


def _csv(graph: Data) -> bytes:
    """Names of columns and of nodes are escaped: they are untrusted."""
    pandas = optional("pandas", "export to csv")
    table = edge_table(graph).rename(columns=as_cell)
    for end in ("source", "target"):
        if not pandas.api.types.is_numeric_dtype(table[end].dtype):
            table[end] = table[end].map(as_cell)
    return table.to_csv(index=False).encode()


def _parquet(graph: Data) -> bytes:
    optional("pyarrow", "export to parquet")
    return edge_table(graph).to_parquet(index=False)


def _dgl(graph: Data) -> bytes:
    """DGL's own binary format for ``dgl.load_graphs``."""
    try:
        dgl = optional("dgl", "export to dgl")
    except InputError:
        raise
    except Exception as error:  # a wheel built for another torch may raise anything
        raise InputError(f"export to dgl needs a working installation of dgl: {error}") from None
    source, target = graph.edge_index
    out = dgl.graph((source, target), num_nodes=graph.num_nodes)
    for name, value in graph.to_dict().items():
        if isinstance(value, Tensor) and name != "edge_index":
            attributes = out.edata if graph.is_edge_attr(name) else out.ndata
            attributes[name] = checked_dense(value, "dgl") if is_sparse(value) else value
    buffer = io.BytesIO()
    dgl.save_graphs(buffer, [out])
    return buffer.getvalue()


FORMATS: dict[str, tuple[str, Callable[[Data], bytes]]] = {
    "pyg": ("graph.pt", _pyg),
    "networkx": ("graph.json", _networkx),
    "scipy": ("graph.npz", _scipy),
    "csv": ("edges.csv", _csv),
    "parquet": ("edges.parquet", _parquet),
    "dgl": ("graph.dgl", _dgl),
}
