"""Means, differences, limits and ranks, against numpy, scipy and plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from gst.lab.report.figures import frontier, relative_errors
from gst.lab.report.summary import Panel, Stat, Study, certain, paired, widest
from gst.lab.report.svg import Axis, round_ticks
from report_rows import DENSE, LOSS, SPARSITIES, row, spectrum, study_rows

CORA = Panel("Cora", "gcn", "quick")
numbers = st.floats(-1e6, 1e6)


@given(st.lists(numbers, min_size=1, max_size=9))
def test_stat_is_that_of_numpy(values):
    stat = Stat.of([*values, None])
    assert stat.n == len(values) and stat.mean == pytest.approx(np.mean(values), abs=1e-6)
    if len(values) == 1:
        assert stat.sd is None
    else:
        assert stat.sd == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)


@given(st.dictionaries(st.integers(0, 5), numbers), st.dictionaries(st.integers(0, 5), numbers))
def test_paired_differences_use_common_seeds_alone(one, other):
    common = sorted(one.keys() & other.keys())
    found = paired(one, other)
    assert (found is None) == (not common)
    if found is not None:
        assert found.n == len(common)
        assert found.mean == pytest.approx(np.mean([one[s] - other[s] for s in common]), abs=1e-6)


def test_a_difference_is_certain_beyond_two_standard_errors():
    assert certain(Stat(-1.2, 1.0, 4)) and not certain(Stat(-0.9, 1.0, 4)) and not certain(Stat(-9.0, None, 1))


def test_scores_losses_and_dense_line():
    study = Study(study_rows())
    assert study.dense(CORA) == DENSE
    for method, full in LOSS.items():
        series = "gst/paper" if method == "gst" else method
        for s in SPARSITIES:
            assert study.score(CORA, series, s, "test").mean == pytest.approx(82 - full * s)
            assert study.loss(CORA, series, s, "").mean == pytest.approx(-full * s)
            assert study.loss(CORA, series, s, "").sd == pytest.approx(0, abs=1e-9)  # the seeds cancel


def test_profiles_variations_and_experiments_are_never_mixed():
    rows = [row(seed=0), row(seed=0, experiment="rq3", key="again"), row(seed=0, profile="paper", loss=50.0, key="p")]
    rows.append(row(seed=0, variation="tune=False", loss=70.0))
    study = Study(rows)
    assert study.score(CORA, "gst/paper", 0.4, "test") == Stat(
        81.0 - 1.6, None, 1
    )  # once, though two experiments have it
    assert [panel.profile for panel in study.panels] == ["quick", "paper"]


def test_moved_edges_do_not_change_the_dense_line():
    moved = row(seed=0, variation="relocated=0.4", dense_test=50.0)
    assert Study([moved, row(seed=0)]).dense(CORA) == {0: 81.0}


@pytest.mark.parametrize("loss", [0.0, 1.6, 2.6, 4.9, 60.0])
def test_extreme_sparsity_is_that_of_a_loop(loss):
    grid = (0.1, 0.2, 0.3, 0.5, 0.9)
    study = Study(row(sparsity=s, seed=seed, loss=loss) for s in grid for seed in DENSE)
    found = study.extreme(CORA, "gst/paper", "")
    fine = [s for s in grid if np.mean([d - loss * s for d in DENSE.values()]) >= 82 - 1]
    assert found.by_test == found.by_val == found.by_both == (max(fine) if fine else None)
    if fine:
        assert found.test.mean == pytest.approx(82 - loss * max(fine))


def test_extreme_sparsity_by_validation_does_not_see_the_test_set():
    study = Study([row(sparsity=0.2, val=82.0, test=10.0), row(sparsity=0.4, val=10.0, test=81.0)])
    found = study.extreme(CORA, "gst/paper", "")
    assert (found.by_val, found.by_test, found.by_both) == (0.2, 0.4, None)
    assert found.test.mean == 10.0


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
        assert ranks["gst/paper" if m == "gst" else m].mean == pytest.approx(mean)


def test_comparisons_are_as_many_as_possible():
    many, few = {"a": 1.0, "b": 2.0, "c": 0.0}, {"a": 1.0, "b": 2.0}
    assert widest([few, many, few, few]) == ["a", "b"]  # 2 methods × 4 tables, not 3 × 1
    assert widest([many, many, few]) == ["a", "b", "c"] and widest([]) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_frontier_is_what_nothing_beats(points):
    best = frontier(points)
    for n, (x, y) in enumerate(points):
        beaten = any((a <= x and b >= y) and (a, b) != (x, y) for a, b in points)
        assert (points[n] in [points[b] for b in best]) == (not beaten)


@given(numbers, st.floats(1e-3, 1e6))
def test_ticks_are_inside_and_evenly_spaced(low, width):
    ticks = round_ticks(low, low + width)
    assert all(low - 1e-6 <= t <= low + width + 1e-6 for t in ticks) and len(ticks) <= 7
    axis = Axis.around("x", [low, low + width])
    assert 0 < axis.at(low, 0, 1) < axis.at(low + width, 0, 1) < 1


def test_relative_errors_of_odd_facts():
    assert relative_errors(spectrum(0.25), "top") == pytest.approx([0.25] * 40)
    lists = ("no list", [1.0, None], [[1.0]], [0.0], [float("nan")], {"a": 1}, [1.0, 2.0, 3.0])
    for odd in lists:
        assert relative_errors({"top": odd, "top_sparse": [1.0] * 2}, "top").size == 0
    assert relative_errors({"top": [2, 4], "top_sparse": [1, 4]}, "top").tolist() == [0.5, 0.0]


def test_a_lucky_seed_lifts_nothing():
    """Seed 2 alone is a point better than the mean of all; what it loses is what counts."""
    rows = [row(method="dspar", sparsity=s, seed=seed) for s in (0.2, 0.4) for seed in (0, 1, 2)]
    rows += [row(method="random", sparsity=s, seed=2, loss=11.0) for s in (0.2, 0.4)]  # as much as dspar
    study = Study(rows)
    panel = study.panels[0]
    for s in (0.2, 0.4):
        losses = [study.loss(panel, method, s, "") for method in ("dspar", "random")]
        assert study.height(panel, losses[0]) == pytest.approx(study.score(panel, "dspar", s, "test").mean)
        assert study.height(panel, losses[1]) == pytest.approx(study.height(panel, losses[0]))
    assert {rank.mean for rank in study.ranks("").values()} == {1.5}
    assert study.extreme(panel, "random", "").by_test == study.extreme(panel, "dspar", "").by_test
