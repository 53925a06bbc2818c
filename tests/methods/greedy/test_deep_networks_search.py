"""The search in networks with skip connections and LayerNorm, against brute force."""

import numpy as np
import pytest
import torch
from brute import STEEP, TARGET, divergence, trials

from graphs import random_graph
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.batched import BatchedSearch
from gst.methods.greedy.kernels import change
from gst.methods.greedy.path import Search, deploy, make_search
from gst.methods.greedy.refresh import refresh
from gst.nn.backbones import BACKBONES
from gst.nn.network import NativeNetwork

LINEAR = [name for name in BACKBONES if name != "gat"]
PARTS = [{"residual": True}, {"norm": "layer"}, {"residual": True, "norm": "layer"}]
BOTH = pytest.mark.parametrize("target", [TARGET, STEEP], ids=["damped", "KL"])


def network_of(name, data, **parts):
    torch.manual_seed(0)
    heads = {"heads": 3} if name == "gat" else {}
    module = BACKBONES[name](data.x.shape[1], 6, 3, layers=3, **heads, **parts).double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return NativeNetwork(module, data.x.double())


@pytest.mark.parametrize("kind", [{}, {"weighted": True, "directed": True, "loops": True}], ids=str)
@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_every_step_is_the_best_one(name, parts, kind):
    data = random_graph(nodes=12, edges=16, **kind)
    edges, network = EdgeSet.from_data(data), network_of(name, data, **parts)
    wanted = network.logits(edges).detach()
    search = make_search([network], edges, [wanted], TARGET)
    assert isinstance(search, Search)
    keep = torch.zeros(edges.num_edges, dtype=torch.bool)
    for sign, step in ((1, search.add), (-1, search.drop)):
        for e, delta in zip(*(part.tolist() for part in step(edges.num_edges, tolerance=0)), strict=True):
            brute = trials(network, edges, keep, wanted, sign)
            assert delta == pytest.approx(float(brute[e]), abs=1e-5)
            assert float(brute[e]) <= float(brute.min()) + 1e-5
            keep[e] = sign > 0


@BOTH
@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_a_refresh_computes_the_divergence_and_the_gradients(name, parts, target):
    """Deferred propagation is estimated, exactly so for a tiny edge weight, and completed by a refresh."""
    data = random_graph(nodes=12, edges=30, weighted=True)
    faint = EdgeSet.from_data(data).column_edge == 3
    data.edge_weight = torch.where(faint, 1e-5, data.edge_weight.double()).float()
    edges, network = EdgeSet.from_data(data), network_of(name, data, **parts)
    wanted = network.logits(edges).detach() + torch.randn(12, 3, dtype=torch.float64)
    keep = torch.ones(edges.num_edges, dtype=torch.bool)
    keep[3] = False
    search = Search([network], edges, [wanted], target, keep_mask=keep, cap=0)
    refresh(search.lists, *search.model, np.zeros(12))
    without = divergence(network, edges, keep, wanted, target)
    assert search.divergence() == pytest.approx(without, rel=1e-6)
    expected = divergence(network, edges, torch.ones_like(keep), wanted, target) - without
    assert change(3, 1.0, search.lists, *search.model) == pytest.approx(expected, rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_attention_with_them_is_searched_in_batched_trials(parts):
    data = random_graph(nodes=30, edges=80)
    edges, network = EdgeSet.from_data(data), network_of("gat", data, **parts)
    logits = network.logits(edges).detach()
    assert isinstance(make_search([network], edges, [logits], TARGET), BatchedSearch)
    assert int(deploy(network, edges, logits, 20)[0].sum()) == 20
