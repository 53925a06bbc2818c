"""The page's figures, from the study of the rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from gst.lab.bench.rows import Row
from gst.lab.report.names import MEASURES, metric_name, percent, series_name, series_order, style_of
from gst.lab.report.summary import Panel, Stat, Study, by_seed, latency_share, panel_order
from gst.lab.report.svg import Axis, Frame, Line, Point, lines, round_ticks

_LONGEST = 100  # points of a spectrum that are drawn
FRONTIER, DENSE = 98, 99  # styles of what is no method


@dataclass(frozen=True)
class Figure:
    """A chart and what it belongs to."""

    title: str
    panel: Panel
    svg: Markup
    legend: Markup | str = ""


def seeds(n: int) -> str:
    return f"{n} seed{'s' if n > 1 else ''}"


def metric_of(study: Study, panel: Panel) -> str:
    found = (row.metric for row in study.done if (row.dataset, row.backbone) == (panel.dataset, panel.backbone))
    return metric_name(next(filter(None, found), ""))


def is_gst(series: str) -> bool:
    return series.startswith("gst/")


def accuracy(study: Study) -> list[Figure]:
    """Test score over sparsity, a chart a panel of two sparsities or more, with the dense line and error bars."""
    several = (panel for panel in study.panels if len(study.sparsities_in(panel)) > 1)
    return [figure for panel in several if (figure := _accuracy(study, panel)) is not None]


def _accuracy(study: Study, panel: Panel) -> Figure | None:
    curves = []
    for series in study.series_in(panel):
        for measure in MEASURES:
            points = []
            for sparsity in sorted(study.curve(panel, series)):
                score = study.score(panel, series, sparsity, f"{measure}test")
                loss = study.loss(panel, series, sparsity, measure)
                if score is not None:
                    against = f" · {loss.text(sign=True)} against dense" if loss else ""
                    tip = f"{percent(sparsity)} removed: {score}{against} ({seeds(score.n)})"
                    at = study.height(panel, loss) if loss else score.mean
                    points.append(Point(100 * sparsity, at, score.sd, tip))
            if points:
                named = (series_name(series), style_of(series), points, series, measure)
                curves.append(Line(*named, strong=is_gst(series)))
    if not curves:
        return None
    dense = Stat.of(study.dense(panel).values())
    ends = [p.y + k * (p.sd or 0) for c in curves for p in c.points for k in (-1, 1)]
    values = ends + ([dense.mean - (dense.sd or 0), dense.mean + (dense.sd or 0)] if dense else [])
    metric = metric_of(study, panel)
    frame = Frame(
        x=sparsity_axis(study),
        y=Axis.around(f"test {metric}, %", values),
        says=f"Test {metric} over sparsity on {panel.title}, {len({c.series for c in curves})} methods. "
        "Arrow keys walk along the points.",
        reference=("dense", dense) if dense else None,
    )
    return Figure(panel.title, panel, lines(frame, curves))


def share_axis(name: str, values: Iterable[float]) -> Axis:
    """Per cent, at least forty wide."""
    found = list(values)
    middle = max(20.0, min(80.0, (min(found) + max(found)) / 2))
    low, high = min(*found, middle - 20) - 3, max(*found, middle + 20) + 3
    return Axis(name, low, high, ticks=tuple(t for t in round_ticks(low, high, 8) if 0 <= t <= 100))


def sparsity_axis(study: Study) -> Axis:
    """The same for all panels, so that they compare at a glance."""
    return share_axis("edges removed, %", (100 * s for panel in study.panels for s in study.sparsities_in(panel)))


def pareto(study: Study) -> list[Figure]:
    """Score against measured latency, a point a method and sparsity; the frontier is what nothing beats in both."""
    return [figure for panel in study.panels if (figure := _pareto(study, panel)) is not None]


def _pareto(study: Study, panel: Panel) -> Figure | None:
    curves: list[Line] = []
    for measure in MEASURES:
        found = [
            (series, point)
            for series in study.series_in(panel)
            for sparsity in study.curve(panel, series)
            if (point := _timed(study, panel, series, sparsity, measure)) is not None
        ]
        best = frontier([(p.x, p.y) for _, p in found])
        for series in study.series_in(panel):
            own = [
                replace(p, label=f"{series_name(s)} {p.label}" if n in best else "")
                for n, (s, p) in enumerate(found)
                if s == series
            ]
            if own:
                named = (series_name(series), style_of(series), own, series, measure)
                curves.append(Line(*named, joined=False, strong=is_gst(series)))
        if best:
            steps = [Point(found[n][1].x, found[n][1].y) for n in best]
            curves.append(Line("frontier", FRONTIER, steps, "", measure, plain=True))
    if not curves:
        return None
    if dense := Stat.of(study.dense(panel).values()):
        curves.append(
            Line("dense", DENSE, [Point(100, dense.mean, None, f"full graph: {dense}", "dense")], joined=False)
        )
    metric = metric_of(study, panel)
    frame = Frame(
        x=Axis.around("forward pass, % of the full graph’s time", (p.x for c in curves for p in c.points), pad=0.1),
        y=Axis.around(f"test {metric}, %", (p.y for c in curves for p in c.points), pad=0.1),
        says=f"Test {metric} against measured latency on {panel.title}. Arrow keys walk along the points.",
    )
    return Figure(panel.title, panel, lines(frame, curves))


def _timed(study: Study, panel: Panel, series: str, sparsity: float, measure: str) -> Point | None:
    """Score and time, the latter as a share of the dense pass that was timed in turns with it: another machine, or a
    busy hour, cancels."""
    rows = study.curve(panel, series)[sparsity]
    share, score = latency_share(rows), study.score(panel, series, sparsity, f"{measure}test")
    if share is None or score is None:
        return None
    ms, loss = Stat.of(by_seed(rows, "sparse_ms").values()), study.loss(panel, series, sparsity, measure)
    tip = f"{percent(sparsity)} removed: {score} at {100 * share:.0f} % of the time ({ms.text(2) if ms else ''} ms)"
    return Point(100 * share, study.height(panel, loss) if loss else score.mean, None, tip, percent(sparsity))


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which (cost, score) no other beats in both, by rising cost.

    >>> frontier([(2, 80), (1, 70), (3, 79), (1, 75)])
    [3, 0]
    """
    best: list[int] = []
    for n in sorted(range(len(points)), key=lambda n: (points[n][0], -points[n][1])):
        if not best or points[n][1] > points[best[-1]][1]:
            best.append(n)
    return best


def spectra(study: Study) -> list[Figure]:
    """Relative error of every eigenvalue at both ends, mean over seeds; a pair of charts a panel and sparsity."""
    found: dict[tuple[Panel, float], dict[str, list[Row]]] = {}
    for (panel, series, variation), curve in study.curves.items():
        for sparsity, rows in curve.items():
            kept = [row for row in rows if isinstance(row.facts.get("spectrum"), dict)]
            if kept and not variation:
                found.setdefault((panel, sparsity), {})[series] = kept
    order = sorted(found, key=lambda key: (panel_order(key[0]), key[1]))
    ends = (("bottom", "smallest eigenvalues above zero"), ("top", "largest eigenvalues"))
    return [
        figure
        for panel, sparsity in order
        for end, words in ends
        if (figure := _spectrum(panel, sparsity, found[panel, sparsity], end, words)) is not None
    ]


def _spectrum(panel: Panel, sparsity: float, methods: dict[str, list[Row]], end: str, words: str) -> Figure | None:
    curves = []
    for series in sorted(methods, key=series_order):
        errors = [e for row in methods[series] if (e := relative_errors(row.facts["spectrum"], end)).size]
        size = min(map(len, errors), default=0)
        if not size:
            continue
        mean = (100 * np.mean([e[:size] for e in errors], axis=0)).tolist()
        step = max(1, size // _LONGEST)
        overall = sum(mean) / size
        points = [
            Point(
                i + 1,
                mean[i],
                None,
                f"eigenvalue {i + 1}: off by {mean[i]:.1f} % (all: {overall:.1f} %, {seeds(len(errors))})",
            )
            for i in range(0, size, step)
        ]
        curves.append(Line(series_name(series), style_of(series), points, series, strong=is_gst(series), plain=True))
    if not curves:
        return None
    frame = Frame(
        x=Axis.around(f"{words}, rising", (p.x for c in curves for p in c.points), pad=0.02),
        y=Axis.around("relative error, %", [0.0, *(p.y for c in curves for p in c.points)], pad=0.04),
        says=f"Relative error of the {words} on {panel.title} with {percent(sparsity)} of the edges removed.",
        height=240,
    )
    return Figure(f"{panel.title}, {percent(sparsity)} removed", panel, lines(frame, curves))


def relative_errors(spectrum: dict[str, object], end: str) -> np.ndarray:
    """|λ_i − λ'_i| / λ_i, place by place; nothing where the facts are not two such lists of numbers."""
    try:
        before, after = (np.asarray(spectrum.get(name), dtype=np.float64) for name in (end, f"{end}_sparse"))
    except (TypeError, ValueError):
        return np.empty(0)
    if (
        before.ndim != 1
        or before.shape != after.shape
        or not (np.isfinite(before + after).all() and (before > 0).all())
    ):
        return np.empty(0)
    return np.abs(before - after) / before


def spectral_errors(study: Study) -> list[Figure]:
    """Mean relative error of both ends of the spectrum over sparsity, where at least three were measured."""
    ends = (("spectrum_bottom", "smallest 200 above zero"), ("spectrum_top", "largest 200"))
    return [f for panel in study.panels for column, words in ends if (f := _errors(study, panel, column, words))]


def _errors(study: Study, panel: Panel, column: str, words: str) -> Figure | None:
    curves = []
    for series in study.series_in(panel):
        points = []
        for sparsity in sorted(study.curve(panel, series)):
            error = study.score(panel, series, sparsity, column)
            if error is not None:
                tip = f"{percent(sparsity)} removed: off by {100 * error.mean:.1f} % ({seeds(error.n)})"
                points.append(Point(100 * sparsity, 100 * error.mean, 100 * error.sd if error.sd else None, tip))
        if len(points) > 2:
            curves.append(Line(series_name(series), style_of(series), points, series, strong=is_gst(series)))
    if not curves:
        return None
    frame = Frame(
        x=sparsity_axis(study),
        y=Axis.around(f"error of the {words}, %", [0.0, *(p.y + (p.sd or 0) for c in curves for p in c.points)]),
        says=f"Mean relative error of the {words} eigenvalues over sparsity on {panel.title}.",
        height=240,
    )
    return Figure(panel.title, panel, lines(frame, curves))
