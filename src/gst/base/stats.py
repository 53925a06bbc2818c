"""Statistics over seeds: means, deviations, paired differences, and the largest sparsity that loses nothing."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import isotonic_regression
from scipy.special import stdtrit

Decision = Literal["mean", "bound"]
TOLERANCE = 0.5  # points: a smaller loss counts as none
CONFIDENCE = 0.95  # of two-sided t intervals
_ROUNDING = 1e-9  # points


@dataclass(frozen=True)
class Stat:
    """Mean and sample standard deviation.

    >>> print(Stat.of([80.0, 82.0]), Stat.of([80.0]), Stat.of([]))
    81.0 ± 1.4 80.0 None
    """

    mean: float
    sd: float | None  # None: one value has no deviation
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Stat | None":
        """Of the values that are not None; None if there are none."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None, len(known))

    def __str__(self) -> str:
        return self.text()

    def text(self, digits: int = 1, sign: bool = False) -> str:
        """``mean ± sd``, with a typographic minus."""
        return _text(self.mean, self.sd, digits, sign)


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences and its t interval.

    >>> print(Difference(-1.25, -2.0, -0.5), Difference(0.3))
    −1.2 ± 0.8 +0.3
    """

    mean: float
    low: float | None = None  # None: one pair has no interval
    high: float | None = None

    def __str__(self) -> str:
        """The mean with its sign, ± half the width of the interval."""
        return _text(self.mean, None if self.high is None else self.high - self.mean, 1, sign=True)

    @property
    def certain(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def _text(mean: float, spread: float | None, digits: int, sign: bool) -> str:
    text = f"{mean:{'+' if sign else ''}.{digits}f}".replace("-", "−")
    return text if spread is None else f"{text} ± {spread:.{digits}f}"


def difference(values: Iterable[float], confidence: float = CONFIDENCE) -> Difference:
    """Mean and two-sided t interval of paired differences, at least one.

    >>> loss = difference([-1.0, 0.0, 1.0])
    >>> loss.mean, round(loss.low, 3), round(loss.high, 3)
    (0.0, -2.484, 2.484)
    """
    pairs = list(values)
    mean = statistics.fmean(pairs)
    if len(pairs) < 2:
        return Difference(mean)
    half = float(stdtrit(len(pairs) - 1, (1 + confidence) / 2)) * statistics.stdev(pairs) / math.sqrt(len(pairs))
    return Difference(mean, mean - half, mean + half)


def paired(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """``one − other`` for every seed that both have.

    >>> paired({0: 80.0, 1: 81.0, 2: 7.0}, {0: 82.0, 1: 82.0})
    [-2.0, -1.0]
    """
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


def falling_fit(values: Sequence[float]) -> list[float]:
    """The nearest non-increasing sequence (isotonic regression): neighbours that rise are replaced by their mean.

    >>> falling_fit([3.0, 1.0, 2.0])
    [3.0, 1.5, 1.5]
    """
    return [float(value) for value in isotonic_regression(values, increasing=False).x] if len(values) else []


def fit_losses(
    differences: Sequence[Difference], tolerance: float = TOLERANCE, decision: Decision = "mean"
) -> list[tuple[float, bool]]:
    """Of differences to dense by rising sparsity: each on the falling curve, and whether it is within the tolerance.

    Removing more edges cannot truly help, so points that contradict each other are averaged. ``decision`` says what has
    to be within the tolerance: the mean, or the lower bound of its interval.
    """
    values = [d.mean if decision == "mean" or d.low is None else d.low for d in differences]
    return [(value, value >= -tolerance - _ROUNDING) for value in falling_fit(values)]


def largest_safe(
    curve: Mapping[float, Difference], tolerance: float = TOLERANCE, decision: Decision = "mean"
) -> float | None:
    """The largest sparsity of a curve of differences to dense that is within the tolerance; None: none is.

    >>> largest_safe({0.2: Difference(0.1), 0.4: Difference(-0.8), 0.6: Difference(0.0), 0.8: Difference(-4.0)})
    0.6
    """
    sparsities = sorted(curve)
    fitted = fit_losses([curve[sparsity] for sparsity in sparsities], tolerance, decision)
    return max((s for s, (_, within) in zip(sparsities, fitted, strict=True) if within), default=None)


def verdict(test: Difference, tolerance: float = TOLERANCE) -> str:
    """Whether all of the interval is within the tolerance ("confirmed"), none of it ("refuted") or a part ("open")."""
    low, high = (test.mean if end is None else end for end in (test.low, test.high))
    return "confirmed" if low >= -tolerance else "refuted" if high < -tolerance else "open"
