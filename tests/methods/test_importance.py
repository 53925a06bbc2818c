import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphs import KINDS, graphs, random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.methods.importance import ImportanceScores
from gst.testing import check_graph, check_mask


def check(scores, data, **amount):
    method, edges = ImportanceScores(scores, **amount), EdgeSet.from_data(data)
    mask = edges.to_columns(method.select(edges)[0], True)
    check_mask(data, mask, **amount)
    check_graph(data, method(data), mask)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9])
def test_contract_per_column_and_per_edge(sparsity, kind):
    data = random_graph(nodes=25, edges=60, **kind)
    check(torch.randn(data.num_edges), data, sparsity=sparsity)
    check(torch.randn(EdgeSet.from_data(data).num_edges), data, sparsity=sparsity)


@given(graphs(), st.floats(0, 0.99))
def test_contract_on_any_graph(data, sparsity):
    check(torch.randn(data.num_edges), data, sparsity=sparsity)


@pytest.mark.parametrize("kind", KINDS)
def test_mean_over_arcs_and_duplicates(kind):
    data = random_graph(nodes=25, edges=60, **kind)
    edges, scores = EdgeSet.from_data(data), torch.randn(data.num_edges)
    found = ImportanceScores(scores, 0.5).edge_scores(edges)
    for edge in range(edges.num_edges):
        assert float(found[edge]) == pytest.approx(float(scores[edges.column_edge == edge].double().mean()))


def test_scores_of_another_method_pass_through():
    data = random_graph(nodes=25, edges=60, loops=True, duplicates=True)
    edges = EdgeSet.from_data(data)
    first = ImportanceScores(torch.randn(edges.num_edges), 0.5)
    again = ImportanceScores(first.score(data), 0.5)  # infinite on self-loops
    assert torch.allclose(again.score(data), first.score(data))
    assert torch.equal(again(data).edge_index, first(data).edge_index)


def test_lists_arrays_and_integers_are_scores_too():
    data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    for scores in ([3, 1, 2], np.array([3, 1, 2]), torch.tensor([3, 1, 2])):
        assert ImportanceScores(scores, keep=2)(data).edge_index.tolist() == [[0, 2], [1, 0]]
    surely = ImportanceScores([-torch.inf, torch.inf, 0], keep=2)
    assert surely(data).edge_index.tolist() == [[1, 2], [2, 0]]


@pytest.mark.parametrize(
    "scores", [torch.zeros(3, 2), torch.tensor(1.0), torch.zeros(3, dtype=torch.complex64), "high"]
)
def test_what_cannot_be_scores(scores):
    with pytest.raises(InputError, match="scores"):
        ImportanceScores(scores, 0.5)


def test_wrong_number_of_scores():
    data = random_graph(nodes=25, edges=60)
    edges = EdgeSet.from_data(data).num_edges
    with pytest.raises(InputError, match=f"scores has 7 numbers: {2 * edges} are needed.*or {edges}, one per edge"):
        ImportanceScores(torch.zeros(7), 0.5)(data)


def test_nan_names_the_edge():
    data = Data(edge_index=torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]]), num_nodes=3)
    with pytest.raises(InputError, match=r"NaN at the edge of nodes 1 and 2 \(1 such edges\)"):
        ImportanceScores([0, torch.nan, 0, 0], 0.5)(data)
    assert ImportanceScores([0, 1, 0, torch.nan], keep=1)(data).num_edges == 2  # a self-loop's score is nobody's


def test_a_budget_is_needed():
    with pytest.raises(InputError, match="sparsity="):
        ImportanceScores([1.0])
