import numpy as np
import pytest
import torch
from hypothesis import given

from graphs import graphs, random_graph
from gst.graph import large_laplacian
from gst.graph.edgeset import EdgeSet
from gst.graph.laplacian import Laplacian
from gst.graph.resistance import effective_resistance


def by_pseudo_inverse(edges: EdgeSet, weight: torch.Tensor) -> torch.Tensor:
    u, v = edges.pairs
    adjacency = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    adjacency.index_put_((u, v), weight.double(), accumulate=True)
    adjacency = adjacency + adjacency.t()
    inverse = torch.linalg.pinv(torch.diag(adjacency.sum(1)) - adjacency, hermitian=True)
    return inverse[u, u] + inverse[v, v] - 2 * inverse[u, v]


@given(graphs())
def test_exact_equals_the_dense_pseudo_inverse(data):
    edges = EdgeSet.from_data(data)
    weight = 0.5 + torch.arange(edges.num_edges) % 4
    assert torch.allclose(effective_resistance(edges, weight), by_pseudo_inverse(edges, weight), atol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_exact_on_several_blocks_and_components(directed):
    data = random_graph(nodes=150, edges=200, directed=directed)
    edges = EdgeSet.from_data(data)
    weight = 0.5 + torch.rand(edges.num_edges)
    assert torch.allclose(effective_resistance(edges, weight), by_pseudo_inverse(edges, weight), atol=1e-6)


@pytest.fixture(params=["double", "single"])
def precision(request, monkeypatch):
    """Small graphs, solved as such and by the solver for large ones."""
    if request.param == "single":
        monkeypatch.setattr(large_laplacian, "LARGE", 1)


@pytest.mark.parametrize("directed", [False, True])
def test_projections_keep_their_stated_error(precision, directed):
    edges = EdgeSet.from_data(random_graph(nodes=200, edges=600, directed=directed))
    weight = 0.5 + torch.rand(edges.num_edges)
    exact = effective_resistance(edges, weight)
    for k in (32, 200):
        error = effective_resistance(edges, weight, projections=k, seed=1) / exact - 1
        assert float(error.square().mean().sqrt()) < 1.3 * (2 / k) ** 0.5


def test_the_number_of_threads_changes_no_bit():
    edges = EdgeSet.from_data(random_graph(nodes=70_000, edges=140_000))
    weight, before = np.ones(edges.num_edges), torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(large_laplacian.projected_resistance(edges, weight, 8, 0))
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*results)


def test_a_bridge_has_the_resistance_of_its_edge():
    edges = EdgeSet.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=5)
    weight = torch.tensor([1.0, 2.0, 4.0])
    expected = torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64)
    assert torch.allclose(effective_resistance(edges, weight), expected)
    assert torch.allclose(effective_resistance(edges, weight, projections=64), expected, rtol=0.6)


@pytest.mark.parametrize("directed", [False, True])
def test_single_precision_solves_to_its_tolerance(directed):
    edges = EdgeSet.from_data(random_graph(nodes=300, edges=350, directed=directed))  # several components
    weight = np.random.default_rng(0).uniform(0.1, 10, edges.num_edges)
    right = np.random.default_rng(1).standard_normal((300, 5))
    right[:, 3], right[:, 4] = 1, 0  # in the null space, and zero
    double = Laplacian(edges, weight).solve(right, 1e-12)
    work = [np.empty((300, 5), np.float32) for _ in range(3)]
    single = large_laplacian.LargeLaplacian(edges, weight).solve(right.astype(np.float32), work)
    assert np.isfinite(single).all()
    assert np.abs(single - double).max() < 2e-3 * np.abs(double).max()
    assert np.abs(single[:, 3:]).max() < 1e-4


def test_solver_leaves_finished_columns_alone():
    edges = EdgeSet.from_data(random_graph(nodes=60, edges=90))
    system = Laplacian(edges, np.ones(edges.num_edges))
    right = np.zeros((60, 3))
    right[0, 0], right[:, 1] = 1, 1  # the second lies in the null space of a connected graph, the third is zero
    x = system.solve(right, 1e-12)
    assert np.isfinite(x).all() and np.allclose(system.matrix @ x, system.centre(right), atol=1e-8)
