"""The search for the largest safe sparsity."""

import json
import math

import pytest
import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst import InputError
from gst.after import curve, search
from gst.after.search import Point, SafeSparsity, explore, judge
from gst.base.stats import Difference, difference

FEW = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 3, "cache": False}
UPDATES = {"interval": 1}
COARSE = {"seeds": 2, "step": 0.3, "precision": 0.2}


def point(sparsity, mean, half=None):
    val = Difference(mean) if half is None else Difference(mean, mean - half, mean + half)
    return Point(sparsity, 0, val, val, math.nan, False)


def searched(loss, step=0.1, precision=0.02, tolerance=0.5):
    """The largest safe sparsity of a known loss, the curve, and the sparsities in the order they were measured."""
    measured = []

    def measure(sparsity):
        measured.append(sparsity)
        return point(sparsity, -loss(sparsity))

    points = explore(measure, lambda points: judge(points, tolerance), step, precision)
    return max((p.sparsity for p in points if p.within), default=0.0), points, measured


@pytest.mark.parametrize("truth", [0.004, 0.03, 0.1, 0.37, 0.5, 0.61, 0.899, 0.95])
def test_a_clean_threshold_is_found_to_the_precision(truth):
    safe, points, measured = searched(lambda s: 0.0 if s <= truth else 5.0)
    assert safe <= truth < safe + 0.02 + 1e-9
    assert [p.sparsity for p in points] == sorted(p.sparsity for p in points) == sorted(measured)
    assert len(set(measured)) == len(measured)


def test_no_loss_at_all_and_loss_everywhere():
    assert searched(lambda s: 0.0)[0] >= 0.98
    safe, points, measured = searched(lambda s: 9.0)
    assert safe == 0 and measured[:2] == [0.1, 0.2] and min(measured) <= 0.02 and not any(p.within for p in points)


def test_the_grid_ends_after_two_misses_but_not_after_one():
    losses = {0.1: 0.0, 0.2: 0.9, 0.3: 0.0, 0.4: 0.0}
    safe, _, _ = searched(lambda s: losses.get(round(s, 2), 9.0), precision=0.1)
    assert safe == 0.4  # 0.2 is outvoted by 0.3 and 0.4
    measured = searched(lambda s: 9.0 if s > 0.35 else 0.0, precision=0.1)[2]
    assert measured == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_points_are_judged_on_the_falling_curve():
    points = judge([point(0.1, 0.0), point(0.2, -0.9), point(0.3, 0.1), point(0.4, -2.0)], 0.5)
    assert [p.fitted for p in points] == pytest.approx([0.0, -0.4, -0.4, -2.0])
    assert [p.within for p in points] == [True, True, True, False]
    bounds = judge([point(0.1, 0.0, half=0.3), point(0.2, -0.3, half=0.3)], 0.5, "bound")
    assert [p.within for p in bounds] == [True, False]


@pytest.mark.parametrize(
    ("method", "more"),
    [("deploy", {}), ("gst", UPDATES), ("random", {}), ("ugs", {"round_epochs": 2}), ("set", UPDATES)],
)
def test_rows_are_what_single_runs_measure(method, more):
    data = random_graph(nodes=40, edges=120)
    found = gst.search(data, method, tolerance=5.0, **COARSE, **FEW, **more)
    for p in found.curve:
        runs = [gst.sparsify(data, method, sparsity=p.sparsity, seed=s, dense=True, **FEW, **more) for s in (0, 1)]
        for part in ("val", "test"):
            differences = [run.metrics[part] - run.metrics[f"dense_{part}"] for run in runs]
            assert getattr(p, part) == difference(differences)
        assert p.edges_kept == runs[0].metrics["edges_kept"]
        if p.sparsity == found.sparsity:
            best = max(runs, key=lambda run: run.metrics["val"])
            assert torch.equal(found.result.edge_mask, best.edge_mask)
            assert found.result.metrics["val"] == best.metrics["val"]


def test_fresh_models_decide_on_request():
    data = random_graph(nodes=40, edges=120)
    found = gst.search(data, "gst", accuracy="fresh", tolerance=100, seeds=[3], step=0.5, precision=0.5, **FEW)
    run = gst.sparsify(data, "gst", sparsity=0.5, seed=3, dense=True, retrain=True, **FEW).metrics
    assert found.curve[0].val.mean == run["retrain_val"] - run["dense_val"] and found.accuracy == "fresh"
    assert found.result.metrics["retrain_test"] == run["retrain_test"]


def test_accuracy_auto_is_fresh_for_retrain():
    data = random_graph(nodes=40, edges=120)
    for method, more, accuracy in (("Retrain", {"turns": 0}, "fresh"), ("random", {}, "returned")):
        found = gst.search(data, method, tolerance=100, seeds=1, step=0.5, precision=0.5, **FEW, **more)
        assert found.accuracy == accuracy


def test_own_models_train_their_anchor_once_per_seed():
    seen = []
    data, model = random_graph(nodes=40, edges=120), GCN(5, 8, 2, 3)
    watch = lambda step: seen.append((step.phase, step.epoch))  # noqa: E731
    found = gst.search(
        data, "gst", model=model, tolerance=100, seeds=2, step=0.3, precision=0.5, callbacks=watch, **FEW
    )
    assert len(found.curve) == 3
    assert seen.count(("anchor", 1)) == seen.count(("dense", 1)) == 2  # one per seed, not one per run
    assert seen.count(("sparse", 1)) == 2 * 3 + 1  # and once more for the result


def test_no_edge_can_be_removed():
    data = random_graph(nodes=40, edges=120)
    found = gst.search(data, "random", tolerance=0, seeds=1, step=0.4, precision=0.4, **FEW)
    if found.verdict == "none":
        assert found.sparsity == 0 and found.result.metrics["edges_kept"] == found.result.metrics["edges_total"]
        assert found.point is None


def test_interrupted_and_continued(tmp_path):
    data = random_graph(nodes=40, edges=120)
    settings = {"method": "gst", **COARSE, **FEW, **UPDATES, "tolerance": 3.0}
    expected, trained = gst.search(data, **settings), []

    class CutError(Exception):
        pass

    def cut(step):
        trained.append(step)
        if len(trained) > 24:
            raise CutError

    for _ in range(30):
        trained.clear()
        try:
            found = gst.search(data, checkpoint=tmp_path, callbacks=cut, **settings)
            break
        except CutError:
            continue
    assert found.rows() == expected.rows() and found.sparsity == expected.sparsity
    assert torch.equal(found.result.scores, expected.result.scores)
    trained.clear()
    wider = gst.search(
        data, checkpoint=tmp_path, callbacks=trained.append, **{**settings, "tolerance": 4.0, "seeds": [0]}
    )
    assert wider.curve[0].val.mean == pytest.approx(wider.curve[0].val.mean)
    assert {step.phase for step in trained} <= {"sparse"}, "anchors and finished runs are at hand"
    with pytest.raises(InputError, match="holds a search with hidden = 8, not 4: choose another folder"):
        gst.search(data, checkpoint=tmp_path, **{**settings, "hidden": 4})


def test_bad_arguments_are_refused_before_any_work():
    data = random_graph()
    for bad, message in [
        ({"tolerance": -1}, "tolerance = -1"),
        ({"tolerance": "0.5"}, "tolerance is a str"),
        ({"tolerance": math.inf}, "tolerance = inf"),
        ({"step": 0}, "step = 0"),
        ({"step": 1e-300}, "step = 1e-300"),  # a grid without end
        ({"precision": 2}, "precision = 2"),
        ({"precision": 1e-300}, "precision = 1e-300"),
        ({"accuracy": "best"}, "auto, returned, fresh"),
        ({"accuracy": ["best"]}, "auto, returned, fresh"),
        ({"decision": "coin"}, "mean, bound"),
        ({"confidence": 1}, "confidence = 1"),
        ({"seeds": 0}, "seeds = 0"),
        ({"seeds": []}, "at least one"),
        ({"seeds": 10**12}, "seeds = 1000000000000"),
        ({"seeds": "5"}, "seeds is a str"),
        ({"seeds": 2.5}, "seeds is a float"),
        ({"seed": "one"}, "seed = 'one'"),
        ({"method": "magic"}, "unknown method"),
        ({"hiden": 3}, "unknown argument 'hiden'"),
    ]:
        with pytest.raises(InputError, match=message):
            gst.search(data, **bad)


def test_command_line(call, tmp_path):
    torch.save(random_graph(nodes=40, edges=120), tmp_path / "own.pt")
    command = ["search", "--dataset", tmp_path / "own.pt", "--seeds", 2, "--step", 0.3, "--precision", 0.3]
    command += ["--tolerance", 20, "--hidden", 8, "--anchor-epochs", 2, "--sparse-epochs", 3, "--out", tmp_path / "s"]
    code, out, _ = call(*command, "--quiet", "--json")
    summary = json.loads(out)
    assert code == 0 and summary["sparsity"] in [row["sparsity"] for row in summary["curve"]]
    assert (tmp_path / "s" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    lines = (tmp_path / "s" / "curve.csv").read_text().splitlines()
    assert len(lines) == 1 + len(summary["curve"]) and lines[0].startswith("sparsity,edges_kept,val_mean,val_low")
    saved = gst.Result.load(tmp_path / "s")
    assert saved.metrics["edges_kept"] == next(
        row["edges_kept"] for row in summary["curve"] if row["sparsity"] == summary["sparsity"]
    )
    code, out, _ = call(*command)
    assert code == 0 and "largest sparsity within 20 points" in out and "◀" in out
    assert max(map(len, out.splitlines()[: len(lines)])) <= 80
    code, _, err = call("search", "--dataset", tmp_path / "own.pt", "--step", 7)
    assert code == 2 and err == "gst: search: step = 7.0: a share from 0.0001 to below 1 is needed\n"


def test_strips_show_mean_interval_and_tolerance():
    points = [point(0.1, 0.0, 0.2), point(0.2, -1.0)]
    first, second = curve.strips(SafeSparsity(0.1, 0.5, points, "open", None, [0], "returned", "mean", 0.95))
    assert len(first) == len(second) == curve.WIDTH
    assert second.index("●") == 0 and second.count("┊") == first.count("┊") == 1
    assert first.index("┊") == second.index("┊") < first.index("●")
    assert curve.show(Difference(-0.25, -1.0, 0.5)) == "−0.2 [−1.0, +0.5]"


def test_api_is_public():
    assert gst.search is search.search
