import pytest
import torch
from hypothesis import given

from graphs import graphs, pairs
from gst.graph.edgeset import EdgeSet
from gst.inference.compiled.orders import ORDERS


@pytest.mark.parametrize("name", ORDERS)
@given(data=graphs())
def test_every_order_names_every_node_once(name, data):
    edges = EdgeSet.from_edge_index(data.edge_index, data.num_nodes)
    order = ORDERS[name](edges, 16)
    assert order.dtype == torch.int64 and order.sort().values.tolist() == list(range(data.num_nodes))
    assert torch.equal(ORDERS[name](edges, 16), order)


def test_hubs_come_first():
    data = pairs((3, 0), (3, 1), (3, 2), (1, 2), nodes=5)
    edges = EdgeSet.from_edge_index(data.edge_index, 5)
    assert ORDERS["degree"](edges, 16).tolist() == [3, 1, 2, 0, 4]


def test_rcm_gives_a_path_the_bandwidth_one():
    shuffled = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    data = pairs(*zip(shuffled[:-1].tolist(), shuffled[1:].tolist(), strict=True), nodes=50)
    order = ORDERS["rcm"](EdgeSet.from_edge_index(data.edge_index, 50), 16)
    position = torch.empty_like(order).index_copy_(0, order, torch.arange(50))
    assert int((position[data.edge_index[0]] - position[data.edge_index[1]]).abs().max()) == 1


def test_parts_are_contiguous():
    """Two cliques with interleaved ids: METIS lists one after the other."""
    even, odd = range(0, 40, 2), range(1, 40, 2)
    inside = [(u, v) for group in (even, odd) for u in group for v in group if u < v]
    data = pairs(*inside, (0, 1), nodes=40)
    order = ORDERS["metis"](EdgeSet.from_edge_index(data.edge_index, 40), 16)
    assert len({int(node) % 2 for node in order[:20]}) == 1
