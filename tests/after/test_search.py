"""The search for the largest safe sparsity."""

import json
import math

import pytest
import torch
from scipy import stats
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst import InputError
from gst.after import curve, search
from gst.after.search import Difference, Extreme, Point, difference, explore, judge, verdict_of

FEW = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 3, "interval": 1, "cache": False}
COARSE = {"seeds": 2, "step": 0.3, "precision": 0.2}


def point(sparsity, mean, half=None):
    val = Difference(mean) if half is None else Difference(mean, mean - half, mean + half)
    return Point(sparsity, 0, val, val, math.nan, False)


def searched(loss, step=0.1, precision=0.02, tolerance=0.5):
    """The curve for a known loss, and the order in which it was asked for."""
    asked = []

    def measure(sparsity):
        asked.append(sparsity)
        return point(sparsity, -loss(sparsity))

    found = explore(measure, lambda points: judge(points, tolerance), step, precision)
    return max((p.sparsity for p in found if p.within), default=0.0), found, asked


@pytest.mark.parametrize("truth", [0.004, 0.03, 0.1, 0.37, 0.5, 0.61, 0.899, 0.95])
def test_a_clean_threshold_is_found_to_the_precision(truth):
    chosen, curve_, asked = searched(lambda s: 0.0 if s <= truth else 5.0)
    assert chosen <= truth < chosen + 0.02 + 1e-9
    assert [p.sparsity for p in curve_] == sorted(p.sparsity for p in curve_) == sorted(asked)
    assert len(set(asked)) == len(asked)


def test_no_loss_at_all_and_loss_everywhere():
    assert searched(lambda s: 0.0)[0] >= 0.98
    chosen, curve_, asked = searched(lambda s: 9.0)
    assert chosen == 0 and asked[:2] == [0.1, 0.2] and min(asked) <= 0.02 and not any(p.within for p in curve_)


def test_the_grid_ends_after_two_misses_but_not_after_one():
    losses = {0.1: 0.0, 0.2: 0.9, 0.3: 0.0, 0.4: 0.0}
    chosen, _, _ = searched(lambda s: losses.get(round(s, 2), 9.0), precision=0.1)
    assert chosen == 0.4  # 0.2 is outvoted by 0.3 and 0.4
    asked = searched(lambda s: 9.0 if s > 0.35 else 0.0, precision=0.1)[2]
    assert asked == [0.1, 0.2, 0.3, 0.4, 0.5]


def pooled(values):
    """The falling curve by its definition: min over i ≤ k of max over j ≥ k of the mean of values i … j."""
    n = len(values)
    mean = lambda i, j: sum(values[i : j + 1]) / (j - i + 1)  # noqa: E731
    return [min(max(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)]


def test_the_falling_curve_against_its_definition():
    values = torch.randn(12, generator=torch.Generator().manual_seed(1)).tolist()
    found = judge([point(k / 20, v) for k, v in enumerate(values)], 0.5)
    assert [p.fitted for p in found] == pytest.approx(pooled(values))
    assert [p.within for p in found] == [v >= -0.5 for v in pooled(values)]
    bounds = judge([point(k / 20, v, 0.3) for k, v in enumerate(values)], 0.5, "bound")
    assert [p.fitted for p in bounds] == pytest.approx([v - 0.3 for v in pooled(values)])


def test_intervals_are_those_of_the_paired_t_test():
    values = [0.3, -0.8, 0.1, -0.4, 0.6]
    found, wanted = difference(values, 0.9), stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
    assert difference([0.7]) == Difference(0.7, None, None)


def test_verdicts():
    assert verdict_of(Difference(0, -0.4, 0.4), 0.5) == "confirmed"
    assert verdict_of(Difference(0, -0.6, 0.6), 0.5) == "open"
    assert verdict_of(Difference(-2, -2.5, -1.5), 0.5) == "refuted"
    assert verdict_of(Difference(-0.6), 0.5) == "refuted" and verdict_of(Difference(-0.4), 0.5) == "confirmed"


@pytest.mark.parametrize(("method", "more"), [("gst", {}), ("random", {}), ("ugs", {"round_epochs": 2}), ("set", {})])
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


def test_fresh_models_decide_where_asked_to():
    data = random_graph(nodes=40, edges=120)
    found = gst.search(data, accuracy="fresh", tolerance=100, seeds=[3], step=0.5, precision=0.5, **FEW)
    run = gst.sparsify(data, sparsity=0.5, seed=3, dense=True, retrain=True, **FEW).metrics
    assert found.curve[0].val.mean == run["retrain_val"] - run["dense_val"] and found.accuracy == "fresh"
    assert found.result.metrics["retrain_test"] == run["retrain_test"]


def test_own_models_train_their_anchor_once_a_seed():
    seen = []
    data, model = random_graph(nodes=40, edges=120), GCN(5, 8, 2, 3)
    watch = lambda step: seen.append((step.phase, step.epoch))  # noqa: E731
    found = gst.search(data, model=model, tolerance=100, seeds=2, step=0.3, precision=0.5, watch=watch, **FEW)
    assert len(found.curve) == 3
    assert seen.count(("anchor", 1)) == seen.count(("dense", 1)) == 2  # one a seed, not one a run
    assert seen.count(("sparse", 1)) == 2 * 3 + 1  # and once more for the result


def test_no_edge_may_go():
    data = random_graph(nodes=40, edges=120)
    found = gst.search(data, "random", tolerance=0, seeds=1, step=0.4, precision=0.4, **FEW)
    if found.verdict == "none":
        assert found.sparsity == 0 and found.result.metrics["edges_kept"] == found.result.metrics["edges_total"]
        assert found.point is None


def test_interrupted_and_taken_up_again(tmp_path):
    data = random_graph(nodes=40, edges=120)
    settings = {**COARSE, **FEW, "tolerance": 3.0}
    wanted, trained = gst.search(data, **settings), []

    class CutError(Exception):
        pass

    def cut(step):
        trained.append(step)
        if len(trained) > 24:
            raise CutError

    for _ in range(30):
        trained.clear()
        try:
            found = gst.search(data, checkpoint=tmp_path, watch=cut, **settings)
            break
        except CutError:
            continue
    assert found.rows() == wanted.rows() and found.sparsity == wanted.sparsity
    assert torch.equal(found.result.scores, wanted.result.scores)
    trained.clear()
    wider = gst.search(data, checkpoint=tmp_path, watch=trained.append, **{**settings, "tolerance": 4.0, "seeds": [0]})
    assert wider.curve[0].val.mean == pytest.approx(wider.curve[0].val.mean)
    assert {step.phase for step in trained} <= {"sparse"}, "anchors and finished runs are at hand"
    with pytest.raises(InputError, match="holds a search with hidden = 8, not 4: choose another folder"):
        gst.search(data, checkpoint=tmp_path, **{**settings, "hidden": 4})


def test_bad_words_are_refused_before_any_work():
    data = random_graph()
    for bad, words in [
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
        ({"seed": "one"}, "setting seed"),
        ({"method": "magic"}, "unknown method"),
        ({"hiden": 3}, "unknown setting 'hiden'"),
    ]:
        with pytest.raises(InputError, match=words):
            gst.search(data, **bad)


def test_command_line(call, tmp_path):
    torch.save(random_graph(nodes=40, edges=120), tmp_path / "own.pt")
    words = ["search", "--dataset", tmp_path / "own.pt", "--seeds", 2, "--step", 0.3, "--precision", 0.3]
    words += ["--tolerance", 20, "--hidden", 8, "--anchor-epochs", 2, "--sparse-epochs", 3, "--out", tmp_path / "s"]
    code, out, _ = call(*words, "--quiet", "--json")
    told = json.loads(out)
    assert code == 0 and told["sparsity"] in [row["sparsity"] for row in told["curve"]]
    assert (tmp_path / "s" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    lines = (tmp_path / "s" / "curve.csv").read_text().splitlines()
    assert len(lines) == 1 + len(told["curve"]) and lines[0].startswith("sparsity,edges_kept,val_mean,val_low")
    saved = gst.Result.load(tmp_path / "s")
    assert saved.metrics["edges_kept"] == next(
        row["edges_kept"] for row in told["curve"] if row["sparsity"] == told["sparsity"]
    )
    code, out, _ = call(*words)
    assert code == 0 and "largest sparsity within 20 points" in out and "◀" in out
    assert max(map(len, out.splitlines()[: len(lines)])) <= 80
    code, _, err = call("search", "--dataset", tmp_path / "own.pt", "--step", 7)
    assert code == 2 and err == "gst: search: step = 7.0: a share from 0.0001 to below 1 is needed\n"


def test_strips_show_mean_interval_and_tolerance():
    points = [point(0.1, 0.0, 0.2), point(0.2, -1.0)]
    first, second = curve.strips(Extreme(0.1, 0.5, points, "open", None, [0], "returned", "mean", 0.95))
    assert len(first) == len(second) == curve.WIDTH
    assert second.index("●") == 0 and second.count("┊") == first.count("┊") == 1
    assert first.index("┊") == second.index("┊") < first.index("●")
    assert curve.show(Difference(-0.25, -1.0, 0.5)) == "−0.2 [−1.0, +0.5]"


def test_api_is_public():
    assert gst.search is search.search
