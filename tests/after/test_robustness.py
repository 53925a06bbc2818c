import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gst
from graphs import random_graph
from gst.after.robustness import relocate
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet


@given(st.integers(0, 10**6), st.floats(0, 1), st.booleans(), st.booleans(), st.booleans())
def test_the_requested_number_of_edges_moves(seed, share, directed, loops, duplicates):
    data = random_graph(20, 40, directed=directed, loops=loops, duplicates=duplicates, weighted=True, seed=seed)
    before, after = EdgeSet.from_data(data), EdgeSet.from_data(moved := relocate(data, share, seed))
    assert after.num_edges == before.num_edges
    assert after.directed == before.directed
    old, new = (set(map(tuple, edges.pairs.T.tolist())) for edges in (before, after))
    assert len(old - new) == round(share * len(old))
    torch.testing.assert_close(after.loops, before.loops)
    assert torch.equal(moved.edge_weight, data.edge_weight)
    is_loop = data.edge_index[0] == data.edge_index[1]
    assert torch.equal(moved.edge_index[:, is_loop], data.edge_index[:, is_loop])
    stays = (moved.edge_index == data.edge_index).any(0)  # one end of every column did not move
    swapped = (moved.edge_index == data.edge_index.flip(0)).any(0)
    assert bool((stays | swapped).all())


def test_the_seed_decides_and_the_data_is_unchanged():
    data = gst.load("synthetic:nodes=200,degree=6")
    index = data.edge_index.clone()
    first, again, other = (relocate(data, 0.3, seed).edge_index for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(data.edge_index, index)
    assert torch.equal(relocate(data, 0.0).edge_index, index)


def test_either_end_moves_to_any_node_with_equal_probability():
    """So the expected degree is half the old one and half the mean."""
    data = gst.load("synthetic:nodes=50,degree=4")
    old = EdgeSet.from_data(data).degree
    new = torch.stack([EdgeSet.from_data(relocate(data, 1.0, seed)).degree for seed in range(100)]).double().mean(0)
    assert float((new - (old + 4) / 2).abs().max()) < 0.75  # standard error 0.2


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_bad_share_gets_one_line(share):
    with pytest.raises(InputError, match="a number from 0 to 1 is needed"):
        relocate(gst.load("synthetic:nodes=50,degree=4"), share)


def test_a_full_graph_has_no_room():
    index = torch.combinations(torch.arange(6)).T
    data = random_graph(6)
    data.edge_index = torch.cat([index, index.flip(0)], 1)
    with pytest.raises(InputError, match="no room"):
        relocate(data, 0.5)
