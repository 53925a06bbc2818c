"""Losses, safe sparsities and ranks, against numpy, scipy and plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from gst.base.stats import Stat
from gst.lab.report.figures import frontier, relative_errors
from gst.lab.report.summary import Panel, Study, most_comparable
from gst.lab.report.svg import Axis, round_ticks
from report_rows import DENSE, LOSS, SPARSITIES, row, spectrum, study_rows

CORA = Panel("Cora", "gcn", "quick")
numbers = st.floats(-1e6, 1e6)


def test_scores_losses_and_dense_line():
    study = Study(study_rows())
    assert study.dense(CORA) == DENSE
    for method, full in LOSS.items():
        for s in SPARSITIES:
            assert study.score(CORA, method, s, "test").mean == pytest.approx(82 - full * s)
            assert study.loss(CORA, method, s, "").mean == pytest.approx(-full * s)
            assert study.loss(CORA, method, s, "").sd == pytest.approx(0, abs=1e-9)  # the seeds cancel


def test_profiles_variations_and_experiments_are_never_mixed():
    rows = [row(seed=0), row(seed=0, experiment="rq3", key="again"), row(seed=0, profile="paper", loss=50.0, key="p")]
    rows.append(row(seed=0, variation="tune=False", loss=70.0))
    study = Study(rows)
    assert study.score(CORA, "gst", 0.4, "test") == Stat(81.0 - 1.6, None, 1)  # once, though two experiments have it
    assert [panel.profile for panel in study.panels] == ["quick", "paper"]


def test_moved_edges_do_not_change_the_dense_line():
    moved = row(seed=0, variation="relocated=0.4", dense_test=50.0)
    assert Study([moved, row(seed=0)]).dense(CORA) == {0: 81.0}


@pytest.mark.parametrize("loss", [0.0, 0.6, 1.6, 2.6, 4.9, 60.0])
def test_safe_sparsity_is_that_of_a_loop(loss):
    grid = (0.1, 0.2, 0.3, 0.5, 0.9)
    study = Study(row(sparsity=s, seed=seed, loss=loss) for s in grid for seed in DENSE)
    found = study.safe_sparsity(CORA, "gst", "")
    safe = [s for s in grid if np.mean([d - loss * s for d in DENSE.values()]) >= 82 - 0.5 - 1e-9]
    assert found.sparsity == (max(safe) if safe else None)
    if safe:
        assert found.score.mean == pytest.approx(82 - loss * max(safe)) and found.holds_on_test
        assert found.verdict == "confirmed"  # the same loss for every seed
        assert len(found.rows) == len(DENSE)


def test_validation_decides_and_test_judges():
    study = Study([row(sparsity=0.2, val=82.0, test=10.0), row(sparsity=0.4, val=10.0, test=81.0)])
    found = study.safe_sparsity(CORA, "gst", "")
    assert (found.sparsity, found.verdict, found.holds_on_test) == (0.2, "refuted", False)
    assert found.score.mean == 10.0 and found.loss.mean == 10.0 - 81.0


def test_ranks_are_those_of_scipy():
    rng = np.random.default_rng(0)
    methods, scores = list(LOSS), {}
    rows = []
    for s in SPARSITIES:
        for m in methods:
            scores[s, m] = float(rng.integers(50, 54))  # ties too
            rows.append(row(method=m, sparsity=s, test=scores[s, m]))
    ranks = Study(rows).ranks("")
    table = np.array([rankdata([-scores[s, m] for m in methods]) for s in SPARSITIES])
    for m, mean in zip(methods, table.mean(0), strict=True):
        assert ranks[m].mean == pytest.approx(mean)


def test_comparisons_are_as_many_as_possible():
    many, few = {"a": 1.0, "b": 2.0, "c": 0.0}, {"a": 1.0, "b": 2.0}
    assert most_comparable([few, many, few, few]) == ["a", "b"]  # 2 methods × 4 tables, not 3 × 1
    assert most_comparable([many, many, few]) == ["a", "b", "c"] and most_comparable([]) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_the_frontier_is_what_nothing_beats(points):
    best = frontier(points)
    for n, (x, y) in enumerate(points):
        beaten = any((a <= x and b >= y) and (a, b) != (x, y) for a, b in points)
        assert (points[n] in [points[b] for b in best]) == (not beaten)


@given(numbers, st.floats(1e-3, 1e6))
def test_ticks_are_inside_and_evenly_spaced(low, width):
    ticks = round_ticks(low, low + width)
    assert all(low - 1e-6 <= t <= low + width + 1e-6 for t in ticks) and len(ticks) <= 7
    axis = Axis.around("x", [low, low + width])
    assert 0 < axis.position(low, 0, 1) < axis.position(low + width, 0, 1) < 1


def test_relative_errors_of_odd_facts():
    assert relative_errors(spectrum(0.25), "top") == pytest.approx([0.25] * 40)
    lists = ("no list", [1.0, None], [[1.0]], [0.0], [float("nan")], {"a": 1}, [1.0, 2.0, 3.0])
    for odd in lists:
        assert relative_errors({"top": odd, "top_sparse": [1.0] * 2}, "top").size == 0
    assert relative_errors({"top": [2, 4], "top_sparse": [1, 4]}, "top").tolist() == [0.5, 0.0]


def test_a_lucky_seed_raises_no_point():
    """Seed 2 alone is a point above the mean of all; only its difference to dense counts."""
    rows = [row(method="dspar", sparsity=s, seed=seed) for s in (0.2, 0.4) for seed in (0, 1, 2)]
    rows += [row(method="random", sparsity=s, seed=2, loss=11.0) for s in (0.2, 0.4)]  # as much as dspar
    study = Study(rows)
    panel = study.panels[0]
    for s in (0.2, 0.4):
        losses = [study.loss(panel, method, s, "") for method in ("dspar", "random")]
        assert study.height(panel, losses[0]) == pytest.approx(study.score(panel, "dspar", s, "test").mean)
        assert study.height(panel, losses[1]) == pytest.approx(study.height(panel, losses[0]))
    assert {rank.mean for rank in study.ranks("").values()} == {1.5}
    safe = [study.safe_sparsity(panel, method, "").sparsity for method in ("random", "dspar")]
    assert safe[0] == safe[1]
