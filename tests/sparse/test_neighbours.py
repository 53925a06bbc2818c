"""The compact list of arcs, its blocks, and layer-by-layer evaluation: all equal to the full batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import KINDS, graphs, random_graph
from gst.graph.edgeset import EdgeSet
from gst.nn import layerwise
from gst.nn.backbones import BACKBONES
from gst.nn.features import SparseFeatures
from gst.nn.layerwise import edge_gradient, layerwise_logits
from gst.nn.masker import Masker
from gst.sparse.csr import Pattern


def backbone(name, depth=2):
    torch.manual_seed(1)
    extra = {"heads": 2} if name == "gat" else {}
    return BACKBONES[name](5, 8, 3, layers=depth, **extra).double().eval()


@given(graphs(), st.data())
def test_rows_and_degrees_are_those_of_the_adjacency(data, draw):
    edges = EdgeSet.from_edge_index(data.edge_index, data.num_nodes)
    rows = torch.tensor(sorted(draw.draw(st.sets(st.integers(0, data.num_nodes - 1), min_size=1))))
    found = edges.neighbours.block(rows)
    block, whole = found.block, edges.adjacency.blocks(1, rows)[0]
    assert torch.equal(block.nodes, whole.nodes) and torch.equal(block.row_columns, whole.row_columns)
    assert torch.equal(block.pattern.row, whole.pattern.row) and torch.equal(block.pattern.col, whole.pattern.col)
    assert torch.equal(found.edge, edges.adjacency.source[whole.entries][found.off_diagonal])
    assert torch.equal(edges.neighbours.reached(rows), whole.nodes)
    values = torch.rand(edges.num_edges, dtype=torch.float64)
    matrix = torch.eye(data.num_nodes, dtype=torch.float64) * torch.where(edges.loops > 0, edges.loops, 1.0)
    matrix[edges.arcs[1], edges.arcs[0]] = values[edges.arc_edge] * (1.0 if edges.weights is None else edges.arc_weight)
    assert torch.allclose(edges.neighbours.degree(values, torch.float64), matrix.sum(1))


@given(graphs(), st.data())
def test_induced_subgraphs(data, draw):
    edges = EdgeSet.from_edge_index(data.edge_index, data.num_nodes)
    nodes = torch.tensor(sorted(draw.draw(st.sets(st.integers(0, data.num_nodes - 1), min_size=1))))
    part, ids = edges.induced(nodes)
    inside = torch.isin(edges.pairs, nodes).all(0)
    assert torch.equal(ids, inside.nonzero().flatten())
    assert torch.equal(nodes[part.pairs], edges.pairs[:, ids])
    assert torch.equal(part.loops, edges.loops[nodes])


@pytest.mark.parametrize(("kind", "run", "depth"), [*((kind, 7, 2) for kind in KINDS[2:]), ({}, 20, 3)])
@pytest.mark.parametrize("name", BACKBONES)
def test_layer_by_layer_equals_the_full_batch(name, kind, run, depth, monkeypatch):
    monkeypatch.setattr(layerwise, "RUN", run)
    data = random_graph(nodes=30, edges=90, **kind)
    edges, model, x = EdgeSet.from_data(data), backbone(name, depth), data.x.double()
    some = torch.tensor([1, 4, 29])
    values = 1 + 0.1 * torch.randn(edges.num_edges, dtype=torch.float64)
    values[::3] = 0
    for edge_values in (None, values):
        expected = model.run(x, edges.adjacency.blocks(depth), edge_values)
        assert torch.allclose(layerwise_logits(model, x, edges, edge_values), expected, atol=1e-6, rtol=1e-6)
        assert torch.allclose(layerwise_logits(model, x, edges, edge_values, some), expected[some], atol=1e-6)
    target = torch.randn(30, 3, dtype=torch.float64)

    def loss(logits):
        return (logits.log_softmax(-1) * target).sum()

    leaf = values.clone().requires_grad_()
    expected = torch.autograd.grad(loss(model.run(x, edges.adjacency.blocks(depth), leaf)), leaf)[0]
    found = edge_gradient(model, x, edges, values, loss)
    assert torch.allclose(found, expected, atol=1e-6, rtol=1e-6)
    assert bool((found[::3] != 0).any()), "edges of value 0 have a gradient, too"


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", BACKBONES)
def test_single_precision_kernels_equal_the_full_batch(name, sparse, monkeypatch):
    monkeypatch.setattr(layerwise, "RUN", 11)
    data = random_graph(nodes=30, edges=90, loops=True)
    edges, model = EdgeSet.from_data(data), backbone(name).float()
    x = SparseFeatures(Pattern(*data.x.nonzero().t(), data.x.shape), data.x[data.x != 0]) if sparse else data.x
    values = 1 + 0.1 * torch.randn(edges.num_edges)
    values[::3] = 0
    leaf = values.clone().requires_grad_()
    expected = model.run(x, edges.adjacency.blocks(2), leaf)
    slope = torch.autograd.grad(expected.square().sum(), leaf)[0]
    assert torch.allclose(layerwise_logits(model, x, edges, values), expected, atol=1e-4)
    found = edge_gradient(model, x, edges, values, lambda logits: logits.square().sum())
    assert torch.allclose(found, slope, atol=1e-4 * float(slope.abs().max()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_of_all_edges_without_a_list_of_arcs(kind):
    data = random_graph(nodes=40, edges=150, **kind)
    edges, masker = EdgeSet.from_data(data), Masker(5, 6)
    assert torch.equal(masker.everywhere(data.x, edges), masker(data.x, edges))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_at_the_entries_of_blocks(kind):
    data = random_graph(nodes=40, edges=150, **kind)
    edges, masker = EdgeSet.from_data(data), Masker(5, 6).double()
    x = data.x.double()
    last = edges.neighbours.block(torch.tensor([2, 7, 30]))
    first = edges.neighbours.block(last.nodes)
    parts = masker.at_entries(x[first.nodes], [first, last], edges.directed)
    target, source = masker._halves(x)
    row, col = edges.arcs[1], edges.arcs[0]
    raw = edges.edge_mean((target[row] + source[col]).relu() @ masker.last)
    entries = torch.cat([first.edge, last.edge])
    assert torch.allclose(torch.cat(parts), masker._standard(raw[entries]))
