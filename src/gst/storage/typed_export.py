"""Exports of sparse typed graphs to formats of other tools."""

import importlib
import io
import json
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.base.optional import optional
from gst.base.text import as_cell


def typed_export(graph: HeteroData, to: str) -> bytes:
    """The content of a file in one of the formats that can hold types."""
    formats = {"pyg": _pyg, "csv": _csv, "parquet": _parquet, "networkx": _networkx, "dgl": _dgl}
    if to not in formats:
        raise InputError(f"{to} holds no typed graphs: choose from {', '.join(formats)}")
    return formats[to](graph)


def typed_table(graph: HeteroData) -> Any:
    """One row per column of every relation: its type, source and target within their types, numbers of the edge."""
    pandas = optional("pandas", "a table of edges")
    parts = []
    for kind in graph.edge_types:
        store = graph[kind]
        count = store.edge_index.shape[1]
        names = dict(zip(("source_type", "relation", "target_type"), kind, strict=True))
        table: dict[str, Any] = {name: [value] * count for name, value in names.items()}
        table |= {"source": store.edge_index[0].numpy(), "target": store.edge_index[1].numpy()}
        for name, value in sorted(store.items()):
            if isinstance(value, Tensor) and name != "edge_index" and value.shape == (count,):
                table[name] = value.detach().numpy()
        parts.append(pandas.DataFrame(table))
    return pandas.concat(parts, ignore_index=True)


def _pyg(graph: HeteroData) -> bytes:
    buffer = io.BytesIO()
    torch.save(graph, buffer)
    return buffer.getvalue()


def _csv(graph: HeteroData) -> bytes:
    table = typed_table(graph).rename(columns=as_cell)
    for name in ("source_type", "relation", "target_type"):
        table[name] = table[name].map(as_cell)
    return table.to_csv(index=False).encode()


def _parquet(graph: HeteroData) -> bytes:
    return typed_table(graph).to_parquet(index=False)


def _networkx(graph: HeteroData) -> bytes:
    """Node-link JSON: a MultiDiGraph whose nodes are [type, number] and whose edges carry their relation."""
    networkx = optional("networkx", "export to networkx")
    made = networkx.MultiDiGraph()
    for name in graph.node_types:
        labels = graph[name].get("y")
        for node in range(int(graph[name].num_nodes)):
            facts = {} if labels is None else {"y": labels[node].tolist()}
            made.add_node(f"{name}:{node}", type=name, **facts)
    for kind in graph.edge_types:
        for source, target in graph[kind].edge_index.t().tolist():
            made.add_edge(f"{kind[0]}:{source}", f"{kind[2]}:{target}", relation=kind[1])
    return json.dumps(networkx.node_link_data(made, edges="edges")).encode()


def _dgl(graph: HeteroData) -> bytes:
    try:
        dgl = importlib.import_module("dgl")
    except Exception as error:  # a wheel built for another torch may raise anything
        raise InputError(f"export to dgl needs a working installation of dgl: {error}") from None
    counts = {name: int(graph[name].num_nodes) for name in graph.node_types}
    out = dgl.heterograph({kind: tuple(graph[kind].edge_index) for kind in graph.edge_types}, counts)
    buffer = io.BytesIO()
    dgl.save_graphs(buffer, [out])
    return buffer.getvalue()
