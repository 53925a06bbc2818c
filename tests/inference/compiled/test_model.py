"""Compiled models give the answers of the models they were made of."""

import pytest
import torch
from hypothesis import given
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, SAGEConv
from torch_geometric.nn.models import GCN

import gst
from graphs import KINDS, graphs, random_graph
from gst.base.errors import InputError
from gst.inference.compiled import compile as compiling
from gst.inference.compiled import compile_model
from gst.inference.compiled.compile import reordered
from gst.inference.compiled.model import CompiledBackbone, CompiledModel
from gst.inference.compiled.orders import ORDERS
from gst.nn.backbones import BACKBONES


def backbone(name: str, inputs: int, *, hidden: int = 12, layers: int = 3) -> nn.Module:
    """With arbitrary weights, biases and ε."""
    torch.manual_seed(0)
    model = BACKBONES[name](inputs, hidden, 3, layers=layers, **({"heads": 2} if name == "gat" else {})).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter) if parameter.dim() else nn.init.constant_(parameter, 0.3)
    return model


def answers(model: nn.Module, data: Data) -> torch.Tensor:
    with torch.no_grad():
        return model(data.x, data.edge_index, data.get("edge_weight"))


def assert_close(output: torch.Tensor, expected: torch.Tensor, share: float = 2e-5) -> None:
    assert output.shape == expected.shape and output.dtype == expected.dtype
    assert float((output - expected).abs().max()) <= share * max(1.0, float(expected.abs().max()))


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ORDERS)
def test_every_backbone_in_every_order(name, kind, layout):
    data = random_graph(nodes=40, edges=120, **kind)
    model = backbone(name, 5)
    compiled = compile_model(model, data, layout)
    assert isinstance(compiled, CompiledBackbone) and compiled.layout == layout
    assert_close(compiled(), answers(model, data))
    assert compiled.matrix.crow.dtype == compiled.matrix.col.dtype == torch.int32
    assert torch.equal(compiled.ordered(), compiled()[compiled.permutation])


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("thin", [False, True])
def test_wide_features_dense_and_sparse(name, thin):
    data = random_graph(nodes=40, edges=120, features=300)
    data.x = data.x * (torch.rand_like(data.x) < (0.03 if thin else 1))
    model = backbone(name, 300, hidden=70, layers=2)
    for layout in ("natural", "rcm"):
        compiled = compile_model(model, data, layout)
        assert isinstance(compiled, CompiledBackbone) and isinstance(compiled.x, torch.Tensor) != thin
        assert_close(compiled(), answers(model, data))


@given(data=graphs())
def test_arbitrary_graphs(data):
    model = backbone("gcn", 3, hidden=9, layers=2)
    assert_close(compile_model(model, data, "rcm")(), answers(model, data))


@pytest.mark.parametrize("name", BACKBONES)
def test_rounded_features_stay_within_the_documented_error(name):
    """8 significant bits, once per layer: at most a few parts in 256 of the largest answer."""
    data = random_graph(nodes=60, edges=400, features=30)
    torch.manual_seed(0)
    model = BACKBONES[name](30, 16, 3).eval()
    compiled, expected = compile_model(model, data, "degree", "bfloat16"), answers(model, data)
    error = float((compiled() - expected).abs().max() / expected.abs().max())
    assert 0 < error < 4 / 256
    assert compiled.precision == "bfloat16"


def test_auto_takes_the_fastest_order_by_measurement(monkeypatch):
    data = random_graph(nodes=40, edges=120)
    model = backbone("gcn", 5)
    compiled = compile_model(model, data)
    assert compiled.trials.keys() == set(ORDERS) and compiled.layout in ORDERS
    assert_close(compiled(), answers(model, data))
    times = {"natural": 5.0, "degree": 4.9, "rcm": 2.0, "metis": 3.0}
    monkeypatch.setattr(compiling, "_least_ms", lambda *ones, **_: [times[one.layout] for one in ones])
    fastest = compile_model(model, data)
    assert fastest.layout == "rcm" and fastest.trials == times
    times["rcm"] = times["metis"] = 4.95  # not clearly faster: the natural order stays
    assert compile_model(model, data).layout == "natural"
    monkeypatch.setattr(compiling, "MANY", 10)
    assert "metis" not in compile_model(model, data).trials


@pytest.mark.parametrize("name", BACKBONES)
def test_without_edges_no_neighbour_is_seen(name):
    data = random_graph(nodes=40, edges=120)
    model = backbone(name, 5, layers=2)
    bare = compile_model(model, data, "rcm").without_edges()
    assert isinstance(bare, CompiledBackbone) and bare.nnz == 0
    bias, root = model.layers[1].bias, getattr(model.layers[1], "root", None)
    if root is None:  # only the last bias is left
        assert_close(bare(), bias.detach().expand(40, -1))
    assert bare().shape == (40, 3) and bool(torch.isfinite(bare()).all())


def test_later_changes_of_the_model_do_not_affect_the_compiled_one():
    data = random_graph(nodes=40, edges=120)
    model = backbone("sage", 5)
    compiled, before = compile_model(model, data, "degree"), answers(model, data)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert_close(compiled(), before)


class TakesData(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(5, 8), GATConv(8, 3, edge_dim=2)

    def forward(self, data: Data) -> torch.Tensor:
        return self.second(self.first(data.x, data.edge_index).relu(), data.edge_index, data.edge_attr)


@pytest.mark.parametrize("layout", [*ORDERS, "auto"])
def test_own_models_are_called_on_the_reordered_graph(layout):
    torch.manual_seed(0)
    data = random_graph(nodes=40, edges=120, loops=True)
    data.edge_attr = torch.rand(data.num_edges, 2)
    for model in (TakesData().eval(), GCN(5, 8, 2, 3).eval()):
        with torch.no_grad():
            expected = model(data) if isinstance(model, TakesData) else model(data.x, data.edge_index)
        compiled = compile_model(model, data, layout)
        assert isinstance(compiled, CompiledModel)
        assert_close(compiled(), expected)


class NodeEmbedding(nn.Module):
    """Has one embedding per node id."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.conv, self.embedding = SAGEConv(5, 3), nn.Embedding(nodes, 5)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.conv(x + self.embedding.weight, edge_index)


def test_a_model_that_depends_on_node_ids_is_not_reordered():
    data = random_graph(nodes=40, edges=120)
    assert compile_model(NodeEmbedding(40), data).layout == "natural"
    with pytest.raises(InputError, match="take layout natural"):
        compile_model(NodeEmbedding(40), data, "degree")


def test_reordering_moves_all_attributes():
    data = random_graph(nodes=20, edges=60, directed=True, weighted=True)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    graph = reordered(data, order)
    after = dict(zip(map(tuple, order[graph.edge_index].t().tolist()), graph.edge_weight.tolist(), strict=True))
    before = dict(zip(map(tuple, data.edge_index.t().tolist()), data.edge_weight.tolist(), strict=True))
    assert after == before
    assert torch.equal(graph.x, data.x[order]) and torch.equal(graph.train_mask, data.train_mask[order])


def test_wrong_names_get_one_line():
    data = random_graph(nodes=40, edges=120)
    with pytest.raises(InputError, match="unknown layout 'hilbert'"):
        compile_model(backbone("gcn", 5), data, "hilbert")
    with pytest.raises(InputError, match="unknown precision 'int8'"):
        compile_model(backbone("gcn", 5), data, "natural", "int8")
    with pytest.raises(InputError, match="for the backbones of gst"):
        compile_model(GCN(5, 8, 2, 3), data, "natural", "bfloat16")


def test_results_compile():
    data = random_graph(nodes=40, edges=120)
    quick = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}
    result = gst.sparsify(data, sparsity=0.5, **quick)
    assert result.model is not None
    assert_close(result.compile()(), answers(result.model.eval(), result.graph))
    empty = gst.sparsify(data, keep=0, **quick)
    assert empty.model is not None
    assert_close(empty.compile()(), answers(empty.model.eval(), empty.graph))
