"""The one tester that every sparsifier passes."""

import torch
from torch_geometric.data import Data

from gst.graph import EdgeSet
from gst.select import budget


def check_mask(data: Data, mask: torch.Tensor, sparsity: float | None = None, keep: int | None = None) -> None:
    """Exact budget, both arcs alike, self-loops untouched, duplicates together."""
    edges = EdgeSet.from_data(data)
    assert mask.dtype == torch.bool and mask.numel() == data.edge_index.shape[1]
    kept = {}
    for edge, stays in zip(edges.column_edge.tolist(), mask.tolist(), strict=True):
        if edge < 0:
            assert stays, "a self-loop was removed"
        else:
            assert kept.setdefault(edge, stays) == stays, "columns of one edge parted"
    assert sum(kept.values()) == budget(edges.num_edges, sparsity, keep)


def check_graph_of(data: Data, sparse: Data, mask: torch.Tensor) -> None:
    """The sparse graph is the input without the removed columns, and nothing else."""
    assert torch.equal(sparse.edge_index, data.edge_index[:, mask])
    assert sparse.num_nodes == data.num_nodes
    for name in data.keys():  # noqa: SIM118 - Data iterates over pairs
        if name.startswith("edge_"):
            continue
        same = data[name] == sparse[name]
        assert bool(same.all()) if isinstance(same, torch.Tensor) else same
    if "edge_weight" in data:
        assert torch.equal(sparse.edge_weight, data.edge_weight[mask])
