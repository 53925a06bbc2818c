"""Any PyG model with gated edges: value 0 is deletion, and a deleted edge still has a gradient."""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator

import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric import utils
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.typing import OptTensor
from torch_geometric.utils import add_self_loops, degree, scatter, softmax

from gst.base.errors import InputError
from gst.nn.own_model import LARGE, call_model, check_model, gated

NODES, FEATURES, CLASSES = 16, 4, 3
EMPTIED = torch.tensor([3, 4])  # nodes that lose every column in the tests


class TutorialConv(pyg.MessagePassing):
    """The GCN layer of PyG's tutorial on message passing: degrees by hand, normalisation inside ``message``."""

    def __init__(self, inputs: int, outputs: int, loops: bool = True) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(inputs, outputs)
        self.loops = loops

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.loops:
            edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        deg_inv_sqrt = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        return self.propagate(edge_index, x=self.lin(x), norm=deg_inv_sqrt[row] * deg_inv_sqrt[col])

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm.view(-1, 1) * x_j


class MeanConv(pyg.MessagePassing):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(aggr="mean", flow="target_to_source")
        self.lin = nn.Linear(2 * inputs, outputs)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.propagate(edges, x=x)

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return self.lin(torch.cat([x_i, x_j - x_i], dim=-1))


class WeightedAttention(pyg.MessagePassing):
    """An ``edge_weight`` beside a softmax: the gate must come in once."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.propagate(edge_index, x=self.lin(x), edge_weight=edge_weight)

    def message(self, x_i: Tensor, x_j: Tensor, edge_weight: OptTensor, index: Tensor, size_i: int) -> Tensor:
        message = softmax((x_i * x_j).sum(-1), index, num_nodes=size_i).view(-1, 1) * x_j
        return message if edge_weight is None else edge_weight.view(-1, 1) * message


class WholeData(nn.Module):
    """Takes ``data``, and normalises once for both layers, outside them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(FEATURES, 8, normalize=False), pyg.SimpleConv()
        self.last = nn.Linear(8, CLASSES)

    def forward(self, data: Data, scale: float = 1.0) -> Tensor:
        edge_index, norm = gcn_norm(data.edge_index, None, data.num_nodes, dtype=data.x.dtype)
        hidden = self.first(data.x, edge_index, norm).tanh()
        return scale * self.last(self.second(hidden, edge_index, norm))


class Weighted(nn.Module):
    """Hands its edge weights down, once by position and once by name."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(FEATURES, 8), pyg.GraphConv(8, CLASSES, aggr="mean")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.second(self.first(x, edge_index, edge_weight).tanh(), edge_index, edge_weight=edge_weight)


class BothDirections(nn.Module):
    """The columns and their reverse, and the degrees as a feature."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = pyg.SAGEConv(FEATURES, 8), pyg.GATv2Conv(FEATURES, 8)
        self.last = nn.Linear(17, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        degrees = utils.degree(edge_index[1], x.shape[0], x.dtype).view(-1, 1)
        return self.last(torch.cat([self.down(x, edge_index), self.up(x, edge_index.flip(0)), degrees], dim=1).tanh())


def stack(make: Callable[[int, int], nn.Module], extra: str = "") -> Callable[[], nn.Module]:
    """Two layers of a kind with a smooth activation, so that finite differences hold."""
    arguments = f"x, edge_index{extra}"
    return lambda: pyg.Sequential(
        arguments, [(make(FEATURES, 8), f"{arguments} -> x"), nn.Tanh(), (make(8, CLASSES), f"{arguments} -> x")]
    )


def mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))


def model_of(kind: type[nn.Module], **options: object) -> Callable[[], nn.Module]:
    return lambda: kind(FEATURES, 8, num_layers=2, out_channels=CLASSES, act="elu", **options)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "GCN": model_of(pyg.GCN),
    "GraphSAGE": model_of(pyg.GraphSAGE),
    "GIN": model_of(pyg.GIN),
    "GAT": model_of(pyg.GAT, heads=2),
    "GATv2": model_of(pyg.GAT, v2=True, heads=2, edge_dim=3),
    "GCNConv without loops": stack(lambda i, o: pyg.GCNConv(i, o, add_self_loops=False)),
    "GCNConv not normalised": stack(lambda i, o: pyg.GCNConv(i, o, normalize=False), ", edge_weight"),
    "GCNConv backwards": stack(lambda i, o: pyg.GCNConv(i, o, flow="target_to_source", improved=True), ", edge_weight"),
    "GraphConv add": stack(pyg.GraphConv),
    "GraphConv mean": stack(lambda i, o: pyg.GraphConv(i, o, aggr="mean"), ", edge_weight"),
    "SGConv": stack(lambda i, o: pyg.SGConv(i, o, K=2)),
    "TAGConv": stack(pyg.TAGConv, ", edge_weight"),
    "ChebConv": stack(lambda i, o: pyg.ChebConv(i, o, K=3)),
    "ARMAConv": stack(pyg.ARMAConv),
    "LEConv": stack(pyg.LEConv),
    "ClusterGCNConv": stack(lambda i, o: pyg.ClusterGCNConv(i, o, diag_lambda=0.5)),
    "GATConv with attributes": stack(lambda i, o: pyg.GATConv(i, o, edge_dim=3), ", edge_attr"),
    "GATConv without loops": stack(lambda i, o: pyg.GATConv(i, o, add_self_loops=False)),
    "TransformerConv": stack(lambda i, o: pyg.TransformerConv(i, o, edge_dim=3), ", edge_attr"),
    "SuperGATConv": stack(pyg.SuperGATConv),
    "GINEConv": stack(lambda i, o: pyg.GINEConv(mlp(i, o), edge_dim=3), ", edge_attr"),
    "NNConv mean": stack(lambda i, o: pyg.NNConv(i, o, nn.Linear(3, i * o), aggr="mean"), ", edge_attr"),
    "PDNConv": stack(lambda i, o: pyg.PDNConv(i, o, 3, 8), ", edge_attr"),
    "tutorial": stack(TutorialConv),
    "tutorial without loops": stack(lambda i, o: TutorialConv(i, o, loops=False)),
    "mean by hand": stack(MeanConv),
    "weighted attention": stack(WeightedAttention),
    "whole data": WholeData,
    "edge weights handed down": Weighted,
    "both directions": BothDirections,
}
# these compute 1/√0 themselves: a node that lost all its columns has no gradient in them
WITHOUT_GRADIENT = {"ChebConv", "tutorial without loops"}


def graph(*, directed: bool, seed: int = 0) -> Data:
    """Random columns with repeated ones, self-loops (one of them twice) and isolated nodes, in no order."""
    draw = torch.Generator().manual_seed(seed)
    columns = torch.randint(1, NODES - 2, (2, 70), generator=draw)
    columns = columns[:, columns[0] != columns[1]]
    columns = torch.cat([columns, columns[:, :4]], dim=1)
    if not directed:
        columns = torch.cat([columns, columns.flip(0)], dim=1)
    columns = torch.cat([columns, torch.tensor([[2, 5, 5, NODES - 1]] * 2)], dim=1)
    columns = columns[:, torch.randperm(columns.shape[1], generator=draw)]
    count = columns.shape[1]
    return Data(
        x=torch.randn(NODES, FEATURES, generator=draw, dtype=torch.float64),
        edge_index=columns,
        edge_weight=torch.rand(count, generator=draw, dtype=torch.float64) + 0.5,
        edge_attr=torch.randn(count, 3, generator=draw, dtype=torch.float64),
    )


def loops(data: Data) -> Tensor:
    return data.edge_index[0] == data.edge_index[1]


def kept(data: Data, seed: int = 0) -> Tensor:
    """A random half; some nodes lose every column in both directions."""
    keep = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(seed)) < 0.5
    lost = torch.isin(data.edge_index, EMPTIED).any(0)
    return (keep & ~lost) | loops(data)


@functools.cache
def build(name: str) -> nn.Module:
    torch.manual_seed(1)
    return MODELS[name]().double().eval()


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """For what layers compute in the default type, such as ``degree``."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def run(model: nn.Module, data: Data, values: Tensor) -> Tensor:
    with gated(model, data, values):
        return call_model(model, data)


def score(output: Tensor) -> Tensor:
    """A generic number to differentiate."""
    return (output * torch.linspace(-1, 2, output.numel(), dtype=output.dtype).view_as(output).sin()).sum()


every_model = pytest.mark.parametrize("name", MODELS)
both_directions = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


@every_model
@both_directions
def test_zero_is_deletion(name: str, directed: bool) -> None:
    data, model = graph(directed=directed), build(name)
    keep = kept(data)
    expected = call_model(model, data.edge_subgraph(keep))
    assert not torch.allclose(expected, call_model(model, data), atol=1e-3)
    torch.testing.assert_close(run(model, data, keep.double()), expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(run(model, data, torch.ones_like(data.edge_weight)), call_model(model, data))


@every_model
@both_directions
def test_gradients_are_those_of_finite_differences(name: str, directed: bool) -> None:
    data, model = graph(directed=directed), build(name)
    draw = torch.Generator().manual_seed(2)
    values = torch.rand(data.num_edges, generator=draw, dtype=torch.float64) + 0.3
    # some columns at 0, none of them the last one of its node, where the mean and 1/√degree jump
    busy = torch.minimum(*(degree(row, NODES) for row in data.edge_index))[data.edge_index].amin(0) > 4
    removed = (busy & ~loops(data)).nonzero()[:, 0].tolist()
    assert len(removed) > 5
    values[removed[::3]] = 0
    values.requires_grad_()
    (slope,) = torch.autograd.grad(score(run(model, data, values)), values)
    for e in [*removed[:7:3], *range(5)]:
        step = torch.zeros_like(values).index_fill_(0, torch.tensor(e), 1e-6)
        with torch.no_grad():
            difference = score(run(model, data, values + step)) - score(run(model, data, values - step))
        assert slope[e].item() == pytest.approx(difference.item() / 2e-6, rel=1e-5, abs=1e-7), f"column {e}"


@every_model
@both_directions
def test_removed_columns_have_gradients(name: str, directed: bool) -> None:
    data, model = graph(directed=directed), build(name)
    keep = kept(data)
    values = keep.double().requires_grad_()
    (slope,) = torch.autograd.grad(score(run(model, data, values)), values)
    assert slope.isfinite().all()
    assert not slope[loops(data)].any()
    # a column from a node that nothing reaches any more may truly have no effect, along directed paths also farther off
    effective = ~keep & torch.isin(data.edge_index[0], data.edge_index[1, keep])
    if name in WITHOUT_GRADIENT:
        effective &= ~torch.isin(data.edge_index, EMPTIED).any(0)
    else:
        assert slope[effective & torch.isin(data.edge_index[1], EMPTIED)].any()
    assert slope[effective].count_nonzero() >= (0.6 if directed else 1.0) * effective.sum()


@every_model
@both_directions
def test_check_accepts(name: str, directed: bool) -> None:
    check_model(build(name), graph(directed=directed))


@every_model
def test_everything_is_put_back(name: str) -> None:
    data, model = graph(directed=False), build(name)
    before = call_model(model, data)
    names = dict(vars(inspect.getmodule(TutorialConv)))
    with pytest.raises(KeyError), gated(model, data, torch.zeros_like(data.edge_weight)):
        assert softmax_is_replaced()
        call_model(model, data)
        raise KeyError
    torch.testing.assert_close(call_model(model, data), before, rtol=0, atol=0)
    assert dict(vars(inspect.getmodule(TutorialConv))) == names
    assert not softmax_is_replaced()
    for module in model.modules():
        hooks = [value for key, value in vars(module).items() if key.endswith("_hooks")]
        assert not any(hooks)


def softmax_is_replaced() -> bool:
    return utils.softmax is not utils._softmax.softmax


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["GCN", "GraphSAGE", "GIN", "GAT", "GATv2"]), st.booleans())
def test_zero_is_deletion_on_many_graphs(seed: int, name: str, directed: bool) -> None:
    data, model = graph(directed=directed, seed=seed), build(name)
    keep = kept(data, seed)
    expected = call_model(model, data.edge_subgraph(keep))
    torch.testing.assert_close(run(model, data, keep.double()), expected, rtol=1e-10, atol=1e-10)


def test_a_node_without_columns_sees_what_a_return_would_add() -> None:
    """Into an empty node, the gradient of a removed column is exactly the change its return with value 1 makes."""
    data = graph(directed=True)
    data = Data(x=data.x, edge_index=data.edge_index[:, ~loops(data)])
    layers = [pyg.SAGEConv(FEATURES, 2), pyg.TransformerConv(FEATURES, 2), pyg.GraphConv(FEATURES, 2, aggr="mean")]
    column = 0
    values = (data.edge_index[1] != data.edge_index[1, column]).double()
    for layer in layers:
        model = layer.double().eval()
        leaf = values.clone().requires_grad_()
        (slope,) = torch.autograd.grad(run(model, data, leaf).sum(), leaf)
        back = values.index_fill(0, torch.tensor(column), 1.0)
        change = run(model, data, back).sum() - run(model, data, values).sum()
        assert slope[column].item() == pytest.approx(change.item(), abs=1e-9)


def test_weights_are_multiplied_once() -> None:
    data, model = graph(directed=False), copy.deepcopy(build("edge weights handed down"))
    model.second = pyg.GraphConv(8, CLASSES)  # by sum: the mean of GraphConv counts edges, not weights
    values = torch.rand(data.num_edges).masked_fill(loops(data), 1.0)
    weighted = data.clone()
    weighted.edge_weight = data.edge_weight * values
    torch.testing.assert_close(run(model, data, values), call_model(model, weighted))


def test_values_are_matched_by_columns_not_by_count() -> None:
    """Every node carries a self-loop, so a GAT that replaces them has as many messages as there are columns."""
    data = graph(directed=False)
    columns = torch.cat([data.edge_index[:, ~loops(data)], torch.arange(NODES).expand(2, -1)], dim=1)
    columns = columns[:, torch.randperm(columns.shape[1], generator=torch.Generator().manual_seed(0))]
    data = Data(x=data.x, edge_index=columns)
    for name in ("GAT", "GCN", "ClusterGCNConv"):
        model, keep = build(name), kept(data)
        expected = call_model(model, data.edge_subgraph(keep))
        torch.testing.assert_close(run(model, data, keep.double()), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_a_removed_column_with_a_huge_logit_does_no_harm(scale: float) -> None:
    data, model = graph(directed=False), build("TransformerConv")
    data.x[3] *= scale
    keep = data.edge_index[0] != 3
    values = keep.double().requires_grad_()
    output = run(model, data, values)
    torch.testing.assert_close(output, call_model(model, data.edge_subgraph(keep)), rtol=1e-10, atol=1e-10)
    assert torch.autograd.grad(score(output), values)[0].isfinite().all()


def test_another_model_is_not_gated() -> None:
    data, model = graph(directed=False), build("GAT")
    other, expected = copy.deepcopy(model), call_model(model, data)
    with gated(model, data, kept(data).double()):
        assert not torch.allclose(call_model(model, data), expected)
        torch.testing.assert_close(call_model(other, data), expected, rtol=0, atol=0)
        with pytest.raises(RuntimeError):  # an interrupted call leaves nothing behind
            model(data.x[:, 1:], data.edge_index)
        torch.testing.assert_close(call_model(other, data), expected, rtol=0, atol=0)


def test_gcn_without_loops_ignores_what_comes_from_a_node_without_columns_into_it() -> None:
    """PyG gives such a source the factor 0; a removed column from it acts on the degree of its target alone."""
    data = Data(x=torch.randn(4, FEATURES), edge_index=torch.tensor([[0, 2, 1, 3], [1, 1, 2, 2]]))
    model = pyg.GCNConv(FEATURES, 2, add_self_loops=False).double()
    values = torch.tensor([0.0, 1.0, 1.0, 1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(score(run(model, data, values)), values)
    step = torch.tensor([1e-6, 0.0, 0.0, 0.0])
    difference = score(run(model, data, values + step)) - score(run(model, data, values - step))
    assert slope[0].item() == pytest.approx(difference.item() / 2e-6, rel=1e-6)


def test_all_columns_removed_or_none_there() -> None:
    for name in ("GCN", "GAT", "GraphSAGE"):
        data, model = graph(directed=False), build(name)
        none = data.edge_subgraph(torch.zeros(data.num_edges, dtype=torch.bool))
        torch.testing.assert_close(run(model, none, torch.ones(0)), call_model(model, none))
        output = run(model, data, torch.zeros(data.num_edges))
        torch.testing.assert_close(output, call_model(model, data.edge_subgraph(loops(data))))


def test_single_precision_and_training_mode() -> None:
    torch.set_default_dtype(torch.float32)
    data = graph(directed=False).apply(lambda t: t.float() if t.is_floating_point() else t)
    model, keep = copy.deepcopy(build("GAT")).float().train(), kept(data)
    output = run(model, data, keep.double())
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, call_model(model, data.edge_subgraph(keep)), rtol=1e-5, atol=1e-5)


def test_values_must_fit() -> None:
    data, model = graph(directed=False), build("GCN")
    for values in (torch.ones(3), torch.ones(data.num_edges, dtype=torch.long), torch.ones(data.num_edges, 1)):
        with pytest.raises(InputError, match=f"{data.num_edges} floats"), gated(model, data, values):
            pass
    with pytest.raises(InputError, match="edge_index must be"), gated(model, Data(x=data.x), torch.ones(0)):
        pass


class Forward(nn.Module):
    """A model around one function of its layer, x and edge_index."""

    def __init__(self, layer: nn.Module, function: Callable[[nn.Module, Tensor, Tensor], object] | None = None) -> None:
        super().__init__()
        self.layer, self.function = layer, function or (lambda layer, x, edge_index: layer(x, edge_index))

    def forward(self, x: Tensor, edge_index: Tensor) -> object:
        return self.function(self.layer, x, edge_index)


class HiddenDegree(pyg.MessagePassing):
    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = torch.bincount(edge_index[1], minlength=x.shape[0]).clamp(min=1)
        return self.propagate(edge_index, x=x) / count.view(-1, 1)


class HiddenMean(pyg.MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def aggregate(self, inputs: Tensor, index: Tensor, dim_size: int) -> Tensor:
        return scatter(inputs, index, 0, dim_size, "mean")


class Detached(pyg.MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x).detach() + 0 * x.requires_grad_()


class Squared(pyg.MessagePassing):
    """Would pass with values 0 and 1 alone."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, edge_weight=edge_weight)

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        return x_j * edge_weight.view(-1, 1) ** 2


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.seen = pyg.SGConv(FEATURES, 2), None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.seen = self.layer(x, edge_index) if self.seen is None else self.seen
        return self.seen


def conv(**options: object) -> nn.Module:
    return pyg.SAGEConv(FEATURES, 2, **options)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (pyg.MLP([FEATURES, 2]), "MLP has no MessagePassing layer"),
        (Forward(pyg.GCNConv(FEATURES, 2, cached=True)), "GCNConv caches .* cached=False"),
        (Forward(pyg.SGConv(FEATURES, 2, cached=True)), "SGConv caches"),
        (Forward(pyg.APPNP(2, 0.1, cached=True)), "APPNP caches"),
        (Cache(), "does not change when edges are removed"),
        *((Forward(conv(aggr=aggr)), f"aggr='{aggr}'") for aggr in ("max", "min", "mul", "std", "median", "lstm")),
        (Forward(conv(aggr=["mean", "sum"])), r"aggr=\['mean', 'sum'\]"),
        (Forward(HiddenDegree()), r"\(HiddenDegree\): .*difference 0\.\d.* degree"),
        (Forward(HiddenMean()), r"\(HiddenMean\): .*difference"),
        (Forward(pyg.MFConv(FEATURES, 2)), r"\(MFConv\): .*difference"),
        (Forward(Squared(), lambda m, x, e: m(x, e, x.new_ones(e.shape[1]))), r"\(Squared\): .*difference"),
        (Forward(Detached()), r"\(Detached\) removed edges have no finite, non-zero gradient"),
        (Forward(conv(), lambda m, x, e: m(x, e[:, ::2])), "SAGEConv must take data.edge_index as it is"),
        (
            Forward(pyg.GCNConv(FEATURES, 2), lambda m, x, e: m(x, e[:, ::2])),
            "GCNConv must take data.edge_index as it is",
        ),
        (Forward(conv(), lambda m, x, e: m.forward(x, e)), "difference"),
        (Forward(conv(), lambda m, x, e: (m(x, e), x)), "not tuple"),
        (Forward(conv(), lambda m, x, e: m(x, e)[:, :1]), r"\[16, C\], C ≥ 2 classes, not \[16, 1\]"),
        (Forward(conv(), lambda m, x, e: m(x, e).argmax(1)), "not Tensor"),
        (Forward(conv(), lambda m, x, e: m(x, e).mean(0, keepdim=True)), r"not \[1, 2\]"),
        (Forward(pyg.SAGEConv(FEATURES + 1, 2)), "fails on this data: RuntimeError"),
        (
            pyg.Sequential(
                "x, edge_index, edge_type", [(pyg.RGCNConv(FEATURES, 2, 2), "x, edge_index, edge_type -> x")]
            ),
            "edge_type",
        ),
    ],
)
def test_refusals(model: nn.Module, reason: str) -> None:
    data = graph(directed=False)
    with pytest.raises(InputError, match=reason) as caught:
        check_model(model.double(), data)
    assert "\n" not in str(caught.value)


def test_data_without_edges_is_refused() -> None:
    x = torch.randn(3, FEATURES)
    with pytest.raises(InputError, match="no edges apart from self-loops"):
        check_model(Forward(conv()), Data(x=x, edge_index=torch.tensor([[0, 1], [0, 1]])))
    with pytest.raises(InputError, match="edge_index must be"):
        check_model(Forward(conv()), Data(x=x, adj_t=torch.eye(3).to_sparse()))


def test_check_leaves_no_trace() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = pyg.SAGEConv(FEATURES, 2), nn.BatchNorm1d(2)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            self.calls += 1
            torch.rand(1)
            return functional.dropout(self.norm(self.layer(x, edge_index)), training=self.training)

    model, data = Noisy().double().train(), graph(directed=True)
    model.norm.eval()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    random = torch.get_rng_state()
    check_model(model, data)
    assert model.training and model.layer.training and not model.norm.training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.no_grad():
        check_model(model, data)


def test_check_looks_at_a_piece_of_a_large_graph() -> None:
    draw = torch.Generator().manual_seed(0)
    columns = torch.randint(2_000, (2, 10 * LARGE), generator=draw)
    data = Data(x=torch.randn(2_000, FEATURES, generator=draw), edge_index=columns)
    seen = []
    model = Forward(conv(), lambda m, x, e: seen.append(e.shape[1]) or m(x, e))
    check_model(model, data)
    assert max(seen) < 1.2 * LARGE
    with pytest.raises(InputError, match="difference"):
        check_model(Forward(HiddenDegree()), data)


class TestCallModel:
    data = Data(x=torch.randn(3, 2, dtype=torch.float64), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.arange(3))

    def call(self, forward: Callable[..., object]) -> object:
        model = nn.Module()
        model.forward = forward
        return call_model(model, self.data)

    def test_by_name(self) -> None:
        x, edge_index = self.data.x, self.data.edge_index
        assert self.call(lambda edge_index, x: (x, edge_index)) == (x, edge_index)
        assert self.call(lambda x, edge_weight=None, *, y=7, **rest: (edge_weight, y is self.data.y)) == (None, True)
        assert self.call(lambda x, num_nodes: num_nodes) == 3

    def test_data_itself(self) -> None:
        def annotated(g: Data, flag: bool = True) -> object:
            return g

        def quoted(g: "Data") -> object:
            return g

        for forward in (annotated, quoted, lambda data: data, lambda batch: batch, lambda graph, k=3: graph):
            assert self.call(forward) is self.data

    def test_missing(self) -> None:
        with pytest.raises(
            InputError, match=r"forward needs 'edge_attr', but data has only edge_index, num_nodes, x, y"
        ):
            self.call(lambda x, edge_attr: x)

    def test_sequential_that_pyg_could_not_compile(self) -> None:
        model = pyg.Sequential("x, edge_index", [(pyg.GCNConv(2, 2), "x, edge_index -> x")])
        vars(model).pop("forward", None)
        assert call_model(model, self.data).shape == (3, 2)
