"""Answers by node are those of the whole graph, and only the receptive field is read."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GATv2Conv, MessagePassing, SAGEConv, global_mean_pool
from torch_geometric.nn.models import GAT, GCN, GIN, GraphSAGE
from torch_geometric.utils import k_hop_subgraph

import gst
from graphs import KINDS, graphs, random_graph
from gst import InputError
from gst.inference.serving import make_engine
from gst.inference.serving.engine import NativeEngine
from gst.inference.serving.module_engine import ModuleEngine, count_hops
from gst.inference.serving.tape_engine import TapeEngine
from gst.nn.backbones import BACKBONES

SHAPES = (
    {"layers": 1},
    {"layers": 2, "residual": True},
    {"layers": 3, "norm": "layer"},
    {"layers": 4, "residual": True, "norm": "layer"},
)


def backbone(name: str, inputs: int, hidden: int = 12, **options) -> nn.Module:
    """With arbitrary weights, biases and ε."""
    torch.manual_seed(0)
    heads = {"heads": 2} if name == "gat" else {}
    model = BACKBONES[name](inputs, hidden, 3, **heads, **options).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5) if parameter.dim() else nn.init.constant_(parameter, 0.3)
    return model


def answers(model: nn.Module, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
    with torch.no_grad():
        return model(data.x if x is None else x, data.edge_index, data.get("edge_weight"))


def assert_close(output: torch.Tensor, expected: torch.Tensor) -> None:
    assert output.shape == expected.shape and output.dtype == torch.float32
    assert float((output - expected).abs().max()) <= 1e-5 * max(1.0, float(expected.abs().max()))


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_backbone_on_every_kind_of_graph(name, kind, shape):
    data = random_graph(nodes=50, edges=100, **kind)
    model = backbone(name, 5, **shape)
    engine, expected = make_engine(model, data), answers(model, data)
    assert engine.native
    for nodes in (7, [3], [49, 0, 3], [5, 5], range(50), torch.arange(50).flip(0)):
        ids = torch.as_tensor([nodes] if isinstance(nodes, int) else list(nodes))
        assert_close(engine(nodes), expected[ids])


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("products", [False, True])
def test_features_of_one_call(name, thin, products):
    data = random_graph(nodes=40, edges=120, features=60)
    data.x = data.x * (torch.rand_like(data.x) < (0.03 if thin else 1))
    model = backbone(name, 60, hidden=20)
    engine = make_engine(model, data, products=products)
    assert isinstance(engine, NativeEngine) and engine.state.graph.features.sparse == thin
    assert_close(engine(range(40)), answers(model, data))
    nodes, fresh = torch.tensor([11, 4, 30]), torch.randn(3, 60)
    assert_close(engine(nodes, x=fresh), answers(model, data, data.x.index_copy(0, nodes, fresh))[nodes])
    assert_close(engine(nodes, x=data.x[nodes]), answers(model, data)[nodes])
    assert_close(engine(nodes), answers(model, data)[nodes])  # nothing is kept of the call before
    assert_close(
        engine(4, x=fresh[1].tolist()), answers(model, data, data.x.index_copy(0, nodes[1:2], fresh[1:2]))[[4]]
    )


@given(data=graphs(), name=st.sampled_from(["gcn", "gat", "sage"]), layers=st.integers(1, 3))
@settings(max_examples=30)
def test_arbitrary_graphs(data, name, layers):
    model = backbone(name, 3, hidden=4, layers=layers)
    assert_close(make_engine(model, data)(range(data.num_nodes)), answers(model, data))


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_wide_layers_take_the_other_order_of_products(name):
    data = random_graph(nodes=40, edges=300, features=4)
    model = backbone(name, 4, hidden=64, layers=3)
    engine = make_engine(model, data)
    assert_close(engine([0]), answers(model, data)[[0]])
    assert_close(engine(range(40)), answers(model, data))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_reads_are_the_nodes_within_reach(layers):
    data = random_graph(nodes=60, edges=70, directed=True)
    engine = make_engine(backbone("gcn", 5, layers=layers), data)
    for node in range(0, 60, 7):
        reached, *_ = k_hop_subgraph(node, layers, data.edge_index, num_nodes=60)
        inner, *_ = k_hop_subgraph(node, layers - 1, data.edge_index, num_nodes=60) if layers > 1 else ([node],)
        reads = engine.reads(node)
        assert reads.nodes == len(reached)
        assert reads.arcs == sum(int((data.edge_index[1] == i).sum()) for i in set(map(int, inner)))
        assert reads.bytes >= 4 * 5 * reads.nodes
    assert engine.reads([]) == (0, 0, 0)


def test_nothing_outside_the_field_is_read():
    """Features outside the field may be anything: here they are NaN."""
    data = random_graph(nodes=60, edges=60)
    node, model = 17, backbone("gcn", 5)
    expected = answers(model, data)[[node]]
    reached, *_ = k_hop_subgraph(node, 2, data.edge_index, num_nodes=60)
    outside = torch.ones(60, dtype=torch.bool)
    outside[reached] = False
    assert bool(outside.any())
    data.x[outside] = torch.nan
    assert_close(make_engine(model, data)(node), expected)


def test_many_threads_at_once():
    data = random_graph(nodes=300, edges=1500)
    model = backbone("gat", 5, layers=3)
    engine, expected = make_engine(model, data), answers(model, data)
    start = threading.Barrier(8)

    def ask(seed: int) -> None:
        start.wait()
        for node in torch.randperm(300, generator=torch.Generator().manual_seed(seed)).tolist():
            assert_close(engine(node), expected[[node]])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))


def test_mapped_features(tmp_path):
    data = random_graph(nodes=40, edges=120)
    model, path = backbone("sage", 5), tmp_path / "x.npy"
    np.save(path, data.x.numpy())
    assert_close(make_engine(model, data, features=path)(range(40)), answers(model, data))
    for wrong in (data.x.double().numpy(), data.x[:39].numpy(), np.asfortranarray(data.x.numpy())):
        np.save(path, wrong)
        with pytest.raises(InputError, match=r"float32 \[40, 5\] by rows is needed"):
            make_engine(model, data, features=path)
    path.write_bytes(b"no array")
    with pytest.raises(InputError, match=r"not a whole \.npy file"):
        make_engine(model, data, features=path)


def test_bad_nodes_and_features_get_one_line():
    data = random_graph(nodes=40, edges=120)
    for model in (backbone("gcn", 5), GAT(5, 8, 2, 3).eval()):
        engine = make_engine(model, data)
        assert engine([]).shape == (0, 3)
        for nodes, words in (([40], "node 40 is not in the graph: its nodes are 0 … 39"), ([0, -1], "node -1 is not")):
            with pytest.raises(InputError, match=words):
                engine(nodes)
            with pytest.raises(InputError, match=words):
                engine.reads(nodes)
        for nodes in ([0.5], ["a"], [[1, 2]], [True]):
            with pytest.raises(InputError, match="whole numbers are needed"):
                engine(nodes)
        with pytest.raises(InputError, match=r"x has shape \[1, 4\]: \[1, 5\] real numbers are needed"):
            engine(3, x=torch.zeros(1, 4))
        with pytest.raises(InputError, match="named twice"):
            engine([3, 3], x=torch.zeros(2, 5))
        with pytest.raises(InputError, match="NaN or infinite"):
            engine(3, x=torch.full((1, 5), torch.nan))
        assert_close(engine([3]), make_engine(model, data)([3]))  # the refused calls have left nothing behind


class Propagating(nn.Module):
    """Several hops in one layer, and a maximum, which no kernel computes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.spread = SAGEConv(5, 3, aggr="max"), APPNP(K=2, alpha=0.1)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.spread(self.first(x, edge_index).relu(), edge_index)


class Everything(nn.Module):
    """Looks at all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(5, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.conv(x, edge_index) + global_mean_pool(x, None)[:, :3]


class WithEdgeFeatures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GATv2Conv(5, 3, edge_dim=2)

    def forward(self, data: Data) -> torch.Tensor:
        return functional.elu(self.conv(data.x, data.edge_index, data.edge_attr))


STACKS = {
    "gcn, batch norm, jumping knowledge": lambda f: GCN(f, 8, 3, 3, norm="batch", jk="cat"),
    "gat": lambda f: GAT(f, 8, 2, 3, heads=2),
    "gatv2": lambda f: GAT(f, 8, 2, 3, v2=True),
    "gin": lambda f: GIN(f, 8, 2, 3),
    "sage, sum": lambda f: GraphSAGE(f, 8, 3, 3, aggr="sum"),
    "sage, mean, max of layers": lambda f: GraphSAGE(f, 8, 3, 3, jk="max"),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("kind", [{}, {"directed": True, "loops": True}])
@pytest.mark.parametrize("thin", [False, True])
def test_recognised_models_run_without_pyg(name, kind, thin, monkeypatch):
    torch.manual_seed(0)
    data = random_graph(nodes=60, edges=60, features=30, **kind)
    data.x = data.x * (torch.rand_like(data.x) < (0.05 if thin else 1))
    model = STACKS[name](30).eval()
    engine = make_engine(model, data)
    assert isinstance(engine, TapeEngine) and engine.native
    fresh, nodes = torch.randn(2, 30), torch.tensor([20, 8])
    with torch.no_grad():
        expected = model(data.x, data.edge_index)
        changed = model(data.x.index_copy(0, nodes, fresh), data.edge_index)[nodes]

    def never(*args, **kwargs):
        raise AssertionError("PyG was called")

    monkeypatch.setattr(MessagePassing, "propagate", never)
    for asked in ([3], [59, 0, 3, 3], list(range(60))):
        assert_close(engine(asked), expected[asked])
    assert_close(engine(nodes, x=fresh), changed)
    assert_close(engine(nodes), expected[nodes])
    assert engine([]).shape == (0, 3)
    reached, *_ = k_hop_subgraph(3, engine.hops, data.edge_index, num_nodes=60)
    assert engine.reads(3).nodes == len(reached) < 60


@pytest.mark.parametrize("make", [Propagating, Everything, WithEdgeFeatures])
@pytest.mark.parametrize("kind", [{}, {"directed": True, "loops": True, "duplicates": True}])
def test_other_modules_run_on_the_extracted_field(make, kind):
    torch.manual_seed(0)
    data = random_graph(nodes=60, edges=60, **kind)
    data.edge_attr = torch.rand(data.num_edges, 2)
    model = make().eval()
    engine = make_engine(model, data)
    assert isinstance(engine, ModuleEngine) and not engine.native
    takes_data = isinstance(model, WithEdgeFeatures)

    def whole(x: torch.Tensor) -> torch.Tensor:
        changed = data.clone()
        changed.x = x
        with torch.no_grad():
            return model(changed) if takes_data else model(x, data.edge_index)

    for nodes in ([3], [59, 0, 3, 3], list(range(60))):
        assert_close(engine(nodes), whole(data.x)[nodes])
    fresh, nodes = torch.randn(2, 5), torch.tensor([20, 8])
    assert_close(engine(nodes, x=fresh), whole(data.x.index_copy(0, nodes, fresh))[nodes])
    assert_close(engine(nodes), whole(data.x)[nodes])
    if isinstance(model, Everything):
        assert engine.hops is None and engine.reads(3).nodes == 60
    else:
        assert engine.hops == count_hops(model, data) == {Propagating: 3, WithEdgeFeatures: 1}[type(model)]
        assert engine.reads(3).nodes < 60


def test_results_have_engines():
    data = random_graph(nodes=40, edges=120)
    result = gst.sparsify(data, sparsity=0.5, hidden=8, anchor_epochs=2, sparse_epochs=2, cache=False)
    engine = result.engine(products=True)
    assert_close(engine(range(40)), answers(result.model, result.graph))
    with pytest.raises(InputError, match="for gst's own backbones"):
        make_engine(GAT(5, 8, 2, 3), data, products=True)
