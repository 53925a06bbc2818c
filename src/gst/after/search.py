"""The largest safe sparsity: how many edges can be removed before the answers get worse."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, get_args

from torch import nn
from torch_geometric.data import Data

from gst.after.runs import opened_runs
from gst.api.sparsify import make_method
from gst.base.arguments import check_options
from gst.base.errors import InputError
from gst.base.log import log
from gst.base.modes import plain_torch
from gst.base.stats import CONFIDENCE, TOLERANCE, Decision, Difference, difference, fit_losses, verdict
from gst.base.text import shown
from gst.graph.edgeset import check_graph
from gst.methods import METHODS, Result
from gst.methods.base import warn_of_agreement
from gst.storage.cache import Cache
from gst.storage.checkpoint import BaseCheckpoint, opened
from gst.train.callbacks import Callbacks
from gst.train.models import check_model
from gst.train.settings import Training, make_config

Accuracy = Literal["auto", "returned", "fresh"]
MOST_SEEDS = 1000
FINEST = 1e-4  # smallest step and precision
PATIENCE = 2  # consecutive grid points beyond the tolerance that end the grid


@dataclass(frozen=True)
class Point:
    """One sparsity of the curve."""

    sparsity: float  # share of edges removed, as requested
    edges_kept: int
    val: Difference  # to dense, which decides
    test: Difference  # which is reported
    fitted: float  # val on the falling curve through all points
    within: bool  # whether that is within the tolerance


@dataclass(frozen=True)
class SafeSparsity:
    """The result of :func:`gst.search`."""

    sparsity: float  # the largest within the tolerance; 0: none was
    tolerance: float
    curve: list[Point]  # by rising sparsity
    verdict: str  # of the test nodes: "confirmed", "open" or "refuted"; "none" where nothing was within
    result: Result  # at that sparsity, of the seed with the best validation score
    seeds: list[int]
    accuracy: str  # "returned" or "fresh": of which model
    decision: str  # "mean" or "bound": what has to be within the tolerance
    confidence: float

    @property
    def point(self) -> Point | None:
        """The point of the curve at that sparsity."""
        return next((point for point in self.curve if point.sparsity == self.sparsity), None)

    def rows(self) -> list[dict[str, Any]]:
        """The curve as plain values, one row per point."""
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
    method: str = "deploy",
    *,
    tolerance: float = TOLERANCE,
    seeds: int | Sequence[int] = 5,
    step: float = 0.1,
    precision: float = 0.02,
    accuracy: Accuracy = "auto",
    decision: Decision = "mean",
    confidence: float = CONFIDENCE,
    backbone: str = "gcn",
    model: nn.Module | None = None,
    cache: bool | Cache = True,
    callbacks: Callbacks = (),
    on_run: Callable[[int, float], None] = lambda seed, sparsity: None,
    checkpoint: BaseCheckpoint | str | PathLike[str] | None = None,
    **settings: Any,
) -> SafeSparsity:
    """Finds the largest sparsity at which a model is as good as on all edges, up to a tolerance.

    Sparse and dense runs of the same seed are compared with each other. Validation decides: means over the seeds, a
    falling curve through them (removing more edges cannot truly help, so points that contradict each other are
    averaged), and the largest sparsity at which the curve is within the tolerance. A grid comes first, then bisection
    of the step that contains the answer. Test nodes do not take part in the decision; they confirm it, leave it open
    or refute it.

    Args:
        data: as for :func:`gst.sparsify`, like method, backbone, model and cache.
        method: a name of ``gst methods``.
        backbone: the network.
        model: your own network instead.
        cache: whether what can be reused is kept on disk.
        callbacks: told of every run, as for :func:`gst.sparsify`.
        tolerance: ε, the loss in points that counts as none.
        seeds: how many, starting from ``seed``, or a list of them.
        step: of the grid, which ends after two consecutive points beyond the tolerance.
        precision: the width at which bisection stops.
        accuracy: of the ``"returned"`` model or of a ``"fresh"`` one trained on the sparse graph; ``"auto"``: fresh
            for the method retrain, else returned.
        decision: ``"mean"``, or ``"bound"``: the lower end of the interval has to be within the tolerance.
        confidence: of the two-sided t intervals.
        on_run: called with seed and sparsity before every run.
        checkpoint: folder for the finished runs and the state of the current one; the same call in a later process
            continues from there, also with other seeds, steps and tolerances.
        settings: the other arguments of the method, as for :func:`gst.sparsify`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> found = gst.search(data, "random", tolerance=100, seeds=1, step=0.5, precision=0.5, **few)
    >>> found.sparsity, found.verdict
    (0.5, 'confirmed')
    """
    check_graph(data)
    check_model(model)
    _check(tolerance, step, precision, accuracy, decision, confidence)
    seed_list = _list_seeds(seeds, settings.pop("seed", None) or 0)
    if accuracy == "auto":
        accuracy = "fresh" if METHODS.resolve(method) == "retrain" else "returned"
    prefix = "retrain_" if accuracy == "fresh" else ""
    shared = {"backbone": backbone, "model": model, "cache": cache, "callbacks": callbacks}
    estimator = make_method(method, **{**shared, **settings, "sparsity": step})
    with (
        opened(checkpoint) as opened_checkpoint,
        opened_runs(data, estimator, opened_checkpoint, retrain=bool(prefix)) as runs,
    ):

        def measure(sparsity: float) -> Point:
            metrics = []
            for seed in seed_list:
                on_run(seed, sparsity)
                metrics.append(runs.metrics(seed, sparsity))
            val, test = (
                difference([m[prefix + part] - m[f"dense_{part}"] for m in metrics], confidence)
                for part in ("val", "test")
            )
            log.info("search %s: sparsity %g, validation %s points", method, sparsity, val)
            return Point(sparsity, metrics[0]["edges_kept"], val, test, fitted=math.nan, within=False)

        curve = explore(measure, lambda points: judge(points, tolerance, decision), step, precision)
        point = max((point for point in curve if point.within), key=lambda point: point.sparsity, default=None)
        if point is None:
            result = runs.result(seed_list[0], 0.0)
        else:
            scores = {seed: runs.metrics(seed, point.sparsity)[f"{prefix}val"] for seed in seed_list}
            result = runs.result(max(seed_list, key=scores.__getitem__), point.sparsity)
        runs.forget()
    warn_of_agreement(result)
    return SafeSparsity(
        0.0 if point is None else point.sparsity,
        tolerance,
        curve,
        "none" if point is None else verdict(point.test, tolerance),
        result,
        seed_list,
        accuracy,
        decision,
        confidence,
    )


def explore(
    measure: Callable[[float], Point], judged: Callable[[list[Point]], list[Point]], step: float, precision: float
) -> list[Point]:
    """A grid up to two consecutive misses, then bisection between the largest point within and the next one."""
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
        middle = measure(round((low + high) / 2, 6))
        points = judged(sorted([*points, middle], key=lambda point: point.sparsity))


def judge(points: Sequence[Point], tolerance: float, decision: Decision = "mean") -> list[Point]:
    """The points with their values on the falling curve, and which of them are within the tolerance."""
    fitted = fit_losses([point.val for point in points], tolerance, decision)
    return [replace(point, fitted=value, within=within) for point, (value, within) in zip(points, fitted, strict=True)]


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


def _list_seeds(seeds: int | Sequence[int], first: int) -> list[int]:
    """The seeds as a list; each of them is checked where it is used."""
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        listed = list(seeds)
    else:
        check_options("search", seeds=(seeds, int, lambda v: 1 <= v <= MOST_SEEDS, f"a number from 1 to {MOST_SEEDS}"))
        make_config(Training, {"seed": first})
        listed = [first + k for k in range(seeds)]
    if not listed:
        raise InputError("seeds: at least one is needed")
    return listed
