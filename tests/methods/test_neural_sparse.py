import pytest
import torch

import gst
from graphs import random_graph
from gst import EdgeSet, InputError, NeuralSparse
from gst.base.randomness import seeded
from gst.graph.select import top_k
from gst.methods.neural_sparse import Chooser, either_end, rank_scores, row_softmax
from gst.nn.features import as_features

SHORT = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 3, "cache": False}


def neighbours(edges, node):
    """The edges among which a node chooses."""
    ends = edges.pairs[1] == node if edges.directed else (edges.pairs == node).any(0)
    return ends.nonzero().flatten()


@pytest.mark.parametrize("directed", [False, True])
def test_ranks_are_those_at_the_node_that_chooses(directed):
    edges = EdgeSet.from_data(random_graph(nodes=20, edges=60, directed=directed))
    scores = torch.randn(edges.num_edges, generator=torch.Generator().manual_seed(0))
    ranks = torch.full((edges.num_edges,), 10**6)
    for node in range(20):
        own = neighbours(edges, node)
        for rank, edge in enumerate(own[scores[own].argsort(descending=True)].tolist(), 1):
            ranks[edge] = min(int(ranks[edge]), rank)
    assert torch.equal((-rank_scores(edges, scores)).ceil().long(), ranks)


def test_every_node_keeps_its_k_best_and_the_next_fill_the_budget():
    edges = EdgeSet.from_data(random_graph(nodes=20, edges=60))
    x = as_features(torch.randn(20, 5, generator=torch.Generator().manual_seed(0)))
    with seeded(0):
        chooser = Chooser(5, 8)
    order = chooser.ranked(x, edges)
    for num_kept in (15, 30, 45, 60):
        k, keep_mask = chooser.matching(x, edges, num_kept), top_k(order, num_kept)
        for node in range(20):
            own = neighbours(edges, node)
            best = own[order[own].argsort(descending=True)]
            if num_kept > 15:
                assert bool(keep_mask[best[: min(k, 1)]].all())
        within = (-order).ceil() <= k
        assert int(within.sum()) <= num_kept or k == 1
        assert bool(keep_mask[within].all()) or k == 1


def test_a_relaxed_draw_sums_to_k_at_every_node_and_has_gradients():
    edges = EdgeSet.from_data(random_graph(nodes=20, edges=60))
    x = as_features(torch.randn(20, 5, generator=torch.Generator().manual_seed(0)))
    with seeded(0):
        chooser = Chooser(5, 8)
        chooser.temperature, chooser.edges_a_node = 0.5, 1
        values = chooser(x, edges)
    assert float(values.detach().min()) >= 0 and float(values.detach().max()) <= 1
    values.sum().backward()
    assert all(bool((p.grad != 0).any()) for p in chooser.parameters() if p is not chooser.bias)


def test_cold_draws_are_draws_without_replacement():
    """At T → 0 every node chooses k edges whole; the frequencies of the first choice are the softmax."""
    edges = EdgeSet.from_edge_index(torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4)
    with seeded(0):
        chooser = Chooser(2, 4)
    x = as_features(torch.randn(4, 2, generator=torch.Generator().manual_seed(3)))
    chooser.temperature = 1e-4
    logits = super(Chooser, chooser).forward(x, edges).detach()
    with seeded(1):
        draws = torch.stack([chooser(x, edges).detach().round() for _ in range(3000)])
        chooser.edges_a_node = 2
        two = torch.stack([chooser(x, edges).detach().round() for _ in range(50)])
    assert torch.equal(draws.sum(1), torch.ones(3000)) and torch.equal(two.sum(1), torch.full((50,), 2.0))
    assert torch.allclose(draws.mean(0), logits.softmax(0), atol=0.04)


def test_softmax_by_row_and_either_end():
    edges = EdgeSet.from_data(random_graph(nodes=10, edges=20))
    logits = torch.randn(edges.arcs.shape[1], generator=torch.Generator().manual_seed(0))
    shares = row_softmax(edges.arc_pattern, logits)
    for node in range(10):
        own = edges.arcs[1] == node
        assert torch.allclose(shares[own], logits[own].softmax(0))
    values = either_end(edges, shares)
    for edge in range(edges.num_edges):
        assert float(values[edge]) == pytest.approx(1 - float((1 - shares[edges.arc_edge == edge]).prod()), abs=1e-6)


def test_the_returned_model_answers_on_the_returned_graph():
    data = random_graph(nodes=30, edges=60)
    result = gst.sparsify(data, "neural-sparse", sparsity=0.5, **SHORT)
    with torch.no_grad():
        right = result.model.eval()(result.graph.x, result.graph.edge_index).argmax(1) == data.y
    assert result.metrics["val"] == pytest.approx(100 * float(right[data.val_mask].double().mean()))


def test_batches_are_refused():
    with pytest.raises(InputError, match="take batch full"):
        NeuralSparse(sparsity=0.5, batch="clusters", **SHORT).fit(random_graph(nodes=30, edges=60))
