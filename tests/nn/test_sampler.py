"""Sampled neighbourhoods: what is drawn, how often, and that a full draw is the whole row."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from graphs import graphs, random_graph
from gst.graph import EdgeSet
from gst.nn.sampler import row_entries, sample_entries


def adjacency(data):
    return EdgeSet.from_edge_index(data.edge_index, data.num_nodes).adjacency


@given(graphs(), st.integers(0, 5), st.integers(0, 1000))
def test_samples_are_part_of_the_row_of_the_right_size_and_hold_the_diagonal(data, fanout, seed):
    pattern = adjacency(data).pattern
    rows = torch.arange(0, data.num_nodes, 2)
    found = sample_entries(pattern, rows, fanout, seed)
    assert torch.equal(found, found.sort().values) and found.unique().numel() == found.numel()
    for row in range(data.num_nodes):
        mine = found[pattern.row[found] == row]
        whole = (pattern.row == row).nonzero().flatten()
        if row % 2:
            assert mine.numel() == 0
            continue
        assert mine.numel() == min(whole.numel(), fanout + 1)
        assert bool(torch.isin(mine, whole).all()) and row in pattern.col[mine].tolist()


@given(graphs())
def test_all_entries_of_some_rows(data):
    pattern = adjacency(data).pattern
    rows = torch.arange(1, data.num_nodes, 2)
    expected = torch.isin(pattern.row, rows).nonzero().flatten()
    assert torch.equal(row_entries(pattern, rows), expected)
    assert torch.equal(sample_entries(pattern, rows, 10_000, seed=0), expected)


@pytest.mark.parametrize("fanout", [1, 3, 7])
def test_every_neighbour_is_drawn_as_often_as_any_other(fanout):
    pattern = adjacency(random_graph(nodes=14, edges=120, seed=2)).pattern
    row = int(torch.bincount(pattern.row).argmax())
    whole = row_entries(pattern, torch.tensor([row]))
    counts, pairs = torch.zeros(pattern.nnz), torch.zeros(pattern.nnz, pattern.nnz)
    for seed in range(4000):
        mine = sample_entries(pattern, torch.tensor([row]), fanout, seed)
        counts[mine] += 1
        pairs[mine[:, None], mine[None]] += 1
    others = whole[pattern.col[whole] != row]
    assert others.numel() > fanout and int(counts.sum()) == 4000 * (fanout + 1)
    assert chisquare(counts[others].numpy()).pvalue > 1e-3
    if fanout > 1:  # two neighbours come together as often as any other two
        u, v = torch.combinations(others).t()
        assert chisquare(pairs[u, v].numpy()).pvalue > 1e-3


def test_one_seed_one_draw_whatever_else_is_asked_for():
    pattern = adjacency(random_graph(nodes=40, edges=300)).pattern
    alone = sample_entries(pattern, torch.tensor([7]), 3, seed=5)
    among = sample_entries(pattern, torch.arange(40), 3, seed=5)
    assert torch.equal(alone, among[pattern.row[among] == 7])
    assert not torch.equal(among, sample_entries(pattern, torch.arange(40), 3, seed=6))


def test_sampled_blocks_reach_only_what_they_read():
    edges = EdgeSet.from_data(random_graph(nodes=60, edges=400))
    nodes = torch.tensor([3, 11, 40])
    blocks = edges.adjacency.blocks(2, nodes, lambda pattern, rows, layer: sample_entries(pattern, rows, 2, 10 + layer))
    assert blocks[1].pattern.shape[0] == 3 and blocks[1].pattern.nnz <= 9
    assert torch.equal(blocks[1].nodes, blocks[0].nodes[blocks[0].own])
    full = edges.adjacency.blocks(2, nodes)
    assert bool(torch.isin(blocks[0].nodes, full[0].nodes).all()) and blocks[0].nodes.numel() < full[0].nodes.numel()
