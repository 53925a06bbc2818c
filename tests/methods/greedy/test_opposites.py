"""Models of which no arc does anything by itself: opposite arcs come together."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

import gst
from graphs import random_graph
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.batched import BatchedSearch, needs_both_arcs, opposite
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import Path, extend_path, make_search
from gst.nn.trained import TrainedNetwork

pytestmark = pytest.mark.filterwarnings("ignore::gst.AgreementWarning")


def bare() -> Data:
    data = random_graph(nodes=30, edges=80)
    return Data(x=data.x, edge_index=data.edge_index)


def seeded(make):
    torch.manual_seed(0)
    return make()


class Cheb(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.ChebConv(5, 3, K=3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)


def test_arcs_that_do_nothing_alone_are_taken_with_their_opposites():
    """ChebConv divides by out-degrees: an arc to a node without arcs out weighs nothing."""
    data, model = bare(), seeded(Cheb)
    network = TrainedNetwork(model, data, None, torch.device("cpu"))
    edges = EdgeSet.from_data(data, "arcs")
    assert needs_both_arcs(network, edges)
    gcn = TrainedNetwork(seeded(lambda: pyg.GCN(5, 8, 2, 3)), data, None, torch.device("cpu"))
    assert not needs_both_arcs(gcn, edges)
    assert torch.equal(edges.pairs[:, opposite(edges)], edges.pairs.flip(0))
    with torch.no_grad():
        wanted = network.logits(edges)
    losses = {}
    for together in (False, True):
        search = BatchedSearch([network], edges, [wanted], Target.of(wanted), together=together)
        order = search.advance(edges.num_edges // 3)
        kept = torch.from_numpy(search.keep_mask)
        assert order.unique().numel() == order.numel() == int(kept.sum())
        with torch.no_grad():
            loss = float(search.target.loss(wanted, network.logits(edges.subset(kept))).sum())
        assert search.divergence() == pytest.approx(loss, rel=1e-5)
        losses[together] = loss / (edges.num_edges // 3)
    assert torch.equal(edges.pairs[:, order[0::2]], edges.pairs[:, order[1::2]].flip(0))
    assert losses[True] < 0.95 * losses[False]


def test_opposites_together_keep_the_budget_and_resume():
    data, model = bare(), seeded(Cheb)
    total = EdgeSet.from_data(data, "arcs").num_edges
    metrics = gst.Deploy(model, keep=total // 3 | 1, cache=False).fit(data).result_.metrics
    assert metrics["edges_kept"] == total // 3 | 1
    network = TrainedNetwork(model, data, None, torch.device("cpu"))
    edges = EdgeSet.from_data(data, "arcs")
    with torch.no_grad():
        wanted = network.logits(edges)

    def search(path: Path) -> BatchedSearch:
        return make_search([network], edges, [wanted], Target.of(wanted), path=path)

    whole, parts = Path(), Path()
    extend_path(search(whole), whole, total // 3)
    extend_path(search(parts), parts, total // 6)
    extend_path(search(parts), parts, total // 3)
    assert torch.equal(whole.order, parts.order)
