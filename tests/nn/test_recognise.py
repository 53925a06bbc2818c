"""Models of PyG's layers become tapes that give the same answers, or are left as they are."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from gst.graph.edgeset import EdgeSet
from gst.nn.own_model import call_model
from gst.nn.recognise import native
from recognised import CLASSES, FEATURES, KNOWN, NODES, graph, model, stack, trained


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_the_tape_gives_the_models_answers_on_any_edges(name: str, directed: bool) -> None:
    data, own = graph(directed=directed), trained(name)
    network = native(own, data)
    assert network is not None
    for seed in range(3):
        part = data.edge_subgraph(torch.rand(data.num_edges, generator=torch.Generator().manual_seed(seed)) < seed / 2)
        edges = EdgeSet.from_edge_index(part.edge_index, NODES)
        with torch.no_grad():
            torch.testing.assert_close(network.logits(edges), call_model(own, part), rtol=1e-4, atol=1e-5)
            picked = torch.tensor([2, 7])
            torch.testing.assert_close(network.logits(edges, None, picked), network.logits(edges)[picked])


@pytest.mark.parametrize("name", ["GCN", "GraphSAGE", "GAT"])
def test_a_value_of_zero_is_deletion(name: str) -> None:
    data = graph()
    network, edges = native(trained(name), data), EdgeSet.from_data(data)
    assert network is not None
    keep_mask = torch.arange(edges.num_edges) % 3 > 0
    with torch.no_grad():
        expected = network.logits(edges.subset(keep_mask))
        torch.testing.assert_close(network.logits(edges, keep_mask.float()), expected, rtol=1e-4, atol=1e-5)


def test_edge_weights_count_where_the_model_reads_them() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = pyg.GCNConv(FEATURES, 8), pyg.GraphConv(8, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)

    data = graph()
    data.edge_index = torch.unique(data.edge_index, dim=1)
    data.edge_weight = torch.rand(data.num_edges) + 0.5
    for own, weighted in ((Weighted(), True), (trained("GraphSAGE"), False)):
        network = native(own, data)
        assert network is not None and network.tape.weighted == weighted
        with torch.no_grad():
            torch.testing.assert_close(
                network.logits(EdgeSet.from_data(data)), call_model(own.eval(), data), rtol=1e-4, atol=1e-5
            )


def test_folding_leaves_no_norm_and_no_wide_sum() -> None:
    """BatchNorm is part of an affine step; the first product comes before the sums, which are then narrow."""
    network = native(trained("GIN"), graph())
    assert network is not None
    kinds = [step.kind for step in network.tape.steps]
    assert kinds.count("affine") == 3 and kinds[:3] == ["input", "linear", "sum"]
    sgc = native(trained("SGC"), graph())
    assert sgc is not None
    assert [step.width for step in sgc.tape.steps if step.kind == "sum"] == [CLASSES, CLASSES]


class Degrees(nn.Module):
    """Reads the degrees, which change with the edges."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        degree = torch.bincount(edge_index[1], minlength=x.shape[0]).to(x).view(-1, 1)
        return self.conv(x, edge_index) + degree.expand(-1, CLASSES)


class Scaled(nn.Module):
    """Scales by a global mean."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.conv(x, edge_index)
        return x / x.mean()


@pytest.mark.parametrize(
    "own",
    [
        model(pyg.GraphSAGE, aggr="max"),
        model(pyg.GCN, jk="lstm"),
        model(pyg.GCN, norm="graph"),
        stack(pyg.ChebConv(FEATURES, CLASSES, K=2)),
        stack(pyg.GCNConv(FEATURES, CLASSES, cached=True)),
        stack(pyg.GCNConv(FEATURES, CLASSES, flow="target_to_source")),
        Degrees(),
        Scaled(),
        pyg.MLP([FEATURES + 1, 2]),
    ],
    ids=lambda own: type(own).__name__,
)
def test_others_are_left_as_they_are(own: nn.Module) -> None:
    data, before = graph(), dict(vars(own))
    assert native(own, data) is None
    assert vars(own) == before
    assert not any("forward" in vars(layer) for layer in own.modules() if isinstance(layer, pyg.MessagePassing))
