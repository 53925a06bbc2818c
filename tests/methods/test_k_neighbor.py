"""K-Neighbor: k arcs into every node."""

import pytest
import torch

import gst
from graphs import random_graph
from gst import EdgeSet, KNeighbor


@pytest.mark.parametrize("scores", ["random", "scan", "local-similarity", "dspar"])
def test_every_node_keeps_its_best(scores):
    data = random_graph(nodes=20, edges=60)
    edges = EdgeSet.from_data(data, "arcs")
    method = KNeighbor(max_degree=3, scores=scores, seed=2)
    keep_mask, _ = method.select(edges)
    base = gst.methods.METHODS[scores](keep=1, seed=2).edge_scores(edges)
    for node in range(20):
        into = (edges.pairs[1] == node).nonzero().flatten()
        best = torch.sort(base[into], descending=True, stable=True).indices[:3]
        assert set(into[best].tolist()) == set(into[keep_mask[into]].tolist())


def test_under_a_budget_nodes_take_turns():
    edges = EdgeSet.from_data(random_graph(nodes=20, edges=60), "arcs")
    degree = torch.bincount(edges.pairs[1], minlength=20)
    for keep in (5, 19, 30, 60):
        keep_mask, _ = KNeighbor(keep=keep).select(edges)
        reads = torch.bincount(edges.pairs[1][keep_mask], minlength=20)
        most = int(reads.max())
        assert int(keep_mask.sum()) == keep and bool((reads >= degree.clamp(max=most - 1)).all())


def test_scores_of_a_method_that_scores_no_graph_are_refused():
    for scores in ("gst", "k-neighbor", "nothing"):
        with pytest.raises(gst.InputError):
            KNeighbor(max_degree=3, scores=scores)
