import pytest
import torch

from graphs import random_graph
from gst.graph.edgeset import EdgeSet
from gst.methods.criteria.balance import combine
from gst.methods.criteria.semantic import semantic_scores
from gst.nn.backbones import BACKBONES
from gst.nn.network import NativeNetwork
from gst.train.task import Task


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", list(BACKBONES))
def test_semantic_scores_against_finite_differences(name, directed):
    data = random_graph(nodes=15, edges=30, directed=directed)
    edges, task = EdgeSet.from_data(data), Task.from_data(data)
    torch.manual_seed(0)
    extra = {"heads": 2} if name == "gat" else {}
    network = NativeNetwork(BACKBONES[name](5, 8, 3, **extra).double(), data.x.double())
    anchor = network.logits(edges).detach() + 0.5 * torch.randn(15, 3)
    keep_mask = torch.rand(edges.num_edges) < 0.5
    mask = 1 + 0.1 * torch.rand(edges.num_edges, dtype=torch.float64)
    scores = semantic_scores(network, task, anchor, edges, keep_mask, mask)

    def divergence(gate):
        with torch.no_grad():
            return float(task.divergence(anchor, network.logits(edges, mask * gate)))

    for e in range(edges.num_edges):
        step = torch.zeros(edges.num_edges, dtype=torch.float64)
        step[e] = 1e-6
        slope = (divergence(keep_mask.double() + step) - divergence(keep_mask.double() - step)) / 2e-6
        assert float(scores[e]) == pytest.approx(abs(slope), rel=1e-4, abs=1e-8)
    assert bool((scores[~keep_mask] > 0).all())


def test_combination_weighs_normalised_terms():
    semantic, topology = torch.tensor([1e-9, 3e-9]), torch.tensor([10.0, 30.0])
    assert combine(semantic, topology, 1, 1).tolist() == pytest.approx([1.0, 3.0])
    assert combine(semantic, topology.flip(0), 2, 1).tolist() == pytest.approx([2.5, 3.5])
    assert combine(None, topology, 1, 2).tolist() == pytest.approx([1.0, 3.0])
    assert combine(semantic, torch.zeros(2), 1, 1).tolist() == pytest.approx([0.5, 1.5])


def test_divergence_is_kl():
    data = random_graph()
    task = Task.from_data(data)
    a, b = torch.randn(12, 3), torch.randn(12, 3)
    p, q = a.softmax(1), b.softmax(1)
    assert float(task.divergence(a, b)) == pytest.approx(float((p * (p / q).log()).sum() / 12), rel=1e-5)
    assert float(task.divergence(a, a)) == pytest.approx(0, abs=1e-6)
