"""Figures of experiments that vary more than the sparsity: ablations, settings, perturbed graphs, lottery tickets."""

from collections.abc import Callable, Iterable, Sequence

from gst.base.stats import Stat
from gst.lab.bench.summary import by_seed
from gst.lab.report.figures import DENSE, Figure, metric_of, seeds, share_axis
from gst.lab.report.names import (
    ABLATIONS,
    EMPHASISED,
    method_name,
    method_order,
    method_style,
    parse_variation,
    percent,
)
from gst.lab.report.summary import Panel, Study, panel_order
from gst.lab.report.svg import Axis, Bar, Frame, Line, Point, bars, legend, lines

_SYMBOLS = {"interval": "ΔT", "swap_ratio": "τ", "decay": "κ"}


def ablations(study: Study) -> list[Figure]:
    """Difference to dense of GST and of GST without one of its parts, at every sparsity that was ablated."""
    figures = []
    for panel, method in _panels_varying(study, lambda names: any(f"{n}=False" in ABLATIONS for n in names)):
        sparsities = {s for variation in ABLATIONS if variation for s in study.curve(panel, method, variation)}
        groups = [
            (percent(s), [_bar(study, panel, method, s, v, ABLATIONS[v], n) for n, v in enumerate(ABLATIONS)])
            for s in sorted(sparsities)
        ]
        keys = [(name, _colour(n)) for n, name in enumerate(ABLATIONS.values())]
        figures += _bar_chart(study, panel, "edges removed", groups, keys)
    return figures


def settings(study: Study) -> list[Figure]:
    """Difference to dense for each value of a setting; where two settings vary, the second one forms groups."""
    figures = []
    for panel, method in _panels_varying(study, lambda names: bool(names) and set(names) <= set(_SYMBOLS)):
        parsed = {variation: parse_variation(variation) for variation in _variations(study, panel, method)}
        kinds = dict.fromkeys(tuple(values) for values in parsed.values() if values and set(values) <= set(_SYMBOLS))
        for first, *others in kinds:
            same_kind = {v: values for v, values in parsed.items() if list(values) == [first, *others]}
            levels = sorted({values[first] for values in same_kind.values()}, key=_numeric_order)
            groups: dict[tuple[float, str], list[Bar | None]] = {}
            for variation, values in same_kind.items():
                rest = " ".join(_setting(name, values[name]) for name in others)
                level = levels.index(values[first])
                for s in study.curve(panel, method, variation):
                    name = f"{_setting(first, values[first])} {rest}".strip()
                    group = groups.setdefault((s, rest), [None] * len(levels))
                    group[level] = _bar(study, panel, method, s, variation, name, level)
            sparsities = sorted({s for s, _ in groups})
            labelled = [
                (rest if rest and len(sparsities) == 1 else f"{percent(s)} {rest}".strip(), group)
                for (s, rest), group in sorted(groups.items())
            ]
            keys = [(_setting(first, value), _colour(n)) for n, value in enumerate(levels)]
            removed = f"edges removed: {', '.join(map(percent, sparsities))}" if others else "edges removed"
            figures += _bar_chart(study, panel, removed, labelled, keys)
    return figures


def perturbed(study: Study) -> list[Figure]:
    """Score over the share of edges with one end moved at random: dense, and the method at each sparsity."""
    figures = []
    for panel, method in _panels_varying(study, lambda names: list(names) == ["relocated"]):
        moved = sorted(
            (_numeric_order(parsed["relocated"])[0], variation)
            for variation in _variations(study, panel, method)
            if list(parsed := parse_variation(variation)) == ["relocated"]
        )
        dense = []
        for share, variation in moved:
            rows = (row for rows in study.curve(panel, method, variation).values() for row in rows)
            dense.append((100 * share, Stat.of(by_seed(rows, "dense_test").values())))
        curves = [_curve("dense", DENSE, "", dense, "edges moved")]
        for n, s in enumerate(sorted({s for _, variation in moved for s in study.curve(panel, method, variation)})):
            scores = ((100 * share, study.score(panel, method, s, "test", variation)) for share, variation in moved)
            name = f"{method_name(method)}, {percent(s)} removed"
            curves.append(_curve(name, _colour(n), method, scores, "edges moved"))
        figures += _line_chart(study, panel, "edges with one end moved, %", [c for c in curves if c.points])
    return figures


def tickets(study: Study) -> list[Figure]:
    """Score of lottery tickets over the sparsity of the graph: the weights of UGS on its graph and on that of GST."""
    scores: dict[Panel, dict[str, dict[float, Stat | None]]] = {}
    for (panel, method, variation), curve in study.curves.items():
        if list(parse_variation(variation)) == ["rounds"]:
            for s in curve:
                score = study.score(panel, method, s, "test", variation)
                scores.setdefault(panel, {}).setdefault(method, {})[s] = score
    figures = []
    for panel in sorted(scores, key=panel_order):
        curves = []
        for method in sorted(scores[panel], key=method_order):
            points = ((100 * s, score) for s, score in sorted(scores[panel][method].items()))
            curves.append(_curve(method_name(method), method_style(method), method, points, "edges removed"))
        figures += _line_chart(study, panel, "edges removed, %", [c for c in curves if c.points])
    return figures


def _panels_varying(study: Study, accepts: Callable[[dict[str, str]], bool]) -> list[tuple[Panel, str]]:
    """Panels and methods that have a variation of accepted names."""
    varying = {(panel, method) for panel, method, v in study.curves if accepts(parse_variation(v))}
    return sorted(varying, key=lambda key: (panel_order(key[0]), method_order(key[1])))


def _variations(study: Study, panel: Panel, method: str) -> list[str]:
    return [variation for *key, variation in study.curves if key == [panel, method]]


def _colour(n: int) -> int:
    """Style of a bar or line that does not stand for a method."""
    return (0, 1, 2, 7, 3, 9)[n % 6]


def _numeric_order(text: str) -> tuple[float, str]:
    try:
        return float(text), text
    except ValueError:
        return 0.0, text


def _setting(name: str, value: str) -> str:
    return f"{_SYMBOLS[name]} = {value.removesuffix('.0')}"


def _bar(study: Study, panel: Panel, method: str, s: float, variation: str, name: str, n: int) -> Bar | None:
    score = study.score(panel, method, s, "test", variation)
    loss = study.loss(panel, method, s, "", variation)
    if loss is None or score is None:
        return None
    tip = f"{percent(s)} removed: {score}, {loss.text(sign=True)} against dense ({seeds(loss.n)})"
    return Bar(name, _colour(n), loss, tip)


def _bar_chart(
    study: Study, panel: Panel, x: str, groups: Sequence[tuple[str, list[Bar | None]]], keys: list[tuple[str, int]]
) -> list[Figure]:
    shown = [bar for _, group in groups for bar in group if bar is not None]
    if not shown:
        return []
    ends = [0.0, *(b.value.mean + k * (b.value.sd or 0) for b in shown for k in (-1, 1))]
    frame = Frame(
        x=Axis(x, -0.6, len(groups) - 0.4, ticks=tuple(map(float, range(len(groups))))),
        y=Axis.around(f"{metric_of(study, panel)} against dense, points", ends),
        description=f"Difference from the full graph on {panel.title}. Arrow keys move along the bars.",
        height=260,
        names={float(n): name for n, (name, _) in enumerate(groups)},
    )
    return [Figure(panel.title, panel, bars(frame, [group for _, group in groups]), legend(keys, bar=True))]


def _curve(name: str, style: int, method: str, scores: Iterable[tuple[float, Stat | None]], share_of: str) -> Line:
    points = [
        Point(x, stat.mean, stat.sd, f"{x:g} % of the {share_of}: {stat} ({seeds(stat.n)})")
        for x, stat in scores
        if stat
    ]
    return Line(name, style, points, method, emphasised=method in EMPHASISED)


def _line_chart(study: Study, panel: Panel, x: str, curves: Sequence[Line]) -> list[Figure]:
    if not curves:
        return []
    ends = [p.y + k * (p.sd or 0) for c in curves for p in c.points for k in (-1, 1)]
    metric = metric_of(study, panel)
    frame = Frame(
        x=share_axis(x, (p.x for c in curves for p in c.points)),
        y=Axis.around(f"test {metric}, %", ends),
        description=f"Test {metric} on {panel.title} over {x}. Arrow keys move along the points.",
        height=260,
    )
    return [Figure(panel.title, panel, lines(frame, curves), legend([(c.name, c.style) for c in curves]))]
