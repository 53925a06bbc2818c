"""Statistics against numpy, scipy and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gst.base.stats import Difference, Stat, difference, falling_fit, fit_losses, largest_safe, paired, verdict

numbers = st.floats(-1e6, 1e6)
losses = st.lists(st.integers(-30, 10).map(lambda n: n / 10), min_size=1, max_size=9)


@given(st.lists(numbers, min_size=1, max_size=9))
def test_mean_and_sample_deviation(values):
    stat = Stat.of([*values, None])
    assert stat.n == len(values) and stat.mean == pytest.approx(np.mean(values), abs=1e-6)
    if len(values) == 1:
        assert stat.sd is None
    else:
        assert stat.sd == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)


def test_texts():
    assert Stat(-1.26, 0.04, 3).text(2, sign=True) == "−1.26 ± 0.04"
    assert str(Difference(1.0, 0.5, 1.5)) == "+1.0 ± 0.5"


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_the_interval_is_that_of_a_t_test(confidence):
    values = [0.3, -1.2, 0.4, 0.9, -0.1]
    found = difference(values, confidence)
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(confidence)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert difference([0.7]) == Difference(0.7, None, None)


@given(st.lists(numbers, min_size=2, max_size=9))
def test_a_difference_is_certain_where_the_t_test_says_so(values):
    found = difference(values)
    with np.errstate(all="ignore"):
        p = scipy_stats.ttest_1samp(values, 0).pvalue
    if np.isfinite(p) and abs(p - 0.05) > 1e-6 and np.std(values) > 1e-6:
        assert found.certain == (p < 0.05)
    assert not Difference(-9.0).certain


@given(st.dictionaries(st.integers(0, 5), numbers), st.dictionaries(st.integers(0, 5), numbers))
def test_pairs_are_those_of_common_seeds(one, other):
    assert paired(one, other) == [one[seed] - other[seed] for seed in range(6) if seed in one and seed in other]


def pooled(values):
    """The falling curve by its definition: min over i ≤ k of max over j ≥ k of the mean of values i … j."""
    n = len(values)
    mean = lambda i, j: sum(values[i : j + 1]) / (j - i + 1)  # noqa: E731
    return [min(max(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)]


@given(st.lists(numbers, max_size=12))
def test_the_falling_curve_against_its_definition(values):
    assert falling_fit(values) == pytest.approx(pooled(values), abs=1e-6)


def test_the_lower_bound_decides_where_asked_to():
    values = np.random.default_rng(1).standard_normal(12).tolist()
    means = [Difference(v, v - 0.3, v + 0.3) for v in values]
    assert [fit for fit, _ in fit_losses(means, 0.5)] == pytest.approx(pooled(values))
    assert [within for _, within in fit_losses(means, 0.5)] == [fit >= -0.5 for fit in pooled(values)]
    assert [fit for fit, _ in fit_losses(means, 0.5, "bound")] == pytest.approx([v - 0.3 for v in pooled(values)])


@given(losses, st.sampled_from([0.0, 0.5, 1.0]))
def test_the_largest_safe_sparsity_is_that_of_brute_force(values, tolerance):
    curve = {(k + 1) / 10: Difference(value) for k, value in enumerate(values)}
    safe = [s for s, fit in zip(curve, pooled(values), strict=True) if fit >= -tolerance - 1e-9]
    assert largest_safe(dict(reversed(curve.items())), tolerance) == (max(safe) if safe else None)


def test_nothing_measured_is_nothing_safe():
    assert largest_safe({}) is None


def test_verdicts():
    assert verdict(Difference(0, -0.4, 0.4), 0.5) == "confirmed"
    assert verdict(Difference(0, -0.6, 0.6), 0.5) == "open"
    assert verdict(Difference(-2, -2.5, -1.5), 0.5) == "refuted"
    assert verdict(Difference(-0.6), 0.5) == "refuted" and verdict(Difference(-0.4), 0.5) == "confirmed"
