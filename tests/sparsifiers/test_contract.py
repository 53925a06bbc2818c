"""Every sparsifier through the shared tester."""

import pytest
import torch
from contract import check_graph_of, check_mask
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import KINDS, graphs, random_graph
from gst import GST, EdgeSet, Random
from gst.select import top_k

QUICK = {"hidden": 8, "heads": 2, "anchor_epochs": 3, "sparse_epochs": 6, "interval": 2, "cache": False}
METHODS = {
    "random": Random,
    "gst": lambda **budget: GST(**budget, **QUICK),
    "gst-gin": lambda **budget: GST(**budget, **QUICK, backbone="gin", matrix="adjacency", eigenpairs=3),
    "gst-gat": lambda **budget: GST(**budget, **QUICK, backbone="gat", matrix="normalised", eigenpairs=3),
}


def mask_of(method, data):
    """The mask over columns, and the sparse graph."""
    if isinstance(method, GST):
        return method.fit(data).mask_, method.transform(data)
    edges = EdgeSet.from_data(data)
    return edges.to_columns(method.select(edges)[0], True), method(data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.3, 0.5, 0.8, 0.9])
def test_exact_budget_subset_symmetry(name, sparsity, kind):
    data = random_graph(nodes=25, edges=60, **kind)
    mask, sparse = mask_of(METHODS[name](sparsity=sparsity), data)
    check_mask(data, mask, sparsity=sparsity)
    check_graph_of(data, sparse, mask)
    if sparsity == 0:
        assert bool(mask.all())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("keep", [0, 1, 2])
def test_one_edge_left_and_none(name, keep):
    data = random_graph(nodes=25, edges=60)
    mask, _ = mask_of(METHODS[name](keep=keep), data)
    check_mask(data, mask, keep=keep)


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_mask(name):
    data = random_graph(nodes=25, edges=60)
    first, second = (mask_of(METHODS[name](sparsity=0.5), data)[0] for _ in range(2))
    assert torch.equal(first, second)


@settings(max_examples=50)
@given(graphs(), st.floats(0, 0.99))
def test_random_on_any_graph(data, sparsity):
    mask, sparse = mask_of(Random(sparsity=sparsity), data)
    check_mask(data, mask, sparsity=sparsity)
    check_graph_of(data, sparse, mask)


def test_scores_of_random_agree_with_its_choice():
    data = random_graph(nodes=25, edges=60, loops=True)
    edges, method = EdgeSet.from_data(data), Random(keep=10, seed=4)
    scores = method.score(data)
    assert scores.dtype == torch.float64 and scores.numel() == data.edge_index.shape[1]
    assert bool(scores[edges.column_edge < 0].isinf().all())
    edge_scores = method.edge_scores(edges)
    assert torch.equal(edges.to_columns(top_k(edge_scores, 10), True), mask_of(method, data)[0])
    assert not torch.equal(Random(keep=10, seed=5).score(data), scores)
    assert repr(method) == "Random(keep=10)" and repr(Random(0.4)) == "Random(sparsity=0.4)"
