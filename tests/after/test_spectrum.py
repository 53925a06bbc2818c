import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gst
from graphs import random_graph
from gst.after import spectrum
from gst.after.spectrum import compare_spectra, mean_error
from gst.graph.edgeset import EdgeSet


def dense_laplacian(edges: EdgeSet) -> np.ndarray:
    """Edge by edge from the definition Σ_e w_e (1_u − 1_v)(1_u − 1_v)ᵀ."""
    matrix = np.zeros((edges.num_nodes, edges.num_nodes))
    for (u, v), w in zip(edges.pairs.T.tolist(), edges.edge_weight.tolist(), strict=True):
        matrix[u, u] += w
        matrix[v, v] += w
        matrix[u, v] -= w
        matrix[v, u] -= w
    return matrix


def check(edges: EdgeSet, keep: torch.Tensor, count: int) -> None:
    spectra = compare_spectra(edges, keep, count)
    before, after = (np.linalg.eigvalsh(dense_laplacian(e)) for e in (edges, edges.subset(keep)))
    zeros = int((before < 1e-9).sum())
    count = min(count, before.size - zeros)
    expected = (before[-count:], after[-count:], before[zeros : zeros + count], after[zeros : zeros + count])
    computed_ends = (spectra.top, spectra.top_sparse, spectra.bottom, spectra.bottom_sparse)
    for computed, exact in zip(computed_ends, expected, strict=True):
        np.testing.assert_allclose(computed, exact, atol=1e-8)
    errors = np.abs(expected[2] - expected[3]) / expected[2]
    assert spectra.bottom_error == pytest.approx(errors.mean(), abs=1e-6)
    assert 0 <= spectra.top_error <= 1 + 1e-9
    assert 0 <= spectra.bottom_error <= 1 + 1e-9


@pytest.mark.parametrize(("share", "small"), [(0.3, 400), (0.8, 10)])
def test_the_normalised_laplacian_against_its_dense_definition(share, small, monkeypatch):
    """Eigenvalues of I − D^-½ A D^-½ without isolated nodes, and a zero for each of those."""
    monkeypatch.setattr(spectrum, "_SMALL", small)
    edges = EdgeSet.from_data(random_graph(60, 150, weighted=True))
    keep = torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(0)) < share
    spectra = compare_spectra(edges, keep, 8, "normalised")
    for graph, top in ((edges, spectra.top), (edges.subset(keep), spectra.top_sparse)):
        dense = dense_laplacian(graph)
        degree = np.diag(dense)
        inside = degree > 0
        block = dense[inside][:, inside] / np.sqrt(np.outer(degree[inside], degree[inside]))
        exact = np.sort(np.concatenate([np.linalg.eigvalsh(block), np.zeros((~inside).sum())]))
        np.testing.assert_allclose(top, exact[-8:], atol=1e-8)
    zeros = int(edges.components.max()) + 1
    np.testing.assert_allclose(spectra.bottom_sparse, exact[zeros : zeros + 8], atol=1e-8)


@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.floats(0, 1))
def test_against_dense_eigenvalues(seed, directed, weighted, share):
    data = random_graph(20, 50, directed=directed, weighted=weighted, seed=seed)
    edges = EdgeSet.from_data(data)
    keep = torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(seed)) < share
    check(edges, keep, 6)


@pytest.mark.parametrize("sparsity", [0.1, 0.6])
def test_lanczos_against_dense_eigenvalues(sparsity, monkeypatch):
    monkeypatch.setattr(spectrum, "_SMALL", 20)
    edges = EdgeSet.from_data(gst.load("synthetic:nodes=400,degree=3"))
    check(edges, gst.Random(sparsity=sparsity).select(edges)[0], 40)


def test_many_copies_of_one_eigenvalue(monkeypatch):
    """A tree of stars: Lanczos alone sees a repeated eigenvalue once."""
    monkeypatch.setattr(spectrum, "_SMALL", 20)
    hubs, leaves = torch.arange(12), torch.arange(12, 12 + 12 * 9)
    pairs = torch.cat([torch.stack([hubs[:-1], hubs[1:]]), torch.stack([hubs.repeat_interleave(9), leaves])], 1)
    edges = EdgeSet.from_edge_index(torch.cat([pairs, pairs.flip(0)], 1), 120)
    check(edges, torch.arange(edges.num_edges) % 7 > 0, 60)


def test_nothing_removed_is_no_error_and_everything_is_one():
    edges = EdgeSet.from_data(gst.load("synthetic:nodes=100,degree=4"))
    whole, none = torch.ones(edges.num_edges, dtype=torch.bool), torch.zeros(edges.num_edges, dtype=torch.bool)
    assert compare_spectra(edges, whole, 10).top_error == pytest.approx(0, abs=1e-12)
    assert compare_spectra(edges, whole, 10).bottom_error == pytest.approx(0, abs=1e-12)
    assert compare_spectra(edges, none, 10).top_error == compare_spectra(edges, none, 10).bottom_error == 1
    assert mean_error(np.empty(0), np.empty(0)) == 0
