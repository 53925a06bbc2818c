"""Backbones against PyG's layers, against deletion, and against finite differences."""

import pytest
import torch
from torch.autograd import gradcheck
from torch_geometric.nn import ClusterGCNConv, GATConv, GCNConv, GINConv, SAGEConv

from graphs import KINDS, random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.nn.backbones import BACKBONES, GAT, GCN
from gst.nn.backbones.cluster_gcn import ClusterGCNLayer
from gst.nn.backbones.gat import GATLayer
from gst.nn.backbones.gcn import GCNLayer
from gst.nn.backbones.gin import GINLayer
from gst.nn.backbones.sage import SAGELayer
from gst.nn.features import SparseFeatures, as_features
from gst.nn.network import NativeNetwork

NAMES = list(BACKBONES)
LAYERS = [GCNLayer(5, 6), GINLayer(5, 6), GATLayer(5, 3, heads=2), SAGELayer(5, 6), ClusterGCNLayer(5, 6)]


def build(name: str, data, **kwargs):
    torch.manual_seed(1)
    extra = {"heads": 2} if name == "gat" else {}
    return BACKBONES[name](data.x.shape[1], 8, 3, **extra, **kwargs).eval()


def logits(model, x, edges, values=None, nodes=None):
    return NativeNetwork(model, x).logits(edges, values, nodes)


def as_pyg(layer, inputs: int, outputs: int):
    """The PyG layer with the same weights."""
    if isinstance(layer, GCNLayer):
        other = GCNConv(inputs, outputs)
        other.lin.weight.data = layer.weight.data.t().contiguous()
    elif isinstance(layer, GINLayer):
        other = GINConv(torch.nn.Linear(inputs, outputs), train_eps=True)
        other.nn.weight.data, other.nn.bias.data = layer.weight.data.t().contiguous(), layer.bias.data
        other.eps.data = layer.eps.data.view(1)
        return other
    elif isinstance(layer, ClusterGCNLayer):
        other = ClusterGCNConv(inputs, outputs)
        other.lin_out.weight.data, other.lin_out.bias.data = layer.weight.data.t().contiguous(), layer.bias.data
        other.lin_root.weight.data = layer.root.data.t().contiguous()
        return other
    elif isinstance(layer, SAGELayer):
        other = SAGEConv(inputs, outputs)
        other.lin_l.weight.data, other.lin_l.bias.data = layer.weight.data.t().contiguous(), layer.bias.data
        other.lin_r.weight.data = layer.root.data.t().contiguous()
        return other
    else:
        other = GATConv(inputs, outputs // layer.heads, heads=layer.heads)
        other.lin.weight.data = layer.weight.data.t().contiguous()
        other.att_src.data, other.att_dst.data = layer.attend_source.data[None], layer.attend_target.data[None]
    other.bias.data = layer.bias.data
    return other


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.get("weighted")])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_equal_pyg(layer, kind):
    data = random_graph(**kind)
    torch.nn.init.normal_(layer.bias)
    with torch.no_grad():
        ours = layer(data.x, EdgeSet.from_data(data).adjacency.blocks(1)[0], None)
        theirs = as_pyg(layer, 5, 6)(data.x, data.edge_index)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_weighted_gcn_equals_pyg():
    data = random_graph(weighted=True, directed=True, loops=True)
    layer = GCNLayer(5, 6)
    with torch.no_grad():
        ours = layer(data.x, EdgeSet.from_data(data).adjacency.blocks(1)[0], None)
        theirs = as_pyg(layer, 5, 6)(data.x, data.edge_index, data.edge_weight)
    assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_gate_zero_is_deletion(name, kind, seed):
    data = random_graph(nodes=20, edges=50, seed=seed, **kind)
    edges, model = EdgeSet.from_data(data), build(name, data, layers=2 + seed % 2)
    keep = torch.rand(edges.num_edges) < 0.5
    mask = 0.5 + torch.rand(edges.num_edges)
    with torch.no_grad():
        gated = logits(model, data.x, edges, mask * keep)
        deleted = logits(model, data.x, edges.subset(keep), mask[keep])
        assert torch.allclose(gated, deleted, atol=1e-5)
        plain = logits(model, data.x, edges, keep.float())
        pruned = edges.sparse_graph(data, keep)
        assert torch.allclose(plain, model(pruned.x, pruned.edge_index, pruned.get("edge_weight")), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_pruned_edges_have_a_gradient(name, kind):
    data = random_graph(nodes=20, edges=50, **kind)
    edges, model = EdgeSet.from_data(data), build(name, data)
    keep = torch.arange(edges.num_edges) % 2 == 0
    keep[(edges.pairs == int(edges.pairs[0, 1])).any(0)] = False  # a node with no kept edge at all
    gate = keep.float().requires_grad_()
    (logits(model, data.x, edges, gate) ** 2).sum().backward()
    assert torch.isfinite(gate.grad).all()
    assert bool((gate.grad[~keep] != 0).all())


@pytest.mark.parametrize("kind", [{}, {"directed": True, "loops": True}])
@pytest.mark.parametrize("name", NAMES)
def test_gradient_of_every_edge_value(name, kind):
    data = random_graph(nodes=7, edges=12, **kind)
    edges, model = EdgeSet.from_data(data), build(name, data).double()
    values = torch.rand(edges.num_edges, dtype=torch.float64) + 0.1
    values[0] = 0
    assert gradcheck(lambda v: logits(model, data.x.double(), edges, v), (values.requires_grad_(),))


@pytest.mark.parametrize("name", NAMES)
def test_sparse_features_change_nothing(name):
    data = random_graph(features=60)
    data.x = data.x * (torch.rand_like(data.x) < 0.04)
    sparse = as_features(data.x)
    assert isinstance(sparse, SparseFeatures)
    model, edges = build(name, data), EdgeSet.from_data(data)
    assert torch.allclose(logits(model, sparse, edges), logits(model, data.x, edges), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_no_edges_at_all(name):
    data = random_graph()
    edges, model = EdgeSet.from_data(data), build(name, data)
    none = torch.zeros(edges.num_edges, dtype=torch.bool)
    assert torch.isfinite(logits(model, data.x, edges.subset(none))).all()


def test_attention_survives_huge_logits():
    data = random_graph()
    edges = EdgeSet.from_data(data)
    model = GAT(5, 8, 3, heads=2).eval()
    with torch.no_grad():
        out = logits(model, data.x * 1e4, edges, torch.zeros(edges.num_edges))
    assert torch.isfinite(out).all()


def test_gat_needs_a_width_divisible_by_its_heads():
    with pytest.raises(InputError, match="hidden 10 is not a multiple of the 8"):
        GAT(5, 10, 3)


def test_number_of_layers():
    assert len(GCN(5, 8, 3, layers=4).layers) == 4 and len(GCN(5, 8, 3, layers=1).layers) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse", [False, True])
def test_receptive_field_gives_the_same_logits_and_gradients(name, kind, sparse):
    data = random_graph(nodes=40, edges=60, features=30, **kind)
    if sparse:
        data.x = data.x * (torch.rand_like(data.x) < 0.04)
    edges, model = EdgeSet.from_data(data), build(name, data)
    nodes, x = torch.tensor([0, 7, 39]), as_features(data.x)
    values = (0.5 + torch.rand(edges.num_edges)).requires_grad_()
    parts = [logits(model, x, edges, values)[nodes], logits(model, x, edges, values, nodes)]
    assert torch.allclose(*parts, atol=1e-5)
    learned = [values, *model.parameters()]
    whole, field = (torch.autograd.grad((part**2).sum(), learned) for part in parts)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(whole, field, strict=True))
