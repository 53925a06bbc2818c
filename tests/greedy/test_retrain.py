import pytest
import torch

from graphs import random_graph
from gst.graph import EdgeSet
from gst.greedy.retrain import edge_agreement, label_flow, local_rank, retrain
from gst.nn.backbones import GCN
from gst.nn.network import NativeNetwork


@pytest.mark.parametrize("directed", [False, True])
def test_retrain_keeps_the_budget(directed):
    data = random_graph(nodes=30, edges=80, directed=directed)
    edges, logits = EdgeSet.from_data(data), torch.randn(30, 3)
    labelled, seen = data.train_mask.nonzero().flatten(), []

    def train(sparse, number):
        torch.manual_seed(number)
        seen.append((number, sparse.num_edges))
        return NativeNetwork(GCN(5, 4, 3).eval(), data.x)

    keep = retrain(edges, logits, data.y, labelled, 20, train)
    assert int(keep.sum()) == 20
    assert seen == [(number, 20) for number in range(10)]


def test_priors_by_hand():
    index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])  # a path, its first node labelled
    edges, labelled = EdgeSet.from_edge_index(index, 4), torch.tensor([0])
    logits = torch.tensor([[0.0, 9.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    agreement = edge_agreement(edges, logits, torch.tensor([0, 9, 9, 9]), labelled)  # labels of others are never read
    assert agreement.tolist() == pytest.approx([1.0, 1.0, 0.0], abs=1e-9)
    assert local_rank(edges, agreement).tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-5)
    flow = label_flow(edges, agreement, labelled)
    assert flow[0] == 1
    assert flow[0] > flow[1] > flow[2] > 0
