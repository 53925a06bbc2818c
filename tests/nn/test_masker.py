import pytest
import torch
from torch.autograd import gradcheck

from graphs import KINDS, random_graph
from gst.graph.edgeset import EdgeSet
from gst.nn import edge_mlp as module
from gst.nn.edge_mlp import edge_mlp
from gst.nn.masker import Masker


@pytest.fixture(params=["compiled", "fallback", "fallback in small chunks"])
def implementation(request, monkeypatch):
    if request.param != "compiled":
        monkeypatch.setattr(module, "_compiled", lambda tensor: False)
    if "small" in request.param:
        monkeypatch.setattr(module, "_CHUNK", 8)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_scores_are_those_of_the_perceptron_on_both_ends(kind, implementation):
    data = random_graph(**kind)
    edges, masker = EdgeSet.from_data(data), Masker(5, hidden=4, deviation=0.1)
    wa, wb = masker.first.chunk(2, dim=1)

    def psi(target, source):
        return torch.relu(target @ wa + source @ wb + masker.bias) @ masker.last

    u, v = data.x[edges.pairs[0]], data.x[edges.pairs[1]]
    raw = psi(v, u) if edges.directed else (psi(u, v) + psi(v, u)) / 2
    expected = 1 + 0.1 * (raw - raw.mean()) / raw.std(unbiased=False)
    assert torch.allclose(masker(data.x, edges), expected, atol=1e-5)


@pytest.mark.parametrize("nodes", [12, 300])
def test_gradients(nodes, implementation):
    edges = EdgeSet.from_data(random_graph(nodes=nodes, edges=30, directed=True))
    n = edges.num_nodes
    inputs = tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((n, 3), (n, 3), (3,)))
    assert gradcheck(lambda p, q, w: edge_mlp(edges.arc_pattern, p, q, w), inputs)


def test_mask_has_mean_one_and_the_deviation_asked_for():
    data = random_graph(nodes=60, edges=300)
    mask = Masker(5, deviation=0.01)(data.x, EdgeSet.from_data(data)).detach()
    assert abs(float(mask.mean()) - 1) < 1e-5
    assert abs(float(mask.std(unbiased=False)) - 0.01) < 1e-5
    assert float(mask.min()) > 0


def test_one_edge_has_mask_one():
    data = random_graph(nodes=4, edges=0)
    data.edge_index = torch.tensor([[0, 1], [1, 0]])
    assert Masker(5)(data.x, EdgeSet.from_data(data)).tolist() == [1.0]
