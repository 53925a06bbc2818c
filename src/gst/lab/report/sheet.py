"""Charts of the page side by side in one SVG file with a legend, for documents and talks."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from markupsafe import Markup

from gst.lab.report.figures import Figure
from gst.lab.report.files import read_template
from gst.lab.report.names import MARKERS
from gst.lab.report.svg import HEIGHT, WIDTH

_GAP = 20  # between charts
_TITLE = 24  # height of the title above each
_KEY, _LINE = 132, 20  # width and height of a legend entry

Keys = dict[str, tuple[int, bool]]  # name of a curve or bar: its style, and whether it is a bar


def sheet(figures: Sequence[Figure], columns: int = 3, measure: str = "") -> str:
    """These charts in rows of ``columns``, with the curves of one measure: ``""``, ``"retrain_"`` or ``"warm_"``."""
    charts = [_chart(figure, measure) for figure in figures]
    keys: Keys = {}
    for figure, chart in zip(figures, charts, strict=True):
        keys.update(_legend_keys(figure) or _chart_keys(chart))
    columns = min(columns, len(charts))
    tallest = max(float(chart.get("viewBox", "").split()[3]) for chart in charts) if charts else HEIGHT
    width = _GAP + columns * (WIDTH + _GAP)
    parts = []
    for n, (figure, chart) in enumerate(zip(figures, charts, strict=True)):
        x, y = _GAP + n % columns * (WIDTH + _GAP), _GAP + n // columns * (tallest + _TITLE + _GAP)
        parts.append(Markup('<text class="title" x="{}" y="{}">{}</text>').format(x + 4, y + 14, figure.title))
        chart.attrib.update(x=str(x), y=str(y + _TITLE), width=str(WIDTH), height=chart.get("viewBox", "").split()[3])
        parts.append(Markup(ElementTree.tostring(chart, encoding="unicode")))
    below = _GAP + -(-len(charts) // max(columns, 1)) * (tallest + _TITLE + _GAP)
    each = max(1, (width - 2 * _GAP) // _KEY)
    for n, (name, (style, bar)) in enumerate(sorted(keys.items(), key=lambda key: key[1])):
        parts.append(_key(name, style, bar, _GAP + 12 + n % each * _KEY, below + 8 + n // each * _LINE))
    height = below + _GAP + -(-len(keys) // each) * _LINE
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" '
        'font-family="system-ui, sans-serif"><style>{2}</style><defs>{3}</defs>'
        '<rect class="paper" width="{0}" height="{1}"/>'
    ).format(round(width), round(height), Markup(_style()), Markup(read_template("markers.svg")))
    return head + Markup("\n").join(parts) + Markup("</svg>\n")


def _chart(figure: Figure, measure: str) -> ElementTree.Element:
    """The chart with the curves of this measure alone, without the attributes for the page's script."""
    chart = ElementTree.fromstring(figure.svg)
    for group in chart.findall("g"):
        if group.get("data-measure", measure) != measure:
            chart.remove(group)
        group.set("class", group.get("class", "").replace(" off", ""))
        for mark in group:
            mark.attrib.pop("data-tip", None)
    chart.attrib.pop("tabindex", None)
    return chart


def _chart_keys(chart: ElementTree.Element) -> Keys:
    return {
        group.get("data-name", ""): (_style_in(group.get("class", "")), False)
        for group in chart.findall("g")
        if group.find("use") is not None
    }


def _legend_keys(figure: Figure) -> Keys:
    """The entries of the chart's legend, if it has one."""
    if not figure.legend:
        return {}
    keys: Keys = {}
    for item in ElementTree.fromstring(figure.legend).findall("li"):
        key = item.find("svg")
        if key is not None:
            keys[key.tail or ""] = _style_in(key.get("class", "")), key.find("rect") is not None
    return keys


def _style_in(classes: str) -> int:
    return int(re.findall(r"\bs(\d+)\b", classes)[0])


def _key(name: str, style: int, bar: bool, x: float, y: float) -> Markup:
    mark = (
        Markup('<rect class="bar" x="{}" y="{}" width="10" height="10"/>').format(x - 5, y - 5)
        if bar
        else Markup('<path class="stroke" d="M{} {}h24"/><use href="#m{}" x="{}" y="{}"/>').format(
            x - 12, y, style % MARKERS, x, y
        )
    )
    return Markup('<g class="line s{}">{}</g><text class="keyname" x="{}" y="{}">{}</text>').format(
        style, mark, x + 17, y + 4, name
    )


def _style() -> str:
    """The style sheet of the page in its light colours."""
    return re.sub(r"light-dark\(([^,]+),[^)]+\)", r"\1", read_template("charts.css"))
