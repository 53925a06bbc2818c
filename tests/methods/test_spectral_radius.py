import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigs
from torch_geometric.data import Data

from graphs import KINDS, random_graph
from gst.graph.edgeset import EdgeSet
from gst.methods import spectral_radius
from gst.methods.spectral_radius import SpectralRadius, spectral_radius_scores


def adjacency(edges: EdgeSet, weight: torch.Tensor) -> torch.Tensor:
    """Row = target, column = source."""
    source, target = edges.pairs
    matrix = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    matrix[target, source] = weight
    if not edges.directed:
        matrix[source, target] = weight
    return matrix


def radius(matrix: torch.Tensor) -> torch.Tensor:
    return torch.linalg.eigvals(matrix).abs().max()


@pytest.mark.parametrize("kind", KINDS)
def test_first_order_change_of_the_dense_eigenvalue(kind):
    edges = EdgeSet.from_data(random_graph(nodes=25, edges=90, **kind))
    weight = edges.edge_weight.double()
    before = radius(adjacency(edges, weight))
    for edge, score in enumerate(spectral_radius_scores(edges).tolist()):
        less = weight.clone()
        less[edge] *= 1 - 1e-5
        change = (before - radius(adjacency(edges, less))) / (1e-5 * before)
        assert score == pytest.approx(float(change), abs=2e-5)


@pytest.mark.parametrize("directed", [False, True])
def test_scores_are_shares_of_the_eigenvalue(directed):
    edges = EdgeSet.from_data(random_graph(nodes=40, edges=200, directed=directed))
    scores = spectral_radius_scores(edges)
    assert float(scores.sum()) == pytest.approx(1)  # λ is homogeneous of degree one in the weights
    assert bool((scores >= 0).all())


def test_only_the_leading_component_scores():
    index = torch.tensor([[0, 0, 1, 3, 4], [1, 2, 2, 4, 5]])  # a triangle and a path
    edges = EdgeSet.from_edge_index(torch.cat([index, index.flip(0)], dim=1), num_nodes=7)
    assert spectral_radius_scores(edges).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0])


def test_arcs_between_cycles_do_not_matter():
    arcs = torch.tensor([[0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]])
    edges = EdgeSet.from_edge_index(arcs, num_nodes=7)
    assert edges.directed
    third = 1 / 3  # of each cycle's own eigenvalue, which is the same
    assert spectral_radius_scores(edges).tolist() == pytest.approx([third, third, third, 0, third, third, third])


def test_no_cycle_no_score():
    data = Data(edge_index=torch.tensor([[0, 0, 1], [1, 2, 2]]), num_nodes=3)
    assert SpectralRadius(keep=1).score(data).tolist() == [0, 0, 0]


def test_crowded_eigenvalues():
    path = torch.stack([torch.arange(2999), torch.arange(1, 3000)])
    scores = spectral_radius_scores(EdgeSet.from_edge_index(torch.cat([path, path.flip(0)], dim=1), num_nodes=3000))
    assert float(scores.sum()) == pytest.approx(1, abs=1e-3)
    assert float(scores[1499]) > 1.5 * float(scores[300])


@pytest.mark.parametrize("directed", [False, True])
def test_against_scipy(directed):
    edges = EdgeSet.from_data(random_graph(nodes=2000, edges=9000, directed=directed))
    matrix = csr_matrix(adjacency(edges, edges.edge_weight.double()).numpy())
    value, vector = spectral_radius._leading(matrix)
    values, vectors = eigs(matrix, 1, which="LR", v0=np.ones(2000))
    assert value == pytest.approx(values[0].real, rel=1e-10)
    assert np.abs(vectors[:, 0]) == pytest.approx(vector / np.linalg.norm(vector), abs=1e-9)


def test_keeps_the_densest_region():
    clique = torch.combinations(torch.arange(6)).t()
    path = torch.stack([torch.arange(5, 15), torch.arange(6, 16)])
    ends = torch.cat([path, clique], dim=1)
    kept = SpectralRadius(keep=15)(Data(edge_index=torch.cat([ends, ends.flip(0)], dim=1), num_nodes=16))
    assert int(kept.edge_index.max()) == 5
