from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.stats import chi2
from torch_geometric.data import Data

from graphs import KINDS, graphs, random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.sampling import gumbel_scores, inverse_inclusion
from gst.graph.select import top_k
from gst.methods.dspar import DSpar, dspar_rates
from gst.testing import check_mask

DRAWS = 5000


@pytest.fixture
def small() -> Data:
    """A star with a tail: six pairs of three different probabilities."""
    ends = torch.tensor([[0, 0, 0, 0, 4, 5], [1, 2, 3, 4, 5, 6]])
    return Data(edge_index=torch.cat([ends, ends.flip(0)], dim=1), num_nodes=7)


@given(graphs())
def test_rates(data):
    edges = EdgeSet.from_data(data)
    neighbours: dict[int, set[int]] = {}
    for u, v in edges.pairs.t().tolist():
        neighbours.setdefault(u, set()).add(v)
        neighbours.setdefault(v, set()).add(u)
    expected = [1 / len(neighbours[u]) + 1 / len(neighbours[v]) for u, v in edges.pairs.t().tolist()]
    assert torch.equal(dspar_rates(edges), torch.tensor(expected, dtype=torch.float64))


def chance_of_sets(rates: list[float], k: int) -> dict[tuple[int, ...], float]:
    """Drawing one after the other among those left, over every order in which a set can come."""
    chances = {}
    for chosen in combinations(range(len(rates)), k):
        chances[chosen] = 0.0
        for order in permutations(chosen):
            left, chance = sum(rates), 1.0
            for edge in order:
                chance *= rates[edge] / left
                left -= rates[edge]
            chances[chosen] += chance
    return chances


@pytest.mark.parametrize("k", [1, 2, 4])
def test_samples_come_as_often_as_they_should(small, k):
    edges = EdgeSet.from_data(small)
    expected = chance_of_sets(dspar_rates(edges).tolist(), k)
    assert sum(expected.values()) == pytest.approx(1)
    count = dict.fromkeys(expected, 0)
    for seed in range(DRAWS):
        keep, _ = DSpar(keep=k, seed=seed).select(edges)
        count[tuple(keep.nonzero().flatten().tolist())] += 1
    statistic = sum((count[s] - DRAWS * p) ** 2 / (DRAWS * p) for s, p in expected.items())
    assert chi2.sf(statistic, len(expected) - 1) > 1e-3


@pytest.mark.parametrize("k", [1, 3, 5])
def test_weights_are_unbiased(small, k):
    rates = dspar_rates(EdgeSet.from_data(small))
    draws = []
    for seed in range(DRAWS):
        scores = gumbel_scores(rates, seed)
        weights = inverse_inclusion(rates, scores, k)
        assert torch.equal(weights > 0, top_k(scores, k))
        draws.append(weights.numpy())
    error = np.mean(draws, axis=0) - 1
    assert (np.abs(error) < 4 * np.std(draws, axis=0) / DRAWS**0.5).all()


def test_weighted_degrees_of_a_larger_graph_are_unbiased():
    data = random_graph(nodes=60, edges=400, weighted=True)
    edges = EdgeSet.from_data(data)
    ones = torch.ones(edges.num_edges)
    total = torch.stack(
        [DSpar(sparsity=0.5, weights=True, seed=seed)(data).edge_weight.sum() for seed in range(200)]
    ).double()
    assert float((total.mean() - data.edge_weight.sum()).abs()) < 4 * float(total.std()) / 200**0.5
    assert inverse_inclusion(ones, gumbel_scores(ones, 0), edges.num_edges).tolist() == [1.0] * edges.num_edges


@pytest.mark.parametrize("kind", KINDS)
def test_weighted_graph(kind):
    data = random_graph(nodes=25, edges=60, **kind)
    edges, method = EdgeSet.from_data(data), DSpar(sparsity=0.5, weights=True, seed=3)
    mask = edges.to_columns(method.select(edges)[0], True)
    check_mask(data, mask, sparsity=0.5)
    graph = method(data)
    assert torch.equal(graph.edge_index, data.edge_index[:, mask])
    before = data.edge_weight[mask] if "edge_weight" in data else torch.ones(int(mask.sum()))
    factor = graph.edge_weight / before
    loop = graph.edge_index[0] == graph.edge_index[1]
    assert graph.edge_weight.dtype == torch.float32
    assert bool((factor[loop] == 1).all() and (factor[~loop] > 1).all())
    for edge in edges.column_edge[mask].unique():
        alike = factor[edges.column_edge[mask] == edge]
        assert torch.allclose(alike, alike[0])
    full, untouched = DSpar(sparsity=0.0, weights=True)(data), torch.ones(data.num_edges)
    assert torch.equal(full.edge_weight, data.get("edge_weight", untouched))


def test_seeds():
    data = random_graph(nodes=25, edges=60)
    assert torch.equal(DSpar(0.5, seed=1).score(data), DSpar(0.5, seed=1).score(data))
    assert not torch.equal(DSpar(0.5, seed=1).score(data), DSpar(0.5, seed=2).score(data))
    assert repr(DSpar(0.5)) == "DSpar(sparsity=0.5)"


def test_highest_instead_of_a_draw(small):
    kept = DSpar(keep=1, sample=False)(small)
    assert kept.edge_index.t().tolist() == [[5, 6], [6, 5]]  # 1/2 + 1 beats 1/4 + 1 and 1/2 + 1/2
    assert "edge_weight" not in kept
    with pytest.raises(InputError, match="weights=True needs sample=True"):
        DSpar(0.5, sample=False, weights=True)
