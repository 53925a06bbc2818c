"""What a cell measures, against the same things done by hand."""

import pytest
import torch

import gst
from gst.graph.edgeset import EdgeSet
from gst.lab.bench.cells import Cell
from gst.lab.bench.work import fresh_scores, kept_edges, run_cell, warm_scores
from gst.methods import GST, METHODS
from gst.storage.cache import Cache
from gst.train.run import Problem

NAME = "synthetic:nodes=120,degree=6,features=8"
SETTINGS = {"hidden": 8, "lr": 0.02, "anchor_epochs": 6, "sparse_epochs": 6, "interval": 3}
OPTIONS = {
    "ugs": {"prune_ratio": 0.3, "round_epochs": 2},
    "wd-glt": {"prune_ratio": 0.3, "round_epochs": 2, "sample": 16},
    "mgspar": {"prune_ratio": 0.3, "inner_steps": 2, "meta_epochs": 1},
}


def cell(method="gst", **words):
    named = {"recipe": "paper" if method == "gst" else "", "sparsity": 0.4, "seed": 1, "settings": SETTINGS}
    named["options"] = OPTIONS.get(method, {})
    return Cell("rq1", "smoke", NAME, "gcn", method, **{**named, **words})


@pytest.mark.parametrize("method", METHODS)
def test_both_accuracies_are_those_of_the_protocol(method):
    row = run_cell(cell(method))
    by_hand = gst.sparsify(
        gst.load(NAME), method, sparsity=0.4, seed=1, dense=True, retrain=True, cache=False, **SETTINGS,
        **OPTIONS.get(method, {}),
    ).metrics  # fmt: skip
    assert row.status == "done", row.reason
    for name in ("edges_total", "edges_kept", "val", "test", "retrain_val", "retrain_test", "dense_val", "dense_test"):
        assert getattr(row, name) == by_hand[name], name
    assert row.warm_test is not None
    assert min(row.dense_ms, row.sparse_ms, row.seconds) > 0


def test_warm_training_goes_on_from_the_dense_weights(tmp_path):
    data = gst.load(NAME)
    problem = Problem(data, cache=Cache(tmp_path), seed=1, **SETTINGS)
    whole = torch.ones(problem.edges.num_edges, dtype=torch.bool)
    first = warm_scores(problem, whole)
    assert warm_scores(problem, whole) == first  # from the cache
    assert warm_scores(Problem(data, cache=False, seed=1, **SETTINGS), whole) == first
    still = Problem(data, cache=False, seed=1, **{**SETTINGS, "lr": 1e-12})
    network = still.network()  # nothing learned: the weights are those it began with
    none = torch.zeros_like(whole)
    untrained = still.trainer(network).evaluate(still.edges.subset(none), "test")
    assert warm_scores(still, none)["warm_test"] == untrained


def test_a_graph_that_two_methods_find_is_trained_on_once(tmp_path, monkeypatch):
    problem = Problem(gst.load(NAME), cache=Cache(tmp_path), seed=1, **SETTINGS)
    trained, train_fresh = [], Problem.train_fresh
    monkeypatch.setattr(Problem, "train_fresh", lambda *words: trained.append(words[1]) or train_fresh(*words))
    some = torch.arange(problem.edges.num_edges) % 3 > 0
    first = fresh_scores(problem, some)
    assert fresh_scores(problem, some.clone()) == first
    assert len(trained) == 1
    fresh_scores(problem, ~some)
    longer = {**SETTINGS, "sparse_epochs": 7}
    fresh_scores(Problem(gst.load(NAME), cache=Cache(tmp_path), seed=1, **longer), some)
    assert len(trained) == 3


def test_kept_edges_of_columns():
    data = gst.load(NAME)
    edges = EdgeSet.from_data(data)
    keep = torch.rand(edges.num_edges) < 0.5
    assert torch.equal(kept_edges(edges, edges.to_columns(keep, True)), keep)


def test_variations_reach_the_method():
    plain, never = run_cell(cell()), run_cell(cell(variation={"tune": False}))
    assert never.variation == "tune=False"
    by_hand = gst.sparsify(gst.load(NAME), sparsity=0.4, seed=1, tune=False, cache=False, **SETTINGS).metrics
    assert (never.val, never.test) == (by_hand["val"], by_hand["test"])
    moved = run_cell(cell(variation={"relocated": 0.4}))
    assert (moved.edges_total, moved.edges_kept) == (plain.edges_total, plain.edges_kept)
    assert moved.dense_test != plain.dense_test


def test_a_ticket_is_that_of_ugs_and_takes_another_graph():
    options = {"prune_ratio": 0.05, "weight_prune_ratio": 0.2, "round_epochs": 3}
    words = {"variation": {"rounds": 3}, "options": options, "sparsity": 0.1426}
    own, other = run_cell(cell("ugs", **words)), run_cell(cell("ugs+gst", **words))
    assert own.status == other.status == "done", own.reason + other.reason
    assert own.weight_sparsity == pytest.approx(1 - 0.8**3, abs=0.01)
    kept = own.edges_kept
    assert kept == other.edges_kept
    by_hand = gst.sparsify(gst.load(NAME), "ugs", keep=kept, seed=1, cache=False, **SETTINGS, **options)
    assert (own.val, own.test) == (by_hand.metrics["val"], by_hand.metrics["test"])
    weights = [p for p in by_hand.model.parameters() if p.dim() > 1]
    zeros = sum(int((p == 0).sum()) for p in weights) / sum(p.numel() for p in weights)
    assert zeros == pytest.approx(own.weight_sparsity)
    assert own.dense_test is not None


def test_a_ticket_with_another_graph_takes_that_of_the_paper(monkeypatch):
    """Whatever recipe is the default: settings that say nothing about the sparse phase do not ask for another."""
    asked = []
    fit = GST.fit_problem
    monkeypatch.setattr(
        GST, "fit_problem", lambda self, problem: asked.append(problem.settings.recipe) or fit(self, problem)
    )
    plain = {name: value for name, value in SETTINGS.items() if name != "interval"}
    options = {"prune_ratio": 0.05, "weight_prune_ratio": 0.2, "round_epochs": 2}
    row = run_cell(cell("ugs+gst", variation={"rounds": 2}, options=options, sparsity=0.0975, settings=plain))
    assert row.status == "done" and asked == ["paper"]


def test_spectra_come_along_when_asked():
    row = run_cell(cell("random", spectrum=True))
    assert 0 < row.spectrum_top <= 1
    assert 0 < row.spectrum_bottom <= 1
    assert len(row.facts["spectrum"]["top"]) == 119
    assert run_cell(cell("random")).spectrum_top is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"options": {"l1": -1}, "method": "ugs"}, "UGS: l1 = -1"),
        ({"settings": {**SETTINGS, "hidden": "wide"}}, "setting hidden = 'wide'"),
        ({"variation": {"rounds": "three"}, "options": {}}, "TypeError in work.py"),
    ],
)
def test_a_failure_has_its_reason(words, reason):
    row = run_cell(cell(**words))
    assert (row.status, row.test) == ("failed", None)
    assert reason in row.reason
    assert "\n" not in row.reason
