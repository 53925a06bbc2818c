"""What a cell measures, against the same measurements by hand."""

import pytest
import torch

import gst
from gst.lab.bench.cells import Cell
from gst.lab.bench.models import fresh_scores, warm_scores
from gst.lab.bench.work import run_cell
from gst.methods import GST, METHODS
from gst.storage.cache import Cache
from gst.train.run import Run
from gst.train.settings import Training
from gst.train.trainer import Trainer

NAME = "synthetic:nodes=120,degree=6,features=8"
SETTINGS = {"hidden": 8, "lr": 0.02, "anchor_epochs": 6, "sparse_epochs": 6}
OPTIONS = {
    "gst": {"interval": 3},
    "retrain": {"turns": 1},
    "ugs": {"prune_ratio": 0.3, "round_epochs": 2},
    "wd-glt": {"prune_ratio": 0.3, "round_epochs": 2, "sample_size": 16},
    "mgspar": {"prune_ratio": 0.3, "inner_steps": 2, "meta_epochs": 1},
}


def cell(method="gst", **values):
    defaults = {"sparsity": 0.4, "seed": 1, "settings": SETTINGS, "options": OPTIONS.get(method, {})}
    return Cell("rq1", "smoke", NAME, "gcn", method, **{**defaults, **values})


def make_run(cache=False, **settings):
    return Run(gst.load(NAME), cache=cache, training=Training(seed=1, **{**SETTINGS, **settings}))


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_those_of_sparsify(method):
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


def test_warm_training_starts_from_the_dense_weights(tmp_path):
    run = make_run(Cache(tmp_path))
    everything = torch.ones(run.edges.num_edges, dtype=torch.bool)
    first = warm_scores(run, everything)
    assert warm_scores(run, everything) == first  # from the cache
    assert warm_scores(make_run(), everything) == first
    still = make_run(lr=1e-12)  # nothing is learned: the weights stay as they were initialised
    nothing = torch.zeros_like(everything)
    untrained = still.trainer(still.network()).evaluate(still.edges.subset(nothing), "test")
    assert warm_scores(still, nothing)["warm_test"] == untrained


def test_a_graph_that_two_methods_find_is_trained_on_once(tmp_path, monkeypatch):
    run = make_run(Cache(tmp_path))
    trained, train_fresh = [], Run.train_fresh
    monkeypatch.setattr(Run, "train_fresh", lambda *args: trained.append(args[1]) or train_fresh(*args))
    some = torch.arange(run.edges.num_edges) % 3 > 0
    first = fresh_scores(run, some)
    assert fresh_scores(run, some.clone()) == first
    assert len(trained) == 1
    fresh_scores(run, ~some)
    fresh_scores(make_run(Cache(tmp_path), sparse_epochs=7), some)
    assert len(trained) == 3


def dense_model():
    run = make_run()
    network = run.network()
    network.module.load_state_dict(run.dense.model)
    return run, network.module.eval()


@pytest.mark.parametrize("method", ["scan", "gst"])
def test_the_frozen_model_is_the_dense_one_on_the_sparse_graph(method):
    row = run_cell(cell(method))
    graph = gst.sparsify(gst.load(NAME), method, sparsity=0.4, seed=1, cache=False, **SETTINGS,
                         **OPTIONS.get(method, {})).graph  # fmt: skip
    run, model = dense_model()
    with torch.no_grad():
        right = model(graph.x, graph.edge_index).argmax(1) == graph.y
    assert row.frozen_test == pytest.approx(100 * float(right[graph.test_mask].double().mean()))
    assert row.frozen_val == pytest.approx(100 * float(right[graph.val_mask].double().mean()))
    assert run.dense.test == row.dense_test


def test_a_frozen_row_alone_trains_nothing_on_the_sparse_graph(monkeypatch):
    trained, train_fresh = [], Run.train_fresh
    monkeypatch.setattr(Run, "train_fresh", lambda *args: trained.append(args[1]) or train_fresh(*args))
    row = run_cell(cell("scan", models=(), settings={**SETTINGS, "sparse_epochs": 5}))
    assert (
        trained == [None]
        and row.retrain_test is None
        and row.edges_kept == row.edges_total - round(0.4 * row.edges_total)
    )


def test_a_warm_start_sees_no_edge_of_hidden_nodes(monkeypatch):
    run = Run(gst.load(NAME), cache=False, training=Training(seed=1, inductive=True, **SETTINGS))
    seen, step = [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self, edges: seen.append(edges) or step(self, edges))
    keep = torch.arange(run.edges.num_edges) % 2 == 0
    warm_scores(run, keep)
    hidden = torch.cat([run.task.val, run.task.test])
    assert len(seen) == 12 and not any(bool(torch.isin(edges.pairs, hidden).any()) for edges in seen)
    assert seen[0].num_edges == run.view.num_edges and seen[-1].num_edges == int((keep & run.seen).sum())


@pytest.mark.parametrize(("backbone", "batch"), [("sage", "neighbors"), ("cluster-gcn", "clusters")])
@pytest.mark.parametrize("method", ["gst", "k-neighbor", "deploy", "edge-free"])
def test_nodes_unseen_in_training(method, backbone, batch):
    """Every model of a row, in the batches of the experiment ``real``."""
    settings = {**SETTINGS, "inductive": True, "batch": batch, "clusters": 3, "clusters_per_batch": 1}
    row = run_cell(Cell("real", "smoke", NAME, backbone, method, 0.4, 1, settings=settings,
                        options=OPTIONS.get(method, {})))  # fmt: skip
    assert row.status == "done", row.reason
    assert None not in (row.frozen_val, row.frozen_test, row.warm_test, row.retrain_test, row.dense_test)


def test_without_edges_the_dense_model_has_only_the_features():
    row = run_cell(cell("edge-free", sparsity=1.0))
    run, model = dense_model()
    data = run.data
    with torch.no_grad():
        right = model(data.x, data.edge_index[:, :0]).argmax(1) == data.y
    assert row.frozen_test == pytest.approx(100 * float(right[data.test_mask].double().mean()))
    assert row.edges_kept == 0 and row.retrain_test is not None and row.warm_test is not None
    fresh = run.train_fresh(torch.zeros(run.edges.num_edges, dtype=torch.bool), "retrain")[1]
    assert row.retrain_test == fresh["retrain_test"]


def test_the_ensemble_is_the_mean_of_five_dense_models():
    row = run_cell(cell("ensemble", sparsity=0.0))
    assert row.edges_kept == row.edges_total and row.test is not None and 0 <= row.agreement <= 1
    assert row.frozen_test is None and row.retrain_test is None


def test_drop_edge_with_nothing_dropped_is_the_dense_model():
    nothing, half = run_cell(cell("drop-edge", sparsity=0.0)), run_cell(cell("drop-edge", sparsity=0.5))
    assert (nothing.val, nothing.test) == (nothing.dense_val, nothing.dense_test)
    assert half.edges_kept == half.edges_total and half.test != nothing.test


def test_a_split_reaches_the_data():
    row = run_cell(Cell("rq1", "smoke", "digits:nodes=300", "gcn", "scan", 0.4, 1, settings=SETTINGS, split="random:3"))
    run = Run(gst.load("digits:nodes=300", split="random:3"), cache=False, training=Training(seed=1, **SETTINGS))
    assert row.split == "random:3" and row.dense_test == run.dense.test


def test_variations_reach_the_method():
    plain, never = run_cell(cell()), run_cell(cell(variation={"tune": False}))
    assert never.variation == "tune=False"
    by_hand = gst.sparsify(
        gst.load(NAME), "gst", sparsity=0.4, seed=1, tune=False, cache=False, **SETTINGS, **OPTIONS["gst"]
    ).metrics
    assert (never.val, never.test) == (by_hand["val"], by_hand["test"])
    moved = run_cell(cell(variation={"relocated": 0.4}))
    assert (moved.edges_total, moved.edges_kept) == (plain.edges_total, plain.edges_kept)
    assert moved.dense_test != plain.dense_test


def test_a_ticket_is_that_of_ugs_and_takes_another_graph():
    options = {"prune_ratio": 0.05, "weight_prune_ratio": 0.2, "round_epochs": 3}
    values = {"variation": {"rounds": 3}, "options": options, "sparsity": 0.1426}
    own, other = run_cell(cell("ugs", **values)), run_cell(cell("ugs+gst", **values))
    assert own.status == other.status == "done", own.reason + other.reason
    assert own.weight_sparsity == pytest.approx(1 - 0.8**3, abs=0.01)
    assert own.edges_kept == other.edges_kept
    by_hand = gst.sparsify(gst.load(NAME), "ugs", keep=own.edges_kept, seed=1, cache=False, **SETTINGS, **options)
    assert (own.val, own.test) == (by_hand.metrics["val"], by_hand.metrics["test"])
    weights = [p for p in by_hand.model.parameters() if p.dim() > 1]
    zeros = sum(int((p == 0).sum()) for p in weights) / sum(p.numel() for p in weights)
    assert zeros == pytest.approx(own.weight_sparsity)
    assert own.dense_test is not None


def test_a_ticket_with_another_graph_takes_that_of_gst(monkeypatch):
    estimators, fit_run = [], GST.fit_run
    monkeypatch.setattr(GST, "fit_run", lambda self, run: estimators.append(self) or fit_run(self, run))
    options = {"prune_ratio": 0.05, "weight_prune_ratio": 0.2, "round_epochs": 2, "interval": 3}
    row = run_cell(cell("ugs+gst", variation={"rounds": 2}, options=options, sparsity=0.0975))
    assert row.status == "done", row.reason
    (estimator,) = estimators
    assert (estimator.interval, estimator.keep) == (3, row.edges_kept)


def test_spectra_on_request():
    row = run_cell(cell("random", spectrum=True))
    assert 0 < row.spectrum_top <= 1
    assert 0 < row.spectrum_bottom <= 1
    assert len(row.facts["spectrum"]["top"]) == 119
    assert run_cell(cell("random")).spectrum_top is None


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"options": {"l1": -1}, "method": "ugs"}, "UGS: l1 = -1"),
        ({"settings": {**SETTINGS, "hidden": "wide"}}, "hidden = 'wide'"),
        ({"variation": {"rounds": "three"}, "options": {}}, "ValueError in work.py"),
    ],
)
def test_a_failure_has_its_reason(values, reason):
    row = run_cell(cell(**values))
    assert (row.status, row.test) == ("failed", None)
    assert reason in row.reason
    assert "\n" not in row.reason
