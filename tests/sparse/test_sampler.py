"""Sampled neighbourhoods: sizes, frequencies, and complete rows if the fanout is large."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from graphs import graphs, random_graph
from gst.graph.edgeset import EdgeSet
from gst.nn.backbones import GIN, SAGE
from gst.sparse.sampler import draw_entries, row_entries


def neighbours(data):
    return EdgeSet.from_edge_index(data.edge_index, data.num_nodes).neighbours


def draw(graph, rows, fanout, seed):
    return torch.from_numpy(draw_entries(graph.start, rows.numpy(), fanout, seed))


@given(graphs(), st.integers(0, 5), st.integers(0, 2**62))
def test_samples_are_subsets_of_their_rows_of_the_right_size(data, fanout, seed):
    graph = neighbours(data)
    rows = torch.arange(0, data.num_nodes, 2)
    found = draw(graph, rows, fanout, seed)
    assert torch.equal(found, found.sort().values) and found.unique().numel() == found.numel()
    for row in range(data.num_nodes):
        start, end = graph.start[row : row + 2]
        mine = found[(found >= start) & (found < end)]
        assert mine.numel() == (0 if row % 2 else min(end - start, fanout))


@given(graphs())
def test_all_entries_of_some_rows(data):
    pattern = EdgeSet.from_edge_index(data.edge_index, data.num_nodes).adjacency.pattern
    rows = torch.arange(1, data.num_nodes, 2)
    assert torch.equal(row_entries(pattern, rows), torch.isin(pattern.row, rows).nonzero().flatten())


@pytest.mark.parametrize("fanout", [1, 3, 7])
def test_all_neighbours_are_drawn_equally_often(fanout):
    graph = neighbours(random_graph(nodes=14, edges=120, seed=2))
    length = torch.from_numpy(graph.start).diff()
    row = int(length.argmax())
    others = torch.arange(int(graph.start[row]), int(graph.start[row + 1]))
    total = int(graph.start[-1])
    counts, pairs = torch.zeros(total), torch.zeros(total, total)
    for seed in range(4000):
        mine = draw(graph, torch.tensor([row]), fanout, seed)
        counts[mine] += 1
        pairs[mine[:, None], mine[None]] += 1
    assert others.numel() > fanout and int(counts.sum()) == 4000 * fanout
    assert chisquare(counts[others].numpy()).pvalue > 1e-3
    if fanout > 1:  # and so are all pairs of neighbours
        u, v = torch.combinations(others).t()
        assert chisquare(pairs[u, v].numpy()).pvalue > 1e-3


def test_a_draw_depends_only_on_seed_and_row():
    graph = neighbours(random_graph(nodes=40, edges=300))
    alone, among = draw(graph, torch.tensor([7]), 3, 5), draw(graph, torch.arange(40), 3, 5)
    assert bool(torch.isin(alone, among).all()) and alone.numel() == 3
    assert not torch.equal(among, draw(graph, torch.arange(40), 3, 6))


@pytest.mark.parametrize("make", [SAGE, GIN])
def test_sampled_means_and_sums_are_unbiased(make):
    data = random_graph(nodes=30, edges=250, loops=True)
    edges = EdgeSet.from_data(data)
    layer, rows = make(5, 4, 2, layers=1).double().eval().layers[0], torch.tensor([3, 11, 20])
    with torch.no_grad():
        expected = layer(data.x.double(), edges.adjacency.blocks(1)[0], None)[rows]
        draws = []
        for seed in range(1200):
            block = edges.neighbours.block(rows, 4, seed).block
            assert block.nodes.numel() <= 3 * 5
            draws.append(layer(data.x.double()[block.nodes], block, None))
    found = torch.stack(draws)
    error = (found.mean(0) - expected).abs() / (found.std(0) / 1200**0.5)
    assert bool((found.std(0) > 0).all()) and float(error.max()) < 4
