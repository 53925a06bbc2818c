import pytest
import torch

from graphs import random_graph
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.prior import Prior, edge_agreement, exchange_edges, label_flow, local_rank
from gst.nn.backbones import GAT, GCN
from gst.nn.network import NativeNetwork
from gst.train.task import Task


@pytest.mark.parametrize("ratio", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("backbone", [GCN, GAT])
def test_a_turn_keeps_the_budget_and_exchanges_at_most_its_ratio(backbone, directed, ratio):
    data = random_graph(nodes=30, edges=80, directed=directed)
    edges, logits, task = EdgeSet.from_data(data), torch.randn(30, 3), Task.from_data(data)
    torch.manual_seed(0)
    networks = [NativeNetwork(backbone(5, 8, 3).eval(), data.x) for _ in range(2)]
    prior = Prior.of(edges, logits, task)
    before = top_k(prior.start_scores(edges), 20)
    after = exchange_edges(edges, before, networks, logits, Target.of(logits), prior, ratio)
    assert int(before.sum()) == int(after.sum()) == 20
    assert int((before & ~after).sum()) <= int(ratio * 20)


def test_prior_of_a_path_by_hand():
    index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])  # a path whose first node is labelled
    edges, labelled, rest = EdgeSet.from_edge_index(index, 4), torch.tensor([0]), torch.tensor([1, 2, 3])
    logits = torch.tensor([[0.0, 9.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    task = Task(torch.tensor([0, 9, 9, 9]), labelled, rest, rest, 2, "accuracy")  # labels of other nodes are never read
    agreement = edge_agreement(edges, logits, task)
    assert agreement.tolist() == pytest.approx([1.0, 1.0, 0.0], abs=1e-9)
    assert local_rank(edges, agreement).tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-5)
    flow = label_flow(edges, agreement, labelled)
    assert flow[0] == 1
    assert flow[0] > flow[1] > flow[2] > 0


def test_agreement_with_several_labels():
    edges = EdgeSet.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
    logits = torch.tensor([[0.0, 0.6], [-0.3, 0.3]])
    task = Task(torch.tensor([[1, 0], [0, 0]]), *torch.tensor([[0], [1], [1]]), 2, "rocauc")
    probability = torch.sigmoid(logits[1] / 0.3)
    expected = (probability[0] + 1 - probability[1]) / 2  # the labelled end has the first label, not the second
    assert float(edge_agreement(edges, logits, task)) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(("num_kept", "weight"), [(0, 4.0), (30, 4.0), (100, 1.0), (200, 0.1), (120, (1 / 1.2) ** 5)])
def test_agreement_weighs_more_the_fewer_edges_are_kept(num_kept, weight):
    agreement, flow = torch.rand(2, 7, dtype=torch.float64)
    assert torch.allclose(Prior(agreement, flow, nodes=300).bonus(num_kept), weight * agreement + 2 * flow)
