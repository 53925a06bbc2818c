"""Deploy on copies of the features that are dropped, shuffled or perturbed."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE

import gst
from graphs import random_graph
from gst.methods.deploy import objective
from gst.methods.scenarios import CANDIDATES, Scenarios, on_features
from gst.nn.feature_changes import CHANGES, perturbed

pytestmark = pytest.mark.filterwarnings("ignore::gst.AgreementWarning")


def graph() -> Data:
    data = random_graph(nodes=40, edges=120)
    return Data(x=data.x, edge_index=data.edge_index)


def model(**options) -> torch.nn.Module:
    torch.manual_seed(0)
    return GCN(5, 8, 2, 3) if not options else GraphSAGE(5, 8, 2, 3, **options)


@pytest.mark.parametrize("options", [{}, {"aggr": "max"}], ids=["native", "passes"])
def test_the_copies_give_their_own_dense_answers(options):
    data = graph()
    run = gst.Deploy(model(**options), sparsity=0.5).run(data)
    wanted = objective(run, run.network()).with_copies(run, Scenarios(2, "shuffled", 0.5))
    assert len(wanted.networks) == 4 and wanted.networks[0] is wanted.networks[1]
    own = model(**options).eval()
    for x, answers in zip(Scenarios(2, "shuffled", 0.5).features(data.x, 0), wanted.answers[2:], strict=True):
        with torch.no_grad():
            torch.testing.assert_close(answers, own(x, data.edge_index), rtol=1e-4, atol=1e-5)


def test_scenarios_keep_more_answers_on_their_copies():
    data = graph()
    plain, safe = (gst.Deploy(model(), sparsity=0.7, scenarios=n, change="shuffled").fit(data) for n in (None, 8))
    run = safe.run(data)
    wanted = objective(run, run.network()).with_copies(run, Scenarios(8, "shuffled", 0.3))
    losses = []
    for fitted in (plain, safe):
        edges = run.edges.subset(fitted.found_.keep_mask)
        with torch.no_grad():
            pairs = zip(wanted.networks, wanted.answers, strict=True)
            losses.append(sum(float(wanted.target.loss(answers, n.logits(edges)).sum()) for n, answers in pairs))
    assert losses[1] < losses[0]
    assert safe.result_.metrics["options"]["scenarios"] == 8


def test_auto_returns_plain_deploy_or_one_that_costs_little():
    data = random_graph(nodes=60, edges=200)
    few = {"hidden": 8, "anchor_epochs": 10, "sparse_epochs": 10, "cache": False, "sparsity": 0.7}
    plain, auto = (gst.Deploy(scenarios=s, **few).fit(data).result_ for s in (None, "auto"))
    assert auto.metrics["val"] >= plain.metrics["val"] - 0.2
    assert auto.metrics["edges_kept"] == plain.metrics["edges_kept"] and CANDIDATES[0] is None


def test_perturbed_cells_come_from_their_own_column():
    x = torch.rand(50, 4)
    changed = perturbed(x, 0.3, 0)
    assert 0.2 < float((changed != x).double().mean()) < 0.4
    for column, values in zip(x.t(), changed.t(), strict=True):
        assert bool(torch.isin(values, column).all())
    sparse = (x * (x > 0.7)).to_sparse_csr()
    assert torch.equal(perturbed(sparse, 0.5, 0).to_dense().sum(0) > 0, sparse.to_dense().sum(0) > 0)
    for change in CHANGES.values():
        assert torch.equal(change(x, 0.5, 1), change(x, 0.5, 1)) and not torch.equal(change(x, 0.5, 1), x)


def test_other_features_leave_the_network_alone():
    data = graph()
    run = gst.Deploy(model(aggr="max"), sparsity=0.5).run(data)
    network = run.network()
    before = network.logits(run.edges)
    changed = on_features(network, torch.zeros_like(data.x))
    assert not torch.equal(changed.logits(run.edges), before) and torch.equal(network.logits(run.edges), before)


def test_without_features_there_is_nothing_to_change():
    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.inner = torch.nn.Embedding(40, 5), model()

        def forward(self, edge_index: torch.Tensor) -> torch.Tensor:
            return self.inner(self.table.weight, edge_index)

    data = Data(edge_index=graph().edge_index, num_nodes=40)
    assert gst.Deploy(Table(), sparsity=0.5).fit(data).result_.metrics["agreement"] > 0.5
    with pytest.raises(gst.InputError, match="scenarios change x"):
        gst.Deploy(Table(), sparsity=0.5, scenarios=2).fit(data)
