"""Backbones of other packages: one class each, registered by the decorator."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.base.versions import training
from gst.graph.edgeset import EdgeSet
from gst.inference.compiled import compile_model
from gst.inference.compiled.model import CompiledBackbone, CompiledModel
from gst.inference.latency import latency
from gst.methods.greedy.batched import BatchedSearch
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import Search, deploy, make_search
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.backbones.gcn import GCNLayer
from gst.nn.features import dropout, feature_dropout
from gst.nn.layers import Layer, propagate
from gst.nn.layerwise import edge_gradient, layerwise_logits
from gst.nn.network import NativeNetwork

QUICK = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 3, "cache": False}


class SquashedMeanLayer(Layer):
    """Has a forward of its own, so nothing else is known of it."""

    norm = "mean"

    def diagonal(self, loops: Tensor) -> Tensor:
        return torch.ones_like(loops)

    def forward(self, x, block, edge_values):
        sums = propagate(block, self.entry_values(block, edge_values), x, self.weight)
        return 3 * torch.tanh(self.total(sums, None))


class HeavyLoopLayer(Layer):
    """Described by its norm and its diagonal alone."""

    norm = "mean"
    fixed_diagonal = True

    def diagonal(self, loops: Tensor) -> Tensor:
        return torch.full_like(loops, 2.0)


class BarelyLayer(SquashedMeanLayer):
    """Without a bias."""

    def __init__(self, inputs, outputs, *, residual=False):
        super().__init__(inputs, outputs, residual=residual)
        self.bias = None

    def forward(self, x, block, edge_values):
        return propagate(block, self.entry_values(block, edge_values), x, self.weight)


class Barely(Backbone):
    layer_class = BarelyLayer


class HeavyLoop(Backbone):
    layer_class = HeavyLoopLayer


class Squashed(Backbone):
    layer_class = SquashedMeanLayer
    activation = staticmethod(torch.tanh)


class SumOfLayers(Backbone):
    """Adds up the outputs of all layers: not a plain sequence of described layers."""

    layer_class = GCNLayer

    def run(self, x, blocks, edge_values=None):
        values = edge_values if isinstance(edge_values, list) else [edge_values] * len(blocks)
        hidden = self.layers[0](feature_dropout(x, self.dropout, self.training), blocks[0], values[0])
        total = hidden[blocks[1].row_columns]
        hidden = self.layers[1](dropout(torch.relu(hidden), self.dropout, self.training), blocks[1], values[1])
        return hidden + total[:, : self.outputs]


@pytest.fixture
def squashed() -> Iterator[str]:
    BACKBONES.register("squashed-mean")(Squashed)
    yield "squashed-mean"
    del BACKBONES._entries["squashed-mean"]


def network_of(kind: type[Backbone], data, **options) -> NativeNetwork:
    torch.manual_seed(0)
    module = kind(data.x.shape[1], 8, 3, **options).double().eval()
    return NativeNetwork(module, data.x.double())


def test_the_decorator_is_all_that_is_needed():
    @BACKBONES.register("inline")
    class Inline(Backbone):
        layer_class = SquashedMeanLayer

    try:
        data = random_graph(nodes=40, edges=120)
        result = gst.sparsify(data, "random", backbone="Inline", sparsity=0.5, **QUICK)
        assert isinstance(result.model, Inline)
        assert result.metrics["backbone"] == "inline"
        assert training("inline", "full") == "inline 1, full 1"
    finally:
        del BACKBONES._entries["inline"]
    assert "inline" not in BACKBONES


def test_a_backbone_without_bias_is_saved_and_loaded(tmp_path):
    BACKBONES.register("barely")(Barely)
    try:
        data = random_graph(nodes=40, edges=120)
        result = gst.sparsify(data, "random", backbone="barely", sparsity=0.5, **QUICK)
        assert not [name for name in result.model.state_dict() if "bias" in name]
        result.save(tmp_path / "run")
        again = gst.Result.load(tmp_path / "run").model
        inputs = result.graph.x, result.graph.edge_index
        assert isinstance(again, Barely) and torch.equal(again(*inputs), result.model.eval()(*inputs))
    finally:
        del BACKBONES._entries["barely"]


@pytest.mark.parametrize(
    "batching",
    [
        {"batch": "full"},
        {"batch": "clusters", "clusters": 4, "clusters_per_batch": 2},
        {"batch": "neighbors", "batch_nodes": 8, "fanout": 3},
    ],
    ids=lambda batching: batching["batch"],
)
def test_training_saving_compiling_and_timing(squashed, batching, tmp_path):
    data = random_graph(nodes=40, edges=120)
    result = gst.sparsify(data, "random", backbone=squashed, sparsity=0.5, **QUICK, **batching)
    graph = result.graph
    with torch.no_grad():
        logits = result.model.eval()(graph.x, graph.edge_index)
    result.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert isinstance(again.model, Squashed) and torch.equal(again.model(graph.x, graph.edge_index), logits)
    compiled = result.compile()
    assert isinstance(compiled, CompiledModel)
    assert torch.allclose(compiled(), logits, atol=1e-5)
    assert latency(result.model, data, graph, repeats=2)["dense"]["macs"] > 0


@pytest.mark.parametrize("kind", [Squashed, SumOfLayers])
def test_search_in_batched_trials(kind):
    data = random_graph(nodes=30, edges=80)
    edges, network = EdgeSet.from_data(data), network_of(kind, data)
    logits = network.logits(edges).detach()
    assert isinstance(make_search([network], edges, [logits], Target.of(logits)), BatchedSearch)
    keep_mask, _ = deploy(network, edges, logits, 20)
    assert int(keep_mask.sum()) == 20


@pytest.mark.parametrize("kind", [Squashed, SumOfLayers])
def test_large_graphs_are_evaluated_exactly(kind):
    data = random_graph(nodes=40, edges=60, directed=True, loops=True)
    edges, network = EdgeSet.from_data(data), network_of(kind, data)
    nodes, values = torch.tensor([0, 7, 39]), (0.5 + torch.rand(edges.num_edges).double()).requires_grad_()
    logits = network.logits(edges, values)
    slope = torch.autograd.grad(logits.square().sum(), values)[0]
    module, x, values = network.module, network.x, values.detach()
    assert torch.allclose(layerwise_logits(module, x, edges, values), logits)
    assert torch.allclose(layerwise_logits(module, x, edges, values, nodes), logits[nodes])
    assert torch.allclose(edge_gradient(module, x, edges, values, lambda z: z.square().sum()), slope)


def test_norm_and_diagonal_suffice_for_compiled_models_and_kernels():
    data = random_graph(nodes=30, edges=80, weighted=True)
    edges, network = EdgeSet.from_data(data), network_of(HeavyLoop, data, residual=True)
    logits = network.logits(edges).detach()
    target = Target.of(logits)
    search = make_search([network], edges, [logits], target)
    assert isinstance(search, Search)
    keep_mask = torch.zeros(edges.num_edges, dtype=torch.bool)
    keep_mask[search.advance(20)] = True
    divergence = target.loss(logits, network.logits(edges.subset(keep_mask)).detach()).sum()
    assert search.divergence() == pytest.approx(float(divergence), rel=1e-6)
    module = network.module.float()
    compiled = compile_model(module, data, "rcm")
    assert isinstance(compiled, CompiledBackbone)
    assert torch.allclose(compiled(), module(data.x, data.edge_index, data.edge_weight).detach(), atol=1e-5)


def test_another_forward_or_run_is_never_taken_for_the_described_one():
    class Doubled(GCNLayer):
        def forward(self, x, block, edge_values):
            return 2 * super().forward(x, block, edge_values)

    class DoubledGCN(Backbone):
        layer_class = Doubled

    class SmoothGCN(Backbone):
        layer_class = GCNLayer
        activation = staticmethod(torch.tanh)

    data = random_graph(nodes=30, edges=80)
    for kind in (DoubledGCN, SmoothGCN, SumOfLayers):
        model = kind(5, 8, 3).eval()
        compiled = compile_model(model, data, "natural")
        assert isinstance(compiled, CompiledModel)
        assert torch.allclose(compiled(), model(data.x, data.edge_index).detach(), atol=1e-5)


def test_a_layer_of_another_kind_is_refused():
    class Linear(Backbone):
        def layer(self, inputs, outputs, *, last):
            return nn.Linear(inputs, outputs)

    with pytest.raises(InputError, match=r"Linear.layer\(\) returned a Linear: it must be a gst.nn.layers.Layer"):
        Linear(5, 8, 3)
