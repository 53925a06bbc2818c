"""Removed means removed, for every layer of typed graphs; the native R-GCN beside PyG's layers."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import (
    FastRGCNConv,
    GATConv,
    GraphConv,
    HANConv,
    HeteroConv,
    HGTConv,
    Linear,
    RGCNConv,
    SAGEConv,
    TransformerConv,
    to_hetero,
)

import gst
from gst.graph.typed import TypedEdges
from gst.methods.greedy.divergence import Target
from gst.nn.rgcn import RGCN, TypedBlocks, typed_features
from gst.nn.typed_model import typed_call
from gst.nn.typed_network import TypedNative, TypedOwn
from typed_graphs import QUICK, library


def graph():
    data = library()
    data["term"].x = torch.eye(10)
    return data


DATA = graph()
NODES, KINDS = DATA.metadata()


class ByRelation(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.first = HeteroConv({kind: make(8) for kind in KINDS})
        self.last = HeteroConv({kind: make(3) for kind in KINDS}, aggr="mean")

    def forward(self, x_dict, edge_index_dict):
        hidden = {name: part.relu() for name, part in self.first(x_dict, edge_index_dict).items()}
        return self.last(hidden, edge_index_dict)


class HGT(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.ModuleDict({name: Linear(-1, 8) for name in NODES})
        self.convs = nn.ModuleList(HGTConv(8, 8, DATA.metadata(), heads=2) for _ in range(2))
        self.leave = Linear(8, 3)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {name: self.enter[name](x).relu() for name, x in x_dict.items()}
        for conv in self.convs:
            x_dict = conv(x_dict, edge_index_dict)
        return self.leave(x_dict["author"])


class HAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = HANConv({name: DATA[name].x.shape[1] for name in NODES}, 8, DATA.metadata(), heads=2)
        self.leave = Linear(8, 3)

    def forward(self, data):
        return self.leave(self.conv(data.x_dict, data.edge_index_dict)["author"])


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x, edge_index):
        return self.last(self.first(x, edge_index).relu(), edge_index)


class Numbered(nn.Module):
    """On the graph as ``to_homogeneous`` numbers it, with learned vectors for features."""

    def __init__(self, conv):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(74, 8))
        self.first, self.last = conv(8, 8, len(KINDS)), conv(8, 3, len(KINDS))

    def forward(self, edge_index, edge_type):
        return self.last(self.first(self.vectors, edge_index, edge_type).relu(), edge_index, edge_type)


GATED = {
    "sage": lambda: ByRelation(lambda size: SAGEConv((-1, -1), size)),
    "gat": lambda: ByRelation(lambda size: GATConv((-1, -1), size, add_self_loops=False)),
    "transformer": lambda: ByRelation(lambda size: TransformerConv((-1, -1), size)),
    "graph": lambda: ByRelation(lambda size: GraphConv((-1, -1), size)),
    "hgt": HGT,
    "han": HAN,
    "to_hetero": lambda: to_hetero(Plain(), DATA.metadata()),
    "rgcn": lambda: Numbered(RGCNConv),
}
UNGATED = {
    "max": lambda: ByRelation(lambda size: SAGEConv((-1, -1), size, aggr="max")),
    "fast-rgcn": lambda: Numbered(FastRGCNConv),
}


def made(name):
    torch.manual_seed(0)
    model = (GATED | UNGATED)[name]()
    with torch.no_grad():
        typed_call(model, DATA)(model)  # lazy layers learn their sizes
    return model.eval()


def network_of(name, data):
    edges = TypedEdges.from_hetero(data)
    return TypedOwn(made(name), data, edges.schema, 3), edges


def some_of(edges, share=0.5):
    return torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(1)) < share


def scores_without(model, data, edges, mask):
    """The model on a graph from which PyG removed the columns, without any help of gst's network."""
    kept = edges.column_values(mask, True)
    sparse = data.edge_subgraph({kind: kept[kind].nonzero().flatten() for kind in data.edge_types})
    for name in data.node_types:
        sparse[name].num_nodes = data[name].num_nodes
    if isinstance(model, Numbered):
        whole = sparse.to_homogeneous()
        out = model(whole.edge_index, whole.edge_type)
        start = sum(sparse[name].num_nodes for name in sparse.node_types[: sparse.node_types.index("author")])
        return out[start : start + 24]
    out = model(sparse) if isinstance(model, HAN) else model(sparse.x_dict, sparse.edge_index_dict)
    return out["author"] if isinstance(out, dict) else out


@pytest.mark.parametrize("name", GATED)
def test_value_zero_is_deletion_for_every_layer(name):
    network, edges = network_of(name, DATA)
    mask = some_of(edges)
    assert network.gates == ""
    gate = mask.float().requires_grad_()
    gated = network.logits(edges, gate)
    with torch.no_grad():
        expected = scores_without(network.module, DATA, edges, mask)
        assert torch.allclose(network.logits(edges.subset(mask)), expected, atol=1e-6)
    assert torch.allclose(gated, expected, atol=1e-5)
    slope = torch.autograd.grad(gated.square().sum(), gate)[0]
    assert slope.isfinite().all() and slope[~mask].any()


@pytest.mark.parametrize("name", UNGATED)
def test_without_gates_there_is_still_deletion(name):
    network, edges = network_of(name, DATA)
    mask = some_of(edges)
    assert network.gates
    with torch.no_grad():
        expected = scores_without(network.module, DATA, edges, mask)
        assert torch.allclose(network.logits(edges.subset(mask)), expected, atol=1e-6)
    with pytest.raises(gst.InputError, match="cannot be gated"):
        network.logits(edges, mask.float())


@pytest.mark.parametrize("name", [*GATED, *UNGATED])
def test_deploy_takes_any_of_them_as_it_is(name):
    model = made(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    result = gst.Deploy(model, sparsity=0.5, cache=False).fit(DATA).result_
    total = TypedEdges.from_hetero(DATA).num_edges
    assert result.metrics["edges_kept"] == total - round(total / 2)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    random = gst.Random(0.5)(DATA)
    with torch.no_grad():
        dense = typed_call(model, DATA)(model)
        others = [typed_call(model, sparse)(model) for sparse in (result.graph, random)]
    parts = [out["author"] if isinstance(out, dict) else out for out in (dense, *others)]
    target = Target.of(parts[0])
    divergence = [float(target.loss(parts[0], part).sum()) for part in parts[1:]]
    assert divergence[0] < divergence[1]


@pytest.mark.parametrize("name", ["sage", "hgt"])
def test_gst_trains_a_model_of_your_own(name):
    result = gst.GST(made(name), sparsity=0.5, **QUICK).fit(DATA).result_
    assert result.metrics["edges_kept"] == result.metrics["edges_total"] - round(result.metrics["edges_total"] / 2)


def test_gst_needs_gates():
    with pytest.raises(gst.InputError, match="cannot be gated: SAGEConv has aggr='max'"):
        gst.GST(made("max"), sparsity=0.5, **QUICK).fit(DATA)


class Few(nn.Module):
    def __init__(self, outputs=3, target="author"):
        super().__init__()
        sizes = {name: DATA[name].x.shape[1] for name in NODES}
        convs = {kind: SAGEConv((sizes[kind[0]], sizes[kind[2]]), outputs) for kind in KINDS}
        self.conv, self.target = HeteroConv(convs), target

    def forward(self, x_dict, edge_index_dict):
        return {self.target: self.conv(x_dict, edge_index_dict)["author"]}


class Needy(Few):
    def forward(self, x_dict, edge_index_dict, edge_attr_dict, weather):
        return super().forward(x_dict, edge_index_dict)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Few(5), "has 5 outputs per node, but y has 3 classes"),
        (Few(3, "paper"), "must return float scores of shape|returns no scores of 'author', only of paper"),
        (Needy(), "needs 'weather', but the data has only edge_attr"),
    ],
)
def test_models_that_do_not_fit_are_one_line(model, reason):
    with pytest.raises(gst.InputError, match=reason):
        gst.Deploy(model, sparsity=0.5).fit(DATA)


def test_rgcn_is_what_pygs_layers_give():
    """A relational layer is a HeteroConv of SAGEConv whose root weights add up to ours."""
    data, edges = library(), TypedEdges.from_hetero(library())
    schema = edges.schema
    torch.manual_seed(0)
    native = RGCN(schema, [6, 8, None], 5, 3, dropout=0.0)
    x = typed_features(data, schema)
    network = TypedNative(native.eval(), x, TypedBlocks(edges))
    hidden = {
        "author": data["author"].x @ native.enter["0"] + native.start["0"],
        "paper": data["paper"].x @ native.enter["1"] + native.start["1"],
        "term": native.enter["2"],
    }
    for number, layer in enumerate(native.layers):
        after = {}
        for name, part in hidden.items():
            own = str(schema.node_types.index(name))
            if own in layer.root:
                after[name] = part @ layer.root[own] + layer.bias[own]
        for kind, (_, target) in layer.ends.items():
            source, _, name = schema.edge_types[kind]
            assert schema.node_types[target] == name
            conv = SAGEConv((-1, -1), layer.weight[str(kind)].shape[1], root_weight=False, bias=False)
            conv((hidden[source], hidden[name]), data[schema.edge_types[kind]].edge_index)
            conv.lin_l.weight = nn.Parameter(layer.weight[str(kind)].t())
            after[name] = after[name] + conv((hidden[source], hidden[name]), data[schema.edge_types[kind]].edge_index)
        hidden = {name: part.relu() if number == 0 else part for name, part in after.items()}
    assert torch.allclose(network.logits(edges), hidden["author"], atol=1e-5)
    called = native(data.x_dict, data.edge_index_dict)
    assert torch.allclose(called, hidden["author"], atol=1e-5)
    mask = some_of(edges)
    with torch.no_grad():
        gated, deleted = network.logits(edges, mask.float()), network.logits(edges.subset(mask))
    assert torch.allclose(gated, deleted, atol=1e-5)
