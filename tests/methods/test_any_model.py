"""Deploy takes any trained model: without labels, whatever its outputs mean and however it reads the edges."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

import gst
from graphs import random_graph
from gst.graph.adjacency_input import adjacency_like, with_edge_index
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.batched import BatchedSearch
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import Search
from gst.nn.heads import agreement
from gst.nn.recognise import native
from gst.nn.trained import TrainedNetwork
from gst.train.task import task_of

pytestmark = pytest.mark.filterwarnings("ignore::gst.AgreementWarning")


def bare() -> Data:
    """Nothing but features and edges."""
    data = random_graph(nodes=30, edges=80)
    return Data(x=data.x, edge_index=data.edge_index)


def seeded(make):
    torch.manual_seed(0)
    return make()


def gcn(outputs: int = 3) -> nn.Module:
    return seeded(lambda: pyg.GCN(5, 8, 2, outputs))


def metrics(model: nn.Module, data: Data | None = None, **options):
    return gst.Deploy(model, sparsity=0.5, **options).fit(bare() if data is None else data).result_.metrics


def test_features_and_edges_are_enough():
    data = bare()
    result = gst.Deploy(gcn(), sparsity=0.8).fit(data, dense=True).result_
    known = {name: result.metrics[name] for name in ("val", "test", "dense_val", "dense_test", "metric")}
    assert set(known.values()) == {None}
    assert result.metrics["head"] == "classes" and result.metrics["agreement"] > 0.8
    assert result.metrics["edges_kept"] == result.metrics["edges_total"] - round(0.8 * result.metrics["edges_total"])
    with torch.no_grad():
        same = result.model(data.x, result.graph.edge_index).argmax(1) == gcn().eval()(data.x, data.edge_index).argmax(
            1
        )
    assert float(same.double().mean()) == pytest.approx(result.metrics["agreement"])


def test_a_result_without_labels_is_saved_and_loaded(tmp_path):
    result = gst.Deploy(gcn(), sparsity=0.5).fit(bare()).result_
    again = gst.Result.load(result.save(tmp_path / "run"), model=gcn())
    assert again.metrics["test"] is None and again.metrics["agreement"] == result.metrics["agreement"]
    with pytest.raises(gst.InputError, match="no labels and split"):
        gst.Deploy(gcn(), sparsity=0.5).fit(bare(), retrain=True)


@pytest.mark.parametrize(
    ("outputs", "head", "y"),
    [
        (3, "classes", None),
        (3, "labels", None),
        (1, "logit", None),
        (2, "regression", None),
        (6, "embedding", None),
        (3, "auto", torch.arange(30) % 3),
        (1, "auto", torch.arange(30) % 2),
        (2, "auto", torch.arange(60).view(30, 2) % 2),
        (2, "auto", torch.rand(30, 2)),
    ],
)
def test_heads(outputs, head, y):
    data, known = bare(), head
    if y is not None:
        data.y, known = y, {3: "classes", 1: "logit", 2: "regression" if y.is_floating_point() else "labels"}[outputs]
    found = metrics(gcn(outputs), data, head=head)
    assert found["head"] == known and found["agreement"] is not None


def test_a_labelled_logit_is_scored():
    data = random_graph(nodes=40, edges=120)
    data.y = data.y % 2
    found = metrics(gcn(1), data)
    model = gcn(1).eval()
    with torch.no_grad():
        right = (model(data.x, data.edge_index)[:, 0] > 0) == data.y.bool()
    dense = gst.Deploy(model, sparsity=0.5).fit(data, dense=True).result_.metrics["dense_test"]
    assert found["metric"] == "accuracy" and dense == pytest.approx(100 * float(right[data.test_mask].double().mean()))


def test_an_encoder_is_judged_by_its_embeddings():
    """Whatever y says: even if it has as many classes as the embedding has columns."""
    data = random_graph(nodes=40, edges=120)
    for kind in (pyg.GAE, pyg.ARGA):
        model = seeded(
            lambda kind=kind: pyg.GAE(pyg.GCN(5, 8, 2, 3)) if kind is pyg.GAE else kind(pyg.GCN(5, 8, 2, 3), gcn())
        )
        result = gst.Deploy(model, sparsity=0.5).fit(data).result_
        assert result.metrics["head"] == "embedding" and result.metrics["test"] is None
        assert isinstance(result.model, kind)


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean, self.spread = pyg.GCNConv(5, 3), pyg.GCNConv(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean(x, edge_index), self.spread(x, edge_index)


def test_tuples_by_index_and_vgae():
    with pytest.raises(gst.InputError, match="returns a tuple: say which part with output=0"):
        metrics(Two())
    with pytest.raises(gst.InputError, match="no output 2"):
        metrics(Two(), output=2)
    first, second = (gst.Deploy(seeded(Two), sparsity=0.5, output=n).fit(bare()).result_ for n in (0, 1))
    assert not torch.equal(first.edge_mask, second.edge_mask)
    assert metrics(pyg.VGAE(seeded(Two)))["head"] == "embedding"


class Reads(nn.Module):
    """Reads the edges as it is told."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.first, self.second = how, pyg.SAGEConv(5, 8), pyg.GCNConv(8, 3)

    def forward(self, data: Data) -> Tensor:
        edges = data[self.how]
        return self.second(self.first(data.x, edges).relu(), edges)


class ByName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(5, 3)

    def forward(self, x: Tensor, adj_t: Tensor) -> Tensor:
        return self.conv(x, adj_t)


def test_adjacencies():
    plain = bare()
    adjacency = Data(x=plain.x, adj_t=adjacency_like(None, plain))
    expected = metrics(seeded(lambda: Reads("edge_index")), plain)
    result = gst.Deploy(seeded(lambda: Reads("adj_t")), sparsity=0.5).fit(adjacency).result_
    assert result.metrics["agreement"] == expected["agreement"]
    kept = with_edge_index(Data(x=plain.x, adj_t=result.graph.adj_t))
    assert sorted(kept.edge_index.t().tolist()) == sorted(result.graph.edge_index.t().tolist()), "removed there, too"
    assert metrics(ByName(), plain)["agreement"] is not None


def test_an_edge_index_of_pygs_own_class():
    plain = bare()
    data = Data(x=plain.x, edge_index=EdgeIndex(plain.edge_index, sparse_size=(30, 30)))
    assert metrics(gcn(), data)["agreement"] == metrics(gcn(), plain)["agreement"]


def test_attributes_that_a_model_was_not_built_for_are_left_out():
    data, model = bare(), seeded(lambda: pyg.GAT(5, 8, 2, 3, heads=2, v2=True))
    expected = metrics(model, data)
    data.edge_attr = torch.rand(data.num_edges, 2)
    assert metrics(model, data)["agreement"] == expected["agreement"]


class Wrapper(nn.Module):
    """What torch.compile and Lightning put around a model, for those who look at attributes only."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self._orig_mod = inside

    def forward(self, *args: object) -> Tensor:
        raise AssertionError("the wrapper must not be called")


class LightningModule(nn.Module):
    def forward(self, *args: object) -> Tensor:
        raise NotImplementedError


class Lit(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = gcn()
        self._trainer = (part for part in ())  # cannot be copied


def test_wrappers_are_taken_off():
    expected = metrics(gcn())["agreement"]
    lit = Lit()
    for model in (Wrapper(gcn()), lit):
        assert metrics(model)["agreement"] == expected
    assert lit._trainer is not None


class Pool(pyg.MessagePassing):
    """The median of the neighbours: no slope, no formula."""

    def __init__(self, aggr: object) -> None:
        super().__init__(aggr=aggr)
        self.lin = nn.Linear(10, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(torch.cat([x, self.propagate(edge_index, x=x)], 1))


@pytest.mark.parametrize("aggr", ["max", "min", "median", "softmax", "powermean"])
def test_aggregations_without_slopes(aggr):
    if aggr == "powermean":
        aggr = pyg.aggr.PowerMeanAggregation()
    data, model = bare(), seeded(lambda: Pool(aggr))
    data.x = data.x.abs() + 0.1
    network = TrainedNetwork(model, data, None, torch.device("cpu"))
    edges = EdgeSet.from_data(data, "arcs")
    assert native(model, data) is None and not network.has_slopes()
    with torch.no_grad():
        wanted = network.logits(edges)
    search = BatchedSearch([network], edges, [wanted], Target.of(wanted))
    order = search.add(40)[0]
    assert order.unique().numel() == 40
    by_chance = torch.randperm(edges.num_edges, generator=torch.Generator().manual_seed(0))[:40]
    masks = [torch.zeros(edges.num_edges, dtype=torch.bool).index_fill(0, ids, True) for ids in (order, by_chance)]
    with torch.no_grad():
        losses = [float(search.target.loss(wanted, network.logits(edges.subset(mask))).sum()) for mask in masks]
    assert search.divergence() == pytest.approx(losses[0], rel=1e-5)
    assert losses[0] < 0.7 * losses[1]


class Random(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x + torch.rand_like(x), edge_index)


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index).mean(0, keepdim=True)


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        (pyg.MLP([5, 3]), {}, "does not change when edges are removed"),
        (pyg.Sequential("x, edge_index", [(pyg.GCNConv(5, 3, cached=True), "x, edge_index -> x")]), {}, "cached=False"),
        (Pooled(), {}, "returns 1 rows, not one for each of the 30 nodes"),
        (gcn(1), {}, "say head='logit' or head='regression'"),
        (gcn(1), {"head": "classes"}, "1 outputs per node: head 'classes' needs two or more"),
        (gcn(3), {"head": "logit"}, "head 'logit' needs one"),
        (gcn(3), {"head": "score"}, "unknown head 'score'"),
        (gcn(3), {"scenarios": -1}, "give a number of copies"),
        (gcn(3), {"change": "lost"}, "unknown change 'lost'"),
    ],
)
def test_what_is_left_is_refused_in_one_line(model, options, reason):
    with pytest.raises(gst.InputError, match=reason) as caught:
        metrics(model, **options)
    assert "\n" not in str(caught.value)


def test_outputs_that_do_not_fit_y_need_a_head():
    data = bare()
    data.y = torch.arange(30) % 4
    with pytest.raises(gst.InputError, match=r"16 outputs per node, but y has 4 classes.*head='embedding'"):
        metrics(gcn(16), data)
    assert task_of(data, "embedding", 16, "it").metric is None


def test_agreement_of_each_head():
    wanted = torch.tensor([[1.0, 2.0], [3.0, -1.0], [-2.0, 0.5], [0.0, 4.0]])
    turned = wanted.clone()
    turned[0] = torch.tensor([2.0, 1.0])
    assert agreement("classes", turned, wanted) == 0.75
    assert agreement("labels", -wanted, wanted) == pytest.approx(1 / 8)  # −0 and 0 are both no
    assert agreement("regression", wanted + 0.05, wanted) == 1 and agreement("regression", turned, wanted) == 0.75
    assert agreement("embedding", 7 * wanted, wanted) == 1 and agreement("embedding", turned, wanted) == 0.75


@pytest.mark.parametrize("damped", [True, False])
def test_the_divergence_of_numbers_is_their_squared_distance(damped):
    data = bare()
    data.x = data.x.double()
    network, edges = native(gcn(4).double(), data), EdgeSet.from_data(data, "arcs")
    assert network is not None
    with torch.no_grad():
        wanted = network.logits(edges)
        target = Target.for_head("embedding", wanted)
        spread = (wanted - wanted.mean(0)).square().sum(1).mean().sqrt()
        assert target.temperature == pytest.approx(0.1 * float(spread))
        target = Target(target.temperature, squares=True, damped=damped)
        search = Search([network], edges, [wanted], target)
        for _ in range(5):
            before = search.divergence()
            delta = float(search.add(1)[1])
            apart = (network.logits(edges.subset(torch.from_numpy(search.keep_mask))) - wanted).square().sum(1)
            kl = apart / (2 * target.temperature**2)
            expected = float((kl.log1p() if damped else kl).sum())
            assert search.divergence() == pytest.approx(expected, rel=1e-6)
            assert search.divergence() - before == pytest.approx(delta, rel=1e-6)


def test_what_a_search_by_passes_costs_is_said_beforehand(monkeypatch):
    monkeypatch.setattr("gst.methods.greedy.cost.LONG", 0.0)
    reason = (
        r"SAGE is no native network \(has a SAGEConv with aggr='max'\): its search takes up to \d+ passes of \d+ ms"
    )
    with pytest.warns(gst.CostWarning, match=reason):
        metrics(seeded(lambda: pyg.GraphSAGE(5, 8, 2, 3, aggr="max")))


def test_passes_are_bounded(monkeypatch):
    data, model = bare(), seeded(lambda: pyg.GraphSAGE(5, 8, 2, 3, aggr="max"))
    network = TrainedNetwork(model, data, None, torch.device("cpu"))
    edges = EdgeSet.from_data(data, "arcs")
    with torch.no_grad():
        wanted = network.logits(edges)
    search = BatchedSearch([network], edges, [wanted], Target.of(wanted))
    calls, call = [], TrainedNetwork.call
    monkeypatch.setattr(TrainedNetwork, "call", lambda self, graph: calls.append(1) or call(self, graph))
    bound = search.passes(60)
    search.add(60)
    assert 0 < len(calls) <= bound
