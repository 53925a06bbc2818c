from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

import gst
from graphs import graphs, random_graph
from gst.data.registry import DATASETS
from gst.graph.edgeset import EdgeSet
from gst.graph.triangles import triangles
from gst.storage.paths import data_root, mirror_root

REAL = ["Cora", "CiteSeer", "PubMed"]


def real_edges(name: str) -> EdgeSet:
    """The edges of a published graph, if its raw files are available."""
    raw_files = DATASETS[name].make.args[0].raw_files  # type: ignore[attr-defined]
    roots = [root for root in (data_root(), mirror_root()) if root]
    if not any(all(file.is_file() for file in raw_files(root)) for root in roots):
        pytest.skip(f"no raw files of {name} in $GST_DATA or $GST_MIRROR")
    return EdgeSet.from_data(gst.load(name))


def by_networkit(edges: EdgeSet, scores: Callable) -> torch.Tensor:
    """Edge scores of NetworKit, ``scores(sparsification, graph, triangles)``, in our numbering."""
    nk = pytest.importorskip("networkit")
    u, v = edges.pairs.numpy()
    graph = nk.GraphFromCoo((u, v), n=edges.num_nodes)
    graph.indexEdges()
    found = nk.sparsification.TriangleEdgeScore(graph).run().scores()
    ids = [graph.edgeId(*pair) for pair in zip(u.tolist(), v.tolist(), strict=True)]
    return torch.from_numpy(np.array(scores(nk.sparsification, graph, found))[ids])


def dense(edges: EdgeSet) -> torch.Tensor:
    """The undirected 0/1 adjacency."""
    adjacency = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.int64)
    u, v = edges.pairs
    adjacency[u, v] = adjacency[v, u] = 1
    return adjacency


@given(graphs(max_nodes=15))
def test_triangles_equal_the_square_of_the_adjacency(data):
    edges = EdgeSet.from_data(data)
    adjacency = dense(edges)
    u, v = edges.pairs
    count = triangles(edges)
    assert count.dtype == torch.int64
    assert torch.equal(count, (adjacency @ adjacency)[u, v])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edges", [300, 3000])
def test_sparse_and_crowded_graphs(edges, directed):
    found = EdgeSet.from_data(random_graph(nodes=100, edges=edges, directed=directed))
    adjacency = dense(found)
    u, v = found.pairs
    assert torch.equal(triangles(found), (adjacency @ adjacency)[u, v])


def test_clique_star_and_one_edge():
    clique = torch.combinations(torch.arange(7)).t()
    star = torch.stack([torch.full((6,), 3), torch.tensor([0, 1, 2, 4, 5, 6])])
    for pairs, expected in ((clique, 5), (star, 0), (torch.tensor([[4], [2]]), 0)):
        edges = EdgeSet.from_edge_index(torch.cat([pairs, pairs.flip(0)], dim=1), num_nodes=9)
        assert triangles(edges).tolist() == [expected] * pairs.shape[1]


def test_both_directions_of_a_pair_count_alike_and_once():
    arcs = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 0, 2]])  # a triangle with one pair both ways, and a tail
    edges = EdgeSet.from_data(Data(edge_index=arcs, num_nodes=4))
    assert edges.directed and edges.pairs.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 0], [3, 2]]
    assert triangles(edges).tolist() == [1, 1, 1, 1, 0]


def test_a_subset_of_edges_has_its_own_triangles():
    edges = EdgeSet.from_data(random_graph(nodes=30, edges=150))
    part = edges.subset(torch.arange(edges.num_edges) % 3 > 0)
    u, v = part.pairs
    assert torch.equal(triangles(part), (dense(part) @ dense(part))[u, v])


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
def test_triangles_equal_networkit(name):
    edges = real_edges(name)
    expected = by_networkit(edges, lambda nk, graph, found: found)
    assert torch.equal(triangles(edges), expected.long())
