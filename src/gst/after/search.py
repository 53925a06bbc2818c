"""Extreme sparsity: how many edges may go before the answers get worse."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, get_args

from scipy.special import stdtrit
from torch import nn
from torch_geometric.data import Data

from gst.after.runs import opened_runs
from gst.api.result import Result
from gst.api.sparsify import warn_of_agreement
from gst.base.arguments import check_options
from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.base.text import shown
from gst.graph.edgeset import check_graph
from gst.storage.cache import Cache
from gst.storage.checkpoint import NoCheckpoint, opened
from gst.train.models import check_model
from gst.train.settings import make_settings
from gst.train.trainer import Watcher, silent

Accuracy = Literal["auto", "returned", "fresh"]
Decision = Literal["mean", "bound"]
MOST_SEEDS = 1000
FINEST = 1e-4  # step and precision
PATIENCE = 2  # grid points in a row that miss before the grid ends


@dataclass(frozen=True)
class Difference:
    """Sparse minus dense in points, paired by seed: the mean and its t interval."""

    mean: float
    low: float | None = None  # None: one seed has no interval
    high: float | None = None


@dataclass(frozen=True)
class Point:
    """One sparsity of the curve."""

    sparsity: float  # share removed, as asked for
    edges_kept: int
    val: Difference  # by which is decided
    test: Difference  # which is reported
    fitted: float  # val on the falling curve through all points
    within: bool  # whether that is within the tolerance


@dataclass(frozen=True)
class Extreme:
    """What :func:`gst.search` found."""

    sparsity: float  # the largest within the tolerance; 0: none was
    tolerance: float
    curve: list[Point]  # by rising sparsity
    verdict: str  # of the test nodes: "confirmed", "open" or "refuted"; "none" where nothing was within
    result: Result  # at that sparsity, of the seed that validates best
    seeds: list[int]
    accuracy: str  # "returned" or "fresh": whose
    decision: str  # "mean" or "bound": what had to be within
    confidence: float

    @property
    def point(self) -> Point | None:
        """The chosen point of the curve."""
        return next((point for point in self.curve if point.sparsity == self.sparsity), None)

    def rows(self) -> list[dict[str, Any]]:
        """The curve as plain words and numbers."""
        return [
            {
                "sparsity": point.sparsity,
                "edges_kept": point.edges_kept,
                **{f"{part}_{name}": v for part in ("val", "test") for name, v in vars(getattr(point, part)).items()},
                "val_fitted": point.fitted,
                "within": point.within,
            }
            for point in self.curve
        ]


@plain_torch()
def search(
    data: Data,
    method: str = "gst",
    *,
    tolerance: float = 0.5,
    seeds: int | Sequence[int] = 5,
    step: float = 0.1,
    precision: float = 0.02,
    accuracy: Accuracy = "auto",
    decision: Decision = "mean",
    confidence: float = 0.95,
    backbone: str = "gcn",
    model: nn.Module | None = None,
    cache: bool | Cache = True,
    watch: Watcher = silent,
    told: Callable[[int, float], None] = lambda seed, sparsity: None,
    checkpoint: NoCheckpoint | str | PathLike[str] | None = None,
    **settings: Any,
) -> Extreme:
    """Finds the largest sparsity at which a model is as good as on all edges, up to a tolerance.

    Sparse and dense runs of one seed are compared with each other. Validation decides: means over the seeds, a falling
    curve through them (more edges removed cannot truly help, so points that contradict each other are averaged), and
    the largest sparsity at which it lies within the tolerance. A grid first, then halves of the step that holds the
    answer. Test nodes have no say in this; they confirm it, leave it open or refute it.

    Args:
        data, method, backbone, model, cache, watch: as for :func:`gst.sparsify`.
        tolerance: ε, the loss in points that is no loss.
        seeds: how many, from ``seed`` on, or which.
        step: of the grid, which ends after two misses in a row.
        precision: how closely the answer is looked for.
        accuracy: of the ``"returned"`` model or of a ``"fresh"`` one trained on the sparse graph; ``"auto"``: fresh
            for the recipe that is made for it, else returned.
        decision: ``"mean"``, or ``"bound"``: the lower end of the interval must be within the tolerance.
        confidence: of the two-sided t intervals.
        told: called with seed and sparsity before every run.
        checkpoint: folder for the finished runs and the state of the one under way; the same call in a later process
            goes on with them, also with other seeds, steps and tolerances.
        settings: as for :func:`gst.sparsify`.
    """
    check_graph(data)
    check_model(model)
    _check(tolerance, step, precision, accuracy, decision, confidence)
    which = _seeds(seeds, settings.pop("seed", None) or 0)
    if accuracy == "auto":
        accuracy = "fresh" if settings.get("recipe") == "retrain" else "returned"
    prefix = "retrain_" if accuracy == "fresh" else ""
    chosen: dict[str, Any] = {"backbone": backbone, "model": model, "cache": cache, "watch": watch, **settings}
    with (
        opened(checkpoint) as place,
        opened_runs(data, method, place, chosen, retrain=bool(prefix)) as runs,
    ):

        def measure(sparsity: float) -> Point:
            found = []
            for seed in which:
                told(seed, sparsity)
                found.append(runs.metrics(seed, sparsity))
            val, test = ([m[prefix + part] - m[f"dense_{part}"] for m in found] for part in ("val", "test"))
            parted = difference(val, confidence), difference(test, confidence)
            return Point(sparsity, found[0]["edges_kept"], *parted, fitted=math.nan, within=False)

        curve = explore(measure, lambda points: judge(points, tolerance, decision), step, precision)
        point = max((point for point in curve if point.within), key=lambda point: point.sparsity, default=None)
        if point is None:
            best, sparsity, verdict = which[0], 0.0, "none"
        else:
            vals = {seed: runs.metrics(seed, point.sparsity)[f"{prefix}val"] for seed in which}
            best, sparsity = max(which, key=vals.__getitem__), point.sparsity
            verdict = verdict_of(point.test, tolerance)
        result = runs.result(best, sparsity)
        runs.forget()
    warn_of_agreement(result.metrics)
    return Extreme(sparsity, tolerance, curve, verdict, result, which, accuracy, decision, confidence)


def explore(
    measure: Callable[[float], Point], judged: Callable[[list[Point]], list[Point]], step: float, precision: float
) -> list[Point]:
    """A grid up to two misses in a row, then bisection between the largest that is within and its upper neighbour."""
    points: list[Point] = []
    for k in range(1, math.ceil(1 / step)):
        sparsity = round(k * step, 6)
        if sparsity >= 1:
            break
        points = judged([*points, measure(sparsity)])
        if len(points) >= PATIENCE and not any(point.within for point in points[-PATIENCE:]):
            break
    while True:
        low = max((point.sparsity for point in points if point.within), default=0.0)
        high = min((point.sparsity for point in points if point.sparsity > low), default=1.0)
        if high - low <= precision + 1e-9:
            return points
        between = measure(round((low + high) / 2, 6))
        points = judged(sorted([*points, between], key=lambda point: point.sparsity))


def judge(points: Sequence[Point], tolerance: float, decision: str = "mean") -> list[Point]:
    """The points with the falling curve through them, and which of them are within the tolerance.

    Isotonic regression: neighbours that rise are replaced by their mean, until none does.
    """
    from sklearn.isotonic import isotonic_regression  # noqa: PLC0415 - seconds to load, for this alone

    values = [point.val.mean if decision == "mean" or point.val.low is None else point.val.low for point in points]
    fitted = [float(v) for v in isotonic_regression(values, increasing=False)]
    return [
        Point(p.sparsity, p.edges_kept, p.val, p.test, fit, fit >= -tolerance - 1e-9)
        for p, fit in zip(points, fitted, strict=True)
    ]


def difference(values: Iterable[float], confidence: float = 0.95) -> Difference:
    """Mean and two-sided t interval of paired differences.

    >>> found = difference([-1.0, 0.0, 1.0])
    >>> found.mean, round(found.low, 3), round(found.high, 3)
    (0.0, -2.484, 2.484)
    """
    found = list(values)
    mean = statistics.fmean(found)
    if len(found) < 2:
        return Difference(mean)
    half = float(stdtrit(len(found) - 1, (1 + confidence) / 2)) * statistics.stdev(found) / math.sqrt(len(found))
    return Difference(mean, mean - half, mean + half)


def verdict_of(test: Difference, tolerance: float) -> str:
    """Whether the whole interval is within the tolerance, part of it, or nothing of it."""
    low, high = (test.mean if end is None else end for end in (test.low, test.high))
    return "confirmed" if low >= -tolerance else "refuted" if high < -tolerance else "open"


def _check(tolerance: float, step: float, precision: float, accuracy: str, decision: str, confidence: float) -> None:
    share = f"a share from {FINEST} to below 1"
    check_options(
        "search",
        tolerance=(tolerance, float, lambda v: 0 <= v <= 100, "points, from 0 to 100,"),
        step=(step, float, lambda v: FINEST <= v < 1, share),
        precision=(precision, float, lambda v: FINEST <= v < 1, share),
        confidence=(confidence, float, lambda v: 0 < v < 1, "a share between 0 and 1"),
    )
    for name, value, known in (("accuracy", accuracy, Accuracy), ("decision", decision, Decision)):
        if value not in get_args(known):
            raise InputError(f"{name} {shown(repr(value))}: choose from {', '.join(get_args(known))}")


def _seeds(seeds: int | Sequence[int], first: int) -> list[int]:
    """Which seeds are meant; whether each is one is for the settings to say."""
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        which = list(seeds)
    else:
        check_options("search", seeds=(seeds, int, lambda v: 1 <= v <= MOST_SEEDS, f"a number from 1 to {MOST_SEEDS}"))
        make_settings(None, "gcn", {"seed": first})
        which = [first + k for k in range(seeds)]
    if not which:
        raise InputError("seeds: at least one is needed")
    return which
