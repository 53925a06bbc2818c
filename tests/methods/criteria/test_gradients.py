import pytest
import torch

from graphs import random_graph
from gst.graph.edgeset import EdgeSet
from gst.methods.criteria.gradients import edge_gradient, mutation_importance, sensitivity, smoothed
from gst.nn.backbones import BACKBONES
from gst.nn.network import NativeNetwork
from gst.train.task import Task


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", list(BACKBONES))
def test_gradient_and_sensitivity_against_finite_differences(name, directed):
    data = random_graph(nodes=15, edges=30, directed=directed)
    edges, task = EdgeSet.from_data(data), Task.from_data(data)
    torch.manual_seed(0)
    extra = {"heads": 2} if name == "gat" else {}
    network = NativeNetwork(BACKBONES[name](5, 8, 3, **extra).double(), data.x.double())
    keep_mask = torch.rand(edges.num_edges) < 0.5
    mask = 1 + 0.1 * torch.rand(edges.num_edges, dtype=torch.float64)
    gradient = edge_gradient(network, task, edges, keep_mask, mask)
    whole = edge_gradient(network, task, edges, torch.ones_like(keep_mask), mask)

    def loss(values):
        with torch.no_grad():
            return float(task.loss(network.logits(edges, values)[task.train]))

    for e in range(edges.num_edges):
        step = torch.zeros(edges.num_edges, dtype=torch.float64)
        step[e] = 1e-6
        slope = (loss(mask * keep_mask + step) - loss(mask * keep_mask - step)) / 2e-6
        assert float(gradient[e]) == pytest.approx(slope, rel=1e-4, abs=1e-8)
        closing = (loss(mask * (1 + step)) - loss(mask * (1 - step))) / 2e-6  # SNIP's definition: ∂L/∂c at c = 1
        assert float(sensitivity(mask, whole)[e]) == pytest.approx(abs(closing), rel=1e-4, abs=1e-8)
    assert bool((gradient[~keep_mask] != 0).any()), "pruned edges need a gradient to regrow by"


def test_mutation_importance_divides_each_term_by_its_deviation():
    keep_mask = torch.tensor([True, True, True, False])
    weights, gradient = torch.tensor([1.0, -3.0, 5.0, 100.0]), torch.tensor([1e-6, 3e-6, -5e-6, 100.0])
    deviation = (8 / 3) ** 0.5  # of 1, 3, 5
    importance = mutation_importance(weights, gradient, 2.0, keep_mask)
    assert importance[:3].tolist() == pytest.approx([3 / deviation, 9 / deviation, 15 / deviation])
    assert not bool(mutation_importance(weights, gradient, 1.0, ~torch.ones(4, dtype=torch.bool)).isnan().any())


def test_momentum_decays_exponentially():
    momentum, gradients = torch.zeros(2), torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    for gradient in gradients:
        momentum = smoothed(momentum, gradient, 0.9)
    expected = sum(0.1 * 0.9 ** (5 - i) * g for i, g in enumerate(gradients))
    assert torch.allclose(momentum, expected)
