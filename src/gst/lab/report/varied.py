"""Figures of what else was varied: ablations, settings, perturbed graphs, lottery tickets."""

from collections.abc import Callable, Iterable, Sequence

from gst.lab.report.figures import DENSE, Figure, is_gst, metric_of, seeds, share_axis
from gst.lab.report.names import ABLATIONS, percent, series_name, series_order, style_of, variations_of
from gst.lab.report.summary import Panel, Stat, Study, by_seed, paired, panel_order
from gst.lab.report.svg import Axis, Bar, Frame, Line, Point, bars, legend, lines

_SYMBOLS = {"interval": "ΔT", "swap_ratio": "τ", "decay": "κ"}


def ablations(study: Study) -> list[Figure]:
    """Loss against dense of GST and of GST without one of its parts, at every sparsity where one was left out."""
    figures = []
    for panel, series in _varied(study, lambda names: any(f"{n}=False" in ABLATIONS for n in names)):
        shown = [v for v in ABLATIONS if (panel, series, v) in study.curves]
        at = {s for v in shown if v for s in study.curve(panel, series, v)}
        groups = [
            (percent(s), [_bar(study, panel, series, s, v, ABLATIONS[v], n) for n, v in enumerate(ABLATIONS)])
            for s in sorted(at)
        ]
        figures += _bars(
            study, panel, "edges removed", groups, [(ABLATIONS[v], _tone(n)) for n, v in enumerate(ABLATIONS)]
        )
    return figures


def settings(study: Study) -> list[Figure]:
    """Loss against dense for each value of a setting; of two, the second makes groups."""
    figures = []
    for panel, series in _varied(study, lambda names: bool(names) and set(names) <= set(_SYMBOLS)):
        kinds = {
            tuple(names): None
            for v in _of(study, panel, series)
            if set(names := variations_of(v)) <= set(_SYMBOLS) and names
        }
        for kind in kinds:
            mine = [v for v in _of(study, panel, series) if tuple(variations_of(v)) == kind]
            values = sorted({variations_of(v)[kind[0]] for v in mine}, key=_number)
            groups: dict[tuple[float, str], list[Bar | None]] = {}
            for v in mine:
                words = variations_of(v)
                rest = " ".join(f"{_SYMBOLS[n]} = {_short(words[n])}" for n in kind[1:])
                for s in study.curve(panel, series, v):
                    group = groups.setdefault((s, rest), [None] * len(values))
                    k = values.index(words[kind[0]])
                    group[k] = _bar(
                        study, panel, series, s, v, f"{_SYMBOLS[kind[0]]} = {_short(words[kind[0]])} {rest}".strip(), k
                    )
            named = [
                (rest if rest and len({s for s, _ in groups}) == 1 else f"{percent(s)} {rest}".strip(), g)
                for (s, rest), g in sorted(groups.items())
            ]
            keys = [(f"{_SYMBOLS[kind[0]]} = {_short(value)}", _tone(n)) for n, value in enumerate(values)]
            at = ", ".join(percent(s) for s in sorted({s for s, _ in groups}))
            figures += _bars(study, panel, f"edges removed: {at}" if len(kind) > 1 else "edges removed", named, keys)
    return figures


def perturbed(study: Study) -> list[Figure]:
    """Score over the share of edges whose end was moved at random: dense, and GST at each sparsity."""
    figures = []
    for panel, series in _varied(study, lambda names: list(names) == ["relocated"]):
        mine = sorted(
            (_number(variations_of(v)["relocated"])[0], v)
            for v in _of(study, panel, series)
            if list(variations_of(v)) == ["relocated"]
        )
        curves = []
        sparsities = sorted({s for _, v in mine for s in study.curve(panel, series, v)})
        full = [
            (
                x,
                Stat.of(
                    by_seed((r for rows in study.curve(panel, series, v).values() for r in rows), "dense_test").values()
                ),
            )
            for x, v in mine
        ]
        curves.append(_curve("dense", DENSE, "", ((100 * x, stat) for x, stat in full), "edges moved"))
        for n, s in enumerate(sparsities):
            found = ((100 * x, study.score(panel, series, s, "test", v)) for x, v in mine)
            name = f"{series_name(series)}, {percent(s)} removed"
            curves.append(_curve(name, _tone(n), series, found, "edges moved"))
        figures += _lines(study, panel, "edges with one end moved, %", [c for c in curves if c.points])
    return figures


def tickets(study: Study) -> list[Figure]:
    """Score of lottery tickets over the sparsity of the graph: weights of UGS, on its own graph and on that of GST."""
    found: dict[Panel, dict[str, dict[float, Stat | None]]] = {}
    for (panel, series, variation), curve in study.curves.items():
        if list(variations_of(variation)) == ["rounds"]:
            for s in curve:
                score = study.score(panel, series, s, "test", variation)
                found.setdefault(panel, {}).setdefault(series, {})[s] = score
    figures = []
    for panel in sorted(found, key=panel_order):
        curves = [
            _curve(
                series_name(s),
                style_of(s),
                s,
                ((100 * x, y) for x, y in sorted(found[panel][s].items())),
                "edges removed",
            )
            for s in sorted(found[panel], key=series_order)
        ]
        figures += _lines(study, panel, "edges removed, %", [c for c in curves if c.points])
    return figures


def _varied(study: Study, wanted: Callable[[dict[str, str]], bool]) -> list[tuple[Panel, str]]:
    """Panels and methods with a variation of these names."""
    found = {(p, s) for p, s, variation in study.curves if wanted(variations_of(variation))}
    return sorted(found, key=lambda key: (panel_order(key[0]), series_order(key[1])))


def _of(study: Study, panel: Panel, series: str) -> list[str]:
    return [v for where, which, v in study.curves if (where, which) == (panel, series)]


def _tone(n: int) -> int:
    """Colours of things that are no methods."""
    return (0, 1, 2, 7, 3, 9)[n % 6]


def _number(text: str) -> tuple[float, str]:
    """For sorting values that are mostly numbers."""
    try:
        return float(text), text
    except ValueError:
        return 0.0, text


def _short(value: str) -> str:
    return value.removesuffix(".0")


def _bar(study: Study, panel: Panel, series: str, s: float, variation: str, name: str, n: int) -> Bar | None:
    dense = study.dense(panel)
    rows = study.curve(panel, series, variation).get(s, ())
    loss = paired(by_seed(rows, "test"), dense)
    score = Stat.of(by_seed(rows, "test").values())
    if loss is None or score is None:
        return None
    return Bar(
        name, _tone(n), loss, f"{percent(s)} removed: {score}, {loss.text(sign=True)} against dense ({seeds(loss.n)})"
    )


def _bars(
    study: Study, panel: Panel, x: str, groups: Sequence[tuple[str, list[Bar | None]]], keys: list[tuple[str, int]]
) -> list[Figure]:
    shown = [bar for _, group in groups for bar in group if bar is not None]
    if not shown:
        return []
    ends = [0.0, *(b.value.mean + k * (b.value.sd or 0) for b in shown for k in (-1, 1))]
    frame = Frame(
        x=Axis(x, -0.6, len(groups) - 0.4, ticks=tuple(map(float, range(len(groups))))),
        y=Axis.around(f"{metric_of(study, panel)} against dense, points", ends),
        says=f"Difference from the full graph on {panel.title}. Arrow keys walk along the bars.",
        height=260,
        names={float(n): name for n, (name, _) in enumerate(groups)},
    )
    return [Figure(panel.title, panel, bars(frame, [group for _, group in groups]), legend(keys, bar=True))]


def _curve(name: str, style: int, series: str, found: Iterable[tuple[float, Stat | None]], words: str) -> Line:
    points = [
        Point(x, stat.mean, stat.sd, f"{x:g} % of the {words}: {stat} ({seeds(stat.n)})") for x, stat in found if stat
    ]
    return Line(name, style, points, series, strong=is_gst(series))


def _lines(study: Study, panel: Panel, x: str, curves: Sequence[Line]) -> list[Figure]:
    if not curves:
        return []
    ends = [p.y + k * (p.sd or 0) for c in curves for p in c.points for k in (-1, 1)]
    metric = metric_of(study, panel)
    frame = Frame(
        x=share_axis(x, (p.x for c in curves for p in c.points)),
        y=Axis.around(f"test {metric}, %", ends),
        says=f"Test {metric} on {panel.title} over {x}. Arrow keys walk along the points.",
        height=260,
    )
    return [Figure(panel.title, panel, lines(frame, curves), legend([(c.name, c.style) for c in curves]))]
