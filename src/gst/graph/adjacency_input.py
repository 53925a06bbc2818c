"""Graphs that hold their edges as ``adj_t``, a torch_sparse ``SparseTensor`` or a sparse tensor of torch."""

from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError


def with_edge_index(data: Data) -> Data:
    """The same graph with a plain ``edge_index``, made of ``adj_t`` if need be, which stays for models that read it."""
    if not isinstance(data, Data):
        return data
    index, adjacency = data.get("edge_index"), data.get("adj_t")
    if isinstance(index, Tensor) and index.layout == torch.strided:
        if type(index) is Tensor:
            return data
        graph = copy(data)
        graph.edge_index = index.as_subclass(Tensor)  # of an EdgeIndex
        return graph
    if adjacency is None:
        adjacency = index
    if adjacency is None:
        return data
    row, col, value = _entries(adjacency)
    graph = copy(data)
    graph.edge_index = torch.stack([col, row]).contiguous()
    graph.adj_t = adjacency
    if value is not None and not bool((value == 1).all()):
        graph.edge_weight = value
    if "num_nodes" not in graph and graph.get("x") is None:
        graph.num_nodes = int(adjacency.size(0))
    return graph


def _entries(adjacency: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Targets, sources and values."""
    if isinstance(adjacency, Tensor) and adjacency.layout != torch.strided:
        entries = adjacency.to_sparse_coo().coalesce()
        return entries.indices()[0], entries.indices()[1], entries.values()
    if callable(getattr(adjacency, "coo", None)):
        row, col, value = adjacency.coo()
        return row, col, value
    raise InputError(f"adj_t is a {type(adjacency).__name__}: a SparseTensor or a sparse tensor of torch is needed")


def adjacency_like(adjacency: Any, graph: Data) -> Any:
    """The edges of ``graph`` in the form of ``adjacency`` (None: torch's CSR)."""
    source, target = graph.edge_index
    size, weight = (int(graph.num_nodes), int(graph.num_nodes)), graph.get("edge_weight")
    if adjacency is not None and not isinstance(adjacency, Tensor):
        return type(adjacency)(row=target, col=source, value=weight, sparse_sizes=size)
    value = torch.ones(source.numel(), device=source.device) if weight is None else weight
    entries = torch.sparse_coo_tensor(torch.stack([target, source]), value, size).coalesce()
    return entries if adjacency is not None and adjacency.layout == torch.sparse_coo else entries.to_sparse_csr()


def restricted(graph: Data, columns: Tensor) -> Data:
    """The graph with some of its columns, in ``adj_t`` as well."""
    adjacency = graph.get("adj_t")
    if adjacency is None:
        return graph.edge_subgraph(columns)
    plain = copy(graph)
    del plain.adj_t
    plain.num_nodes = graph.num_nodes
    plain = plain.edge_subgraph(columns)
    plain.adj_t = adjacency_like(adjacency, plain)
    return plain
