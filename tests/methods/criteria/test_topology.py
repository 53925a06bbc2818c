"""φ_topo against eigenvalues of the dense matrix without the edge."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch_geometric.data import Data

from graphs import random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.resistance import effective_resistance
from gst.methods.criteria.topology import MATRICES, topology_scores


def connected(nodes: int, degree: int, seed: int, directed: bool = False) -> tuple[EdgeSet, torch.Tensor]:
    """A random connected graph with random weights, so that no eigenvalue is repeated."""
    g = torch.Generator().manual_seed(seed)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    index = torch.cat([ring, torch.randint(0, nodes, (2, nodes * degree // 2), generator=g)], dim=1)
    index = index[:, index[0] != index[1]]
    if not directed:
        index = torch.cat([index, index.flip(0)], dim=1)
    edges = EdgeSet.from_data(Data(edge_index=torch.unique(index, dim=1), num_nodes=nodes))
    return edges, 0.5 + torch.rand(edges.num_edges, generator=g)


def dense(edges: EdgeSet, weight: torch.Tensor, matrix: str) -> np.ndarray:
    a = np.zeros((edges.num_nodes, edges.num_nodes))
    source, target = edges.pairs.numpy()
    a[target, source] = weight.numpy()
    if not edges.directed:
        a[source, target] = weight.numpy()
    degree = a.sum(1)
    if matrix == "adjacency":
        return a
    if matrix == "laplacian":
        return np.diag(degree) - a
    if edges.directed:
        return np.eye(len(a)) - a / degree[:, None]
    return np.eye(len(a)) - a / np.sqrt(np.outer(degree, degree))


def ends(values: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k smallest and k largest nonzero eigenvalues."""
    order = np.argsort(values)
    order = order[np.abs(values[order]) > 1e-8]
    return np.unique(np.r_[order[:k], order[-k:]])


def changes(
    edges: EdgeSet, weight: torch.Tensor, matrix: str, k: int, share: float, sample: np.ndarray | None = None
) -> np.ndarray:
    """Σ|Δλ/λ| when ``share`` of an edge's weight is removed, divided by that share."""
    before = np.linalg.eigvalsh(dense(edges, weight, matrix))
    selected = ends(before, k)
    totals = []
    for e in range(edges.num_edges) if sample is None else sample:
        reduced = weight.clone()
        reduced[e] *= 1 - share
        after = np.linalg.eigvalsh(dense(edges, reduced, matrix))
        totals.append(np.abs((after - before)[selected] / before[selected]).sum() / share)
    return np.array(totals)


@pytest.mark.parametrize("nodes", [60, 140])
@pytest.mark.parametrize("matrix", MATRICES)
def test_first_order_limit_on_undirected_graphs(matrix, nodes):
    edges, weight = connected(nodes, 6, seed=nodes)
    scores = topology_scores(edges, weight, matrix=matrix, eigenpairs=20).numpy()
    exact = changes(edges, weight.double(), matrix, 20, share=1e-4)
    assert np.allclose(scores, exact, rtol=1e-2, atol=1e-4 * exact.max())


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize(("nodes", "degree"), [(60, 20), (120, 24), (300, 40)])
def test_ranking_against_recomputed_eigenvalues(matrix, nodes, degree):
    """Above 0.99 when a tenth of an edge's weight goes, or all of it where weights differ by orders of magnitude.

    Among edges of nearly equal weight, second-order terms reorder full removals a little.
    """
    edges, even = connected(nodes, degree, seed=1)
    varied = torch.exp(2 * torch.randn(edges.num_edges, generator=torch.Generator().manual_seed(2)))
    sample = np.random.default_rng(0).choice(edges.num_edges, 60, replace=False)
    for weight, share, least in ((even, 0.1, 0.99), (varied, 0.1, 0.99), (varied, 1.0, 0.99), (even, 1.0, 0.85)):
        scores = topology_scores(edges, weight, matrix=matrix, eigenpairs=20).numpy()
        exact = changes(edges, weight.double(), matrix, 20, share, sample)
        assert spearmanr(scores[sample], exact).statistic > least


@pytest.mark.parametrize("nodes", [30, 90])  # dense and iterative solver
@pytest.mark.parametrize("matrix", MATRICES)
def test_directed_by_left_and_right_eigenvectors(matrix, nodes):
    edges, weight = connected(nodes, 6, seed=3, directed=True)
    assert edges.directed
    k = 4
    scores = topology_scores(edges, weight, matrix=matrix, eigenpairs=k).numpy()
    before = np.linalg.eigvals(dense(edges, weight.double(), matrix))
    order = np.argsort(before.real)
    if (
        before[order[k]].real - before[order[k - 1]].real < 1e-9
        or before[order[-k]].real - before[order[-k - 1]].real < 1e-9
    ):
        k += 1  # do not split a conjugate pair: which half is kept is arbitrary
        scores = topology_scores(edges, weight, matrix=matrix, eigenpairs=k).numpy()
    selected = before[np.unique(np.r_[order[:k], order[-k:]])]
    selected = selected[np.abs(selected) > 1e-8]
    share, exact = 1e-5, []
    for e in range(edges.num_edges):
        reduced = weight.double().clone()
        reduced[e] *= 1 - share
        after = np.linalg.eigvals(dense(edges, reduced, matrix))
        moved = [np.abs(after - value).min() for value in selected]
        exact.append(np.sum(moved / np.abs(selected)) / share)
    assert np.allclose(scores, exact, rtol=0.05, atol=1e-3 * np.max(exact))


def test_all_eigenpairs_of_the_laplacian_give_effective_resistance():
    edges, weight = connected(80, 6, seed=5)
    values, vectors = np.linalg.eigh(dense(edges, weight, "laplacian"))
    u, v = edges.pairs.numpy()
    by_modes = weight.numpy() * (np.square(vectors[u] - vectors[v])[:, 1:] / values[1:]).sum(1)
    assert np.allclose(by_modes, weight.double() * effective_resistance(edges, weight), rtol=1e-6)
    scores = topology_scores(edges, weight, eigenpairs="all").numpy()
    assert np.sqrt(np.mean(np.square(scores / by_modes - 1))) < 1.3 / 8
    assert np.allclose(topology_scores(edges, weight, eigenpairs=80), by_modes, rtol=1e-6)


def test_null_space_is_skipped():
    """Thirty components: the 20 smallest Laplacian eigenvalues are all 0."""
    index = torch.cat([torch.tensor([[0, 1, 2], [1, 2, 3]]) + 4 * c for c in range(30)], dim=1)
    edges = EdgeSet.from_data(Data(edge_index=torch.cat([index, index.flip(0)], 1), num_nodes=125))
    mask = 1 + torch.arange(edges.num_edges) * 1e-3
    for matrix in MATRICES:
        scores = topology_scores(edges, mask, matrix=matrix, eigenpairs=20)
        assert torch.isfinite(scores).all() and float(scores.max()) < 100 and float(scores.max()) > 0


def test_a_graph_without_cycles_has_no_directed_eigenvalues():
    edges = EdgeSet.from_data(random_graph(directed=True))
    acyclic = EdgeSet.from_edge_index(torch.tensor([[0, 0, 1], [1, 2, 2]]), num_nodes=4)
    assert edges.directed and topology_scores(acyclic, torch.ones(3), matrix="adjacency").tolist() == [0, 0, 0]


def test_bad_requests():
    edges, weight = connected(20, 4, seed=0)
    with pytest.raises(InputError, match="unknown matrix 'hessian'"):
        topology_scores(edges, weight, matrix="hessian")
    with pytest.raises(InputError, match='eigenpairs="all" is for matrix="laplacian"'):
        topology_scores(edges, weight, matrix="adjacency", eigenpairs="all")
    with pytest.raises(InputError, match="eigenpairs 0 is not"):
        topology_scores(edges, weight, eigenpairs=0)
