"""The page's figures, from the study of the rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from gst.base.stats import Stat
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import by_seed
from gst.lab.report.names import EMPHASISED, MEASURES, method_name, method_order, method_style, metric_name, percent
from gst.lab.report.summary import Panel, Study, latency_share, panel_order
from gst.lab.report.svg import Axis, Frame, Line, Point, lines, round_ticks

_MAX_POINTS = 100  # of a spectrum
FRONTIER, DENSE = 98, 99  # styles of lines that are not methods


@dataclass(frozen=True)
class Figure:
    """A chart and its panel."""

    title: str
    panel: Panel
    svg: Markup
    legend: Markup | str = ""


def seeds(n: int) -> str:
    return f"{n} seed{'s' if n > 1 else ''}"


def metric_of(study: Study, panel: Panel) -> str:
    metrics = (row.metric for row in study.done if (row.dataset, row.backbone) == (panel.dataset, panel.backbone))
    return metric_name(next(filter(None, metrics), ""))


def method_line(method: str, points: Sequence[Point], measure: str | None = None, **more: bool) -> Line:
    """A curve in the colours of its method."""
    emphasised = method in EMPHASISED
    return Line(method_name(method), method_style(method), points, method, measure, emphasised=emphasised, **more)


def accuracy(study: Study) -> list[Figure]:
    """Test score over sparsity with the dense line and error bars: one chart per panel with several sparsities."""
    several = (panel for panel in study.panels if len(study.sparsities_in(panel)) > 1)
    return [figure for panel in several if (figure := _accuracy(study, panel)) is not None]


def _accuracy(study: Study, panel: Panel) -> Figure | None:
    curves = []
    for method in study.methods_in(panel):
        for measure in MEASURES:
            points = []
            for sparsity in sorted(study.curve(panel, method)):
                score = study.score(panel, method, sparsity, f"{measure}test")
                loss = study.loss(panel, method, sparsity, measure)
                if score is not None:
                    against = f" · {loss.text(sign=True)} against dense" if loss else ""
                    tip = f"{percent(sparsity)} removed: {score}{against} ({seeds(score.n)})"
                    height = study.height(panel, loss) if loss else score.mean
                    points.append(Point(100 * sparsity, height, score.sd, tip))
            if points:
                curves.append(method_line(method, points, measure))
    if not curves:
        return None
    dense = Stat.of(study.dense(panel).values())
    ends = [p.y + k * (p.sd or 0) for c in curves for p in c.points for k in (-1, 1)]
    values = ends + ([dense.mean - (dense.sd or 0), dense.mean + (dense.sd or 0)] if dense else [])
    metric = metric_of(study, panel)
    frame = Frame(
        x=sparsity_axis(study),
        y=Axis.around(f"test {metric}, %", values),
        description=f"Test {metric} over sparsity on {panel.title}, {len({c.method for c in curves})} methods. "
        "Arrow keys move along the points.",
        reference=("dense", dense) if dense else None,
    )
    return Figure(panel.title, panel, lines(frame, curves))


def share_axis(name: str, values: Iterable[float]) -> Axis:
    """An axis in per cent that spans at least forty points."""
    shares = list(values)
    middle = max(20.0, min(80.0, (min(shares) + max(shares)) / 2))
    low, high = min(*shares, middle - 20) - 3, max(*shares, middle + 20) + 3
    return Axis(name, low, high, ticks=tuple(t for t in round_ticks(low, high, 8) if 0 <= t <= 100))


def sparsity_axis(study: Study) -> Axis:
    """The same for all panels, which makes them comparable at a glance."""
    return share_axis("edges removed, %", (100 * s for panel in study.panels for s in study.sparsities_in(panel)))


def pareto(study: Study) -> list[Figure]:
    """Score against measured latency, one point per method and sparsity, with the Pareto frontier."""
    return [figure for panel in study.panels if (figure := _pareto(study, panel)) is not None]


def _pareto(study: Study, panel: Panel) -> Figure | None:
    curves: list[Line] = []
    for measure in MEASURES:
        points = [
            (method, point)
            for method in study.methods_in(panel)
            for sparsity in study.curve(panel, method)
            if (point := _timed_point(study, panel, method, sparsity, measure)) is not None
        ]
        best = frontier([(point.x, point.y) for _, point in points])
        for method in study.methods_in(panel):
            of_method = [
                replace(point, label=f"{method_name(method)} {point.label}" if n in best else "")
                for n, (other, point) in enumerate(points)
                if other == method
            ]
            if of_method:
                curves.append(method_line(method, of_method, measure, joined=False))
        if best:
            steps = [Point(points[n][1].x, points[n][1].y) for n in best]
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
        description=f"Test {metric} against measured latency on {panel.title}. Arrow keys move along the points.",
    )
    return Figure(panel.title, panel, lines(frame, curves))


def _timed_point(study: Study, panel: Panel, method: str, sparsity: float, measure: str) -> Point | None:
    """Score and time, as a share of the dense pass timed in alternation: differences between machines cancel."""
    rows = study.curve(panel, method)[sparsity]
    share, score = latency_share(rows), study.score(panel, method, sparsity, f"{measure}test")
    if share is None or score is None:
        return None
    ms, loss = Stat.of(by_seed(rows, "sparse_ms").values()), study.loss(panel, method, sparsity, measure)
    tip = f"{percent(sparsity)} removed: {score} at {100 * share:.0f} % of the time ({ms.text(2) if ms else ''} ms)"
    return Point(100 * share, study.height(panel, loss) if loss else score.mean, None, tip, percent(sparsity))


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the (cost, score) pairs that no other pair beats in both, by rising cost.

    >>> frontier([(2, 80), (1, 70), (3, 79), (1, 75)])
    [3, 0]
    """
    best: list[int] = []
    for n in sorted(range(len(points)), key=lambda n: (points[n][0], -points[n][1])):
        if not best or points[n][1] > points[best[-1]][1]:
            best.append(n)
    return best


def spectra(study: Study) -> list[Figure]:
    """Relative error of every eigenvalue at both ends, mean over seeds; two charts per panel and sparsity."""
    measured: dict[tuple[Panel, float], dict[str, list[Row]]] = {}
    for (panel, method, variation), curve in study.curves.items():
        for sparsity, rows in curve.items():
            with_spectrum = [row for row in rows if isinstance(row.facts.get("spectrum"), dict)]
            if with_spectrum and not variation:
                measured.setdefault((panel, sparsity), {})[method] = with_spectrum
    order = sorted(measured, key=lambda key: (panel_order(key[0]), key[1]))
    ends = (("bottom", "smallest eigenvalues above zero"), ("top", "largest eigenvalues"))
    return [
        figure
        for panel, sparsity in order
        for end, name in ends
        if (figure := _spectrum(panel, sparsity, measured[panel, sparsity], end, name)) is not None
    ]


def _spectrum(panel: Panel, sparsity: float, methods: dict[str, list[Row]], end: str, name: str) -> Figure | None:
    curves = []
    for method in sorted(methods, key=method_order):
        errors = [e for row in methods[method] if (e := relative_errors(row.facts["spectrum"], end)).size]
        size = min(map(len, errors), default=0)
        if not size:
            continue
        mean = (100 * np.mean([e[:size] for e in errors], axis=0)).tolist()
        step = max(1, size // _MAX_POINTS)
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
        curves.append(method_line(method, points, plain=True))
    if not curves:
        return None
    frame = Frame(
        x=Axis.around(f"{name}, rising", (p.x for c in curves for p in c.points), pad=0.02),
        y=Axis.around("relative error, %", [0.0, *(p.y for c in curves for p in c.points)], pad=0.04),
        description=f"Relative error of the {name} on {panel.title} with {percent(sparsity)} of the edges removed.",
        height=240,
    )
    return Figure(f"{panel.title}, {percent(sparsity)} removed", panel, lines(frame, curves))


def relative_errors(spectrum: dict[str, object], end: str) -> np.ndarray:
    """|λ_i − λ'_i| / λ_i for every i; empty unless the facts hold two such lists of numbers."""
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
    """Mean relative error of both ends of the spectrum over sparsity, where at least three sparsities were measured."""
    ends = (("spectrum_bottom", "smallest 200 above zero"), ("spectrum_top", "largest 200"))
    return [f for panel in study.panels for column, name in ends if (f := _errors(study, panel, column, name))]


def _errors(study: Study, panel: Panel, column: str, name: str) -> Figure | None:
    curves = []
    for method in study.methods_in(panel):
        points = []
        for sparsity in sorted(study.curve(panel, method)):
            error = study.score(panel, method, sparsity, column)
            if error is not None:
                tip = f"{percent(sparsity)} removed: off by {100 * error.mean:.1f} % ({seeds(error.n)})"
                points.append(Point(100 * sparsity, 100 * error.mean, 100 * error.sd if error.sd else None, tip))
        if len(points) > 2:
            curves.append(method_line(method, points))
    if not curves:
        return None
    frame = Frame(
        x=sparsity_axis(study),
        y=Axis.around(f"error of the {name}, %", [0.0, *(p.y + (p.sd or 0) for c in curves for p in c.points)]),
        description=f"Mean relative error of the {name} eigenvalues over sparsity on {panel.title}.",
        height=240,
    )
    return Figure(panel.title, panel, lines(frame, curves))
