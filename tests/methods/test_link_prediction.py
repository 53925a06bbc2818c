"""Every method on link prediction: exact budgets, no leak, and what Deploy keeps."""

import pytest
import torch
from tests.graphs import new_run, taken
from torch import nn
from torch_geometric.nn import GCNConv

import gst
from gst.data.links import link_split
from gst.graph.pairs import Keys
from gst.methods import METHODS
from gst.methods.greedy.links import choose_landmarks, fold, link_objective
from gst.nn.links import LinkNetwork
from gst.nn.network import NativeNetwork
from gst.testing import check_mask, random_graph

QUICK = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 3, "cache": False}
SHORT = {"round_epochs": 2, "inner_steps": 2, "meta_epochs": 1, "turns": 1, "interval": 1}
BACKBONES = ("gcn", "gin", "gat", "sage")


@pytest.fixture(scope="module")
def data():
    return link_split(random_graph(nodes=60, edges=240), val=0.1, test=0.2)


class Encoder(nn.Module):
    """A user's model that ends with embeddings."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(inputs, 8), GCNConv(8, 6)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)

    def reset_parameters(self):
        self.first.reset_parameters()
        self.second.reset_parameters()


def arguments_of(name: str, data) -> dict:
    given = {"scores": torch.rand(data.num_edges // 2)} if name == "importance" else {}
    return {**QUICK, **taken(name, SHORT), **given}


@pytest.mark.parametrize("name", [name for name in METHODS if name != "importance"])
@pytest.mark.parametrize("decoder", ["dot", "mlp"])
def test_every_method_takes_links(name, decoder, data):
    result = gst.sparsify(data, name, sparsity=0.4, decoder=decoder, dense=True, **arguments_of(name, data))
    check_mask(data, result.edge_mask, sparsity=0.4, by=result.metrics["by"])
    metrics = result.metrics
    assert metrics["task"] == "links" and 0 <= metrics["agreement"] <= 1
    scores = result.link_scores(torch.cat([data.test_pairs, data.test_negatives], 1))
    y = torch.arange(scores.numel()) < data.test_pairs.shape[1]
    assert metrics["measures"]["test"]["auc"] == pytest.approx(metrics["test"] / 100)
    assert metrics["test"] == pytest.approx(100 * float((scores[y][:, None] > scores[~y]).double().mean()), abs=0.5)


@pytest.mark.parametrize("decoder", ["dot", "mlp"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_saved_and_loaded_it_scores_the_same(decoder, backbone, data, tmp_path):
    result = gst.sparsify(data, "gst", sparsity=0.4, backbone=backbone, decoder=decoder, **QUICK)
    again = gst.Result.load(result.save(tmp_path / "run"))
    assert torch.equal(again.link_scores(data.test_pairs), result.link_scores(data.test_pairs))
    assert torch.equal(again.graph.test_pairs, data.test_pairs)


@pytest.mark.parametrize("method", ["random", "gst", "deploy", "retrain", "ugs"])
def test_a_model_of_ones_own(method, data):
    result = gst.sparsify(
        data, method, sparsity=0.5, model=Encoder(data.x.shape[1]), dense=True, **arguments_of(method, data)
    )
    check_mask(data, result.edge_mask, sparsity=0.5, by=result.metrics["by"])
    assert result.metrics["backbone"] == "Encoder"


@pytest.mark.parametrize("part", ["train", "val", "test"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_supervised_edge_that_is_a_message_is_refused(part, reverse, data):
    leaky = data.clone()
    pair = leaky[f"{part}_pairs"][:, :1]
    leaky.edge_index = torch.cat([leaky.edge_index, pair.flip(0) if reverse else pair], 1)
    with pytest.raises(gst.InputError, match=f"1 of {part}_pairs"):
        gst.sparsify(leaky, "random", sparsity=0.5, **QUICK)


def test_no_message_that_any_training_sees_is_supervised(data, monkeypatch):
    """What the network is called with, in every pass of a whole search, holds no supervised edge."""
    supervised = Keys.of(torch.cat([data[f"{part}_pairs"] for part in ("train", "val", "test")], 1))
    passes = []
    original = NativeNetwork.logits

    def watched(self, edges, *args):
        passes.append(bool(supervised.has(edges.pairs).any()))
        return original(self, edges, *args)

    monkeypatch.setattr(NativeNetwork, "logits", watched)
    gst.sparsify(data, "gst", sparsity=0.4, dense=True, retrain=True, **QUICK)
    assert len(passes) > 20 and not any(passes)


def test_a_search_sees_no_score_of_validation_and_test_pairs(data):
    """Other pairs to be asked about, the same answers: the semantic criterion and Deploy see training pairs only."""
    other = data.clone()
    other.test_pairs, other.test_negatives = data.test_negatives, data.test_pairs
    for method in ("gst", "deploy"):
        masks = [gst.sparsify(graph, method, sparsity=0.5, **QUICK).edge_mask for graph in (data, other)]
        assert torch.equal(*masks)


def test_negatives_of_training_are_drawn_anew_and_only_in_training(data):
    run = new_run(data, hidden=8)
    network, task = run.network(), run.task
    drawn = [task.pairs.of(task.train, redraw=True) for _ in range(2)]
    positive = task.y[task.train, 0] == 1
    assert torch.equal(drawn[0][:, positive], drawn[1][:, positive])
    assert not torch.equal(drawn[0][:, ~positive], drawn[1][:, ~positive])
    assert not task.pairs.known.has(drawn[0][:, ~positive]).any()
    network.module.eval()
    assert torch.equal(network.logits(run.edges), network.logits(run.edges))
    assert torch.equal(task.pairs.of(task.val, redraw=True), task.pairs.of(task.val, redraw=False))


def test_the_divergence_has_the_gradient_of_finite_differences(data):
    from gst.methods.criteria.semantic import semantic_scores  # noqa: PLC0415

    run = new_run(data, hidden=8)
    network = run.network()
    network.module.double().eval()
    network.inner.x = run.data.x.double()
    edges = run.edges
    with torch.no_grad():
        anchor = network.logits(edges)
    keep = torch.arange(edges.num_edges) % 2 == 0
    mask = torch.ones(edges.num_edges, dtype=torch.float64)
    scores = semantic_scores(network, run.task, anchor, edges, keep, mask)

    def divergence(gate):
        with torch.no_grad():
            return float(run.task.divergence(anchor, network.logits(edges, gate)))

    for edge in (0, 1, 7, 20):
        step = torch.zeros_like(mask)
        step[edge] = 1e-5
        slope = (divergence(keep * mask + step) - divergence(keep * mask - step)) / 2e-5
        assert float(scores[edge]) == pytest.approx(abs(slope), rel=1e-4, abs=1e-10)


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage"])
def test_landmarks_in_the_last_layer_give_the_products_with_them(backbone, data):
    run = new_run(data, backbone=backbone, hidden=8)
    network = run.network()
    network.module.eval()
    assert isinstance(network, LinkNetwork)
    with torch.no_grad():
        embeddings = network.inner.logits(run.edges)
        landmarks = embeddings[choose_landmarks(network)]
        some = run.edges.subset(torch.arange(run.edges.num_edges) % 3 > 0)
        folded = NativeNetwork(fold(network.module, landmarks), network.inner.x)
        expected = network.inner.logits(some) @ landmarks.t()
        assert torch.allclose(folded.logits(some), expected, atol=1e-5)
        searched, wanted, _ = link_objective(network, run.edges, network.logits(run.edges))
        assert torch.allclose(searched.logits(run.edges), wanted, atol=1e-5)


def test_deploy_keeps_more_scores_than_random_edges(data):
    errors = {}
    est = gst.Deploy(sparsity=0.6, seed=1, **{**QUICK, "anchor_epochs": 40}).fit(data)
    every = torch.cat([data.test_pairs, data.test_negatives], 1)
    model = est.result_.model
    for name, graph in (("deploy", est.result_.graph), ("random", gst.Random(sparsity=0.6)(data))):
        with torch.no_grad():
            dense, sparse = (model(data.x, g.edge_index) for g in (data, graph))
        scores = [(z[every[0]] * z[every[1]]).sum(-1) for z in (dense, sparse)]
        errors[name] = float((scores[0] - scores[1]).square().mean())
    assert errors["deploy"] < 0.7 * errors["random"]


@pytest.mark.parametrize("arguments", [{"batch": "clusters"}, {"batch": "neighbors"}, {"inductive": True}])
def test_what_links_do_not_take(arguments, data):
    with pytest.raises(gst.InputError, match="whole graph"):
        gst.sparsify(data, "gst", sparsity=0.5, **QUICK, **arguments)


@pytest.mark.parametrize("key", ["test_pairs", "val_negatives"])
def test_missing_and_dangling_pairs(key, data):
    broken = data.clone()
    del broken[key]
    with pytest.raises(gst.InputError, match=f"no {key}"):
        gst.sparsify(broken, "random", sparsity=0.5, **QUICK)
    broken[key] = torch.tensor([[0], [60]])
    with pytest.raises(gst.InputError, match=f"{key} names nodes outside 0 … 59"):
        gst.sparsify(broken, "random", sparsity=0.5, **QUICK)


def test_on_the_command_line(call):
    words = ("run", "--task", "links", "--dataset", "digits:nodes=120", "--method", "random", "--sparsity", 0.5)
    quick = ("--hidden", 8, "--anchor-epochs", 2, "--sparse-epochs", 2, "--no-cache", "--quiet")
    code, out, _ = call(*words, *quick, "--decoder", "mlp", "--json")
    assert code == 0 and '"task": "links"' in out and '"hits@50"' in out
    code, out, _ = call(*words, *quick)
    assert code == 0 and "Hits@50" in out
    code, _, err = call(*words[:1], *words[3:], *quick, "--decoder", "mlp")
    assert code == 2 and "--decoder would have no effect" in err
