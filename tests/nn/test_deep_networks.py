"""Skip connections and LayerNorm: against PyG, against deletion, and wherever the layers of a network are read."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.nn import functional
from torch_geometric.nn import ClusterGCNConv, GATConv, GCNConv, GINConv, SAGEConv

import gst
from graphs import KINDS, random_graph
from gst.graph.edgeset import EdgeSet
from gst.inference.compiled import compile_model
from gst.inference.compiled.model import CompiledBackbone
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.features import SparseFeatures, as_features
from gst.nn.layerwise import edge_gradient, layerwise_logits
from gst.nn.network import NativeNetwork

NAMES = list(BACKBONES)
PARTS = [{"residual": True}, {"norm": "layer"}, {"residual": True, "norm": "layer"}]
WHOLE = PARTS[-1]
QUICK = {"hidden": 8, "heads": 2, "anchor_epochs": 3, "sparse_epochs": 4, "cache": False, "layers": 3}


def build(name: str, inputs: int = 5, **parts) -> Backbone:
    """With arbitrary weights."""
    torch.manual_seed(1)
    heads = {"heads": 2} if name == "gat" else {}
    model = BACKBONES[name](inputs, 8, 3, **{"layers": 3, **heads, **parts}).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


def logits(model, x, edges, values=None, nodes=None):
    return NativeNetwork(model, x).logits(edges, values, nodes)


def by_pyg(model: Backbone, name: str, data) -> torch.Tensor:
    """The same network of PyG's convolutions, torch's linear maps and torch's LayerNorm."""
    x, last = data.x, len(model.layers) - 1
    for i, layer in enumerate(model.layers):
        inputs, outputs = layer.weight.shape
        skip = 0 if layer.root is None else functional.linear(x, layer.root.t())
        if name == "gat":
            conv = GATConv(
                inputs, outputs // layer.heads, heads=layer.heads, residual=layer.root is not None, bias=False
            )
            conv.lin.weight.data = layer.weight.data.t()
            conv.att_src.data, conv.att_dst.data = layer.attend_source.data[None], layer.attend_target.data[None]
            if layer.root is not None:
                conv.res.weight.data, skip = layer.root.data.t(), 0
        elif name == "gcn":
            conv = GCNConv(inputs, outputs, bias=False)
            conv.lin.weight.data = layer.weight.data.t()
        elif name == "gin":
            conv = GINConv(nn.Linear(inputs, outputs, bias=False), train_eps=True)
            conv.nn.weight.data, conv.eps.data = layer.weight.data.t(), layer.eps.data.view(1)
        elif name == "sage":
            conv = SAGEConv(inputs, outputs, root_weight=False, bias=False)
            conv.lin_l.weight.data = layer.weight.data.t()
        else:
            conv = ClusterGCNConv(inputs, outputs, bias=False)
            conv.lin_out.weight.data, conv.lin_root.weight.data = layer.weight.data.t(), layer.root.data.t()
            skip = 0
        x = conv(x, data.edge_index) + skip + layer.bias
        if i < last and len(model.norms):
            x = functional.layer_norm(x, x.shape[1:], model.norms[i].weight, model.norms[i].bias)
        if i < last:
            x = functional.elu(x) if name == "gat" else functional.relu(x)
    return x


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.get("weighted")])
@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_network_equals_one_of_pyg(name, parts, kind):
    data, model = random_graph(**kind), build(name, **parts)
    with torch.no_grad():
        ours, theirs = model(data.x, data.edge_index), by_pyg(model, name, data)
    assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4)


def test_networks_without_them_have_no_other_weights():
    for name in NAMES:
        plain, keys = build(name), {"weight", "bias", "eps", "attend_source", "attend_target"}
        keys |= {"root"} if name in ("sage", "cluster-gcn") else set()
        assert {key.split(".")[2] for key in plain.state_dict()} <= keys
        assert all(key.startswith("layers.") for key in plain.state_dict())
    torch.manual_seed(3)
    drawn = [nn.init.xavier_uniform_(torch.empty(shape)) for shape in [(5, 8), (8, 3)]]
    torch.manual_seed(3)
    assert all(torch.equal(a, b.weight) for a, b in zip(drawn, BACKBONES["gcn"](5, 8, 3).layers, strict=True))


def test_sage_and_cluster_gcn_always_have_a_skip_connection():
    for name in ("sage", "cluster-gcn"):
        assert build(name).state_dict().keys() == build(name, residual=True).state_dict().keys()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_gate_zero_is_deletion(name, parts, kind):
    data, model = random_graph(nodes=20, edges=50, **kind), build(name, **parts).double()
    x, edges = data.x.double(), EdgeSet.from_data(data)
    keep, mask = torch.rand(edges.num_edges) < 0.5, 0.5 + torch.rand(edges.num_edges).double()
    with torch.no_grad():
        gated = logits(model, x, edges, mask * keep)
        assert torch.allclose(gated, logits(model, x, edges.subset(keep), mask[keep]), atol=1e-5)
        pruned = edges.sparse_graph(data, keep)
        plain = logits(model, x, edges, keep.double())
        assert torch.allclose(plain, model(x, pruned.edge_index, pruned.get("edge_weight")), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_of_every_edge_value(name):
    data = random_graph(nodes=7, edges=12, directed=True, loops=True)
    edges, model = EdgeSet.from_data(data), build(name, **WHOLE).double()
    values = torch.rand(edges.num_edges, dtype=torch.float64) + 0.1
    values[0] = 0
    assert gradcheck(lambda v: logits(model, data.x.double(), edges, v), (values.requires_grad_(),))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_fields_and_layerwise_passes_give_the_same(name, parts, sparse):
    data = random_graph(nodes=40, edges=60, features=30, directed=True, loops=True)
    if sparse:
        data.x = data.x * (torch.rand_like(data.x) < 0.04)
    edges, model, x = (
        EdgeSet.from_data(data),
        build(name, 30, **parts).double(),
        as_features(data.x.double(), torch.float64),
    )
    assert isinstance(x, SparseFeatures) == sparse
    nodes, values = torch.tensor([0, 7, 39]), (0.5 + torch.rand(edges.num_edges).double()).requires_grad_()
    whole = logits(model, x, edges, values)
    assert torch.allclose(whole[nodes], logits(model, x, edges, values, nodes))
    assert torch.allclose(whole, layerwise_logits(model, x, edges, values.detach()))
    assert torch.allclose(whole[nodes], layerwise_logits(model, x, edges, values.detach(), nodes))
    grad = torch.autograd.grad(whole.square().sum(), values)[0]
    assert torch.allclose(grad, edge_gradient(model, x, edges, values.detach(), lambda z: z.square().sum()))


@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_stored_networks_give_the_same_answers(name, parts, tmp_path):
    for features in (5, 300):
        data = random_graph(nodes=40, edges=120, features=features)
        if features > 5:
            data.x = data.x * (torch.rand_like(data.x) < 0.03)
        model = build(name, features, **parts)
        compiled = compile_model(model, data, "rcm")
        assert isinstance(compiled, CompiledBackbone)
        with torch.no_grad():
            expected = model(data.x, data.edge_index)
        assert torch.allclose(compiled(), expected, atol=1e-3, rtol=1e-4)
        compiled.save(tmp_path / "compiled.safetensors")
        assert torch.equal(gst.load_compiled(tmp_path / "compiled.safetensors")(), compiled())


@pytest.mark.parametrize("name", NAMES)
def test_results_come_back_from_disk(tmp_path, name):
    data = random_graph(nodes=20, edges=30)
    result = gst.sparsify(data, sparsity=0.5, backbone=name, **QUICK, **WHOLE)
    result.save(tmp_path / "run")
    again, graph = gst.Result.load(tmp_path / "run"), result.graph
    result.model.eval()
    assert torch.equal(again.model(graph.x, graph.edge_index), result.model(graph.x, graph.edge_index))
    assert again.training.residual and again.training.norm == "layer"


def test_more_than_ten_layers_come_back_from_disk(tmp_path):
    data = random_graph(nodes=40, edges=120, classes=4)
    gst.sparsify(data, "random", sparsity=0.5, **{**QUICK, "layers": 11}).save(tmp_path / "run")
    assert len(gst.Result.load(tmp_path / "run").model.layers) == 11


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gst", {"interval": 2}),
        ("gst", {"interval": 2, "batch": "clusters", "clusters": 4, "clusters_per_batch": 2}),
        ("gst", {"interval": 2, "batch": "neighbors", "batch_nodes": 4, "fanout": 2}),
        ("retrain", {"turns": 1}),
        ("ugs", {"round_epochs": 2, "prune_ratio": 0.4, "weight_prune_ratio": 0.2}),
        ("wd-glt", {"round_epochs": 2, "prune_ratio": 0.4, "sample_size": 8}),
        ("mgspar", {"inner_steps": 2, "meta_epochs": 1, "prune_ratio": 0.4}),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_all_methods_and_batches_take_them(name, method, options):
    data = random_graph(nodes=20, edges=30)
    result = gst.sparsify(data, method, sparsity=0.5, backbone=name, **QUICK, **WHOLE, **options)
    total = result.metrics["edges_total"]
    assert result.metrics["edges_kept"] == total - round(0.5 * total)
