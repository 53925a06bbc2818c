"""PyG's loaders themselves; where pyg-lib is not installed, the functions that they call in it are replaced."""

from types import SimpleNamespace

import numpy as np
import pymetis
import pytest
import torch
import torch_geometric.typing
from scipy import stats
from torch_geometric.loader import cluster

import gst
from graphs import random_graph
from gst import InputError
from gst.graph.edgeset import EdgeSet
from gst.nn import pyg_loaders
from gst.nn.pyg_loaders import LoaderDraws

FEW = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 4, "interval": 2, "cache": False, "loader": "pyg"}


def neighbor_sample(colptr, row, seed, num_neighbors, node_time, seed_time, csc, replace, directed, disjoint, *rest):
    """One hop of ``torch.ops.pyg.neighbor_sample``: rows, columns, nodes and edge ids of the sample."""
    assert csc and directed and not replace and not disjoint and len(num_neighbors) == 1
    rows, cols, ids, nodes = [], [], [], seed.tolist()
    for position, node in enumerate(seed.tolist()):
        entries = torch.arange(int(colptr[node]), int(colptr[node + 1]))
        for entry in entries[torch.randperm(entries.numel())][: num_neighbors[0]].tolist():
            source = int(row[entry])
            if source not in nodes:
                nodes.append(source)
            rows.append(nodes.index(source))
            cols.append(position)
            ids.append(entry)
    tensors = tuple(torch.tensor(part, dtype=torch.long) for part in (rows, cols, nodes, ids))
    return (*tensors, [seed.numel(), len(nodes) - seed.numel()], [len(ids)])


def metis(rowptr, col, num_partitions, recursive=False):
    graph = pymetis.CSRAdjacency(rowptr.numpy(), col.numpy())
    return torch.tensor(pymetis.part_graph(num_partitions, adjacency=graph).vertex_part)


@pytest.fixture
def pyg_lib(monkeypatch):
    if torch_geometric.typing.WITH_PYG_LIB:
        return
    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", True)
    monkeypatch.setattr(torch_geometric.typing, "WITH_METIS", True)
    monkeypatch.setattr(torch.ops, "pyg", SimpleNamespace(neighbor_sample=neighbor_sample), raising=False)
    monkeypatch.setattr(cluster, "pyg_lib", SimpleNamespace(partition=SimpleNamespace(metis=metis)))


@pytest.mark.parametrize("directed", [False, True])
def test_draws_are_entries_of_their_rows_and_uniform(pyg_lib, directed):
    edges = EdgeSet.from_data(random_graph(nodes=30, edges=150, directed=directed))
    neighbours, rows = edges.neighbours, np.array([3, 7, 8, 20])
    draw = LoaderDraws(neighbours, 2)
    count = np.zeros(neighbours.source.size)
    for seed in range(300):
        entries = draw(neighbours.start, rows, 2, seed)
        assert np.array_equal(entries, draw(neighbours.start, rows, 2, seed)), "same seed, same draw"
        row = np.searchsorted(neighbours.start, entries, side="right") - 1
        size = np.diff(neighbours.start)[rows]
        assert np.array_equal(np.bincount(row, minlength=30)[rows], np.minimum(size, 2)) and set(row) <= set(rows)
        count[entries] += 1
    for row in rows:
        drawn = count[neighbours.start[row] : neighbours.start[row + 1]]
        if drawn.size > 2:
            assert stats.chisquare(drawn).pvalue > 1e-4


def test_clusters_are_those_of_cluster_data(pyg_lib):
    edges = EdgeSet.from_data(random_graph(nodes=80, edges=300))
    part = pyg_loaders.clusters(edges, 4)
    assert part.shape == (80,) and part.unique().tolist() == [0, 1, 2, 3]
    u, v = edges.pairs
    assert float((part[u] == part[v]).double().mean()) > 0.25, "more edges inside than by chance"


@pytest.mark.parametrize(
    "options", [{"batch": "clusters", "clusters": 5}, {"batch": "neighbors", "batch_nodes": 8, "fanout": 3}]
)
def test_a_run_with_them_is_exact_and_deterministic(pyg_lib, options):
    data = random_graph(nodes=60, edges=240)
    first, second = (gst.sparsify(data, "gst", backbone="sage", sparsity=0.4, **options, **FEW) for _ in range(2))
    total = first.metrics["edges_total"]
    assert first.metrics["edges_kept"] == total - round(0.4 * total)
    assert torch.equal(first.edge_mask, second.edge_mask)


@pytest.mark.skipif(pyg_loaders.installed(), reason="pyg-lib is installed")
def test_without_pyg_lib_one_line_says_so():
    with pytest.raises(InputError, match="pyg-lib, which is not installed"):
        gst.sparsify(random_graph(nodes=20, edges=40), "gst", sparsity=0.5, batch="clusters", **FEW)
