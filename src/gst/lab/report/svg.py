"""Charts as SVG text, coloured by the page's style sheet."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from gst.base.stats import Stat
from gst.lab.report.names import MARKERS

WIDTH, HEIGHT = 384, 284
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 14, 44
_TURN = WIDTH - 90  # labels of points beyond this x stand to their left
_DODGE = 1.6  # pixels between the error bars of two curves, which would otherwise overlap


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    sd: float | None = None
    tip: str = ""  # shown on hover or focus
    label: str = ""  # written beside it


@dataclass(frozen=True)
class Line:
    """A curve; ``method`` and ``measure`` are for the page's filters."""

    name: str
    style: int
    points: Sequence[Point]
    method: str = ""
    measure: str | None = None
    joined: bool = True
    emphasised: bool = False
    plain: bool = False  # a marker at every twentieth point only

    @property
    def attributes(self) -> Markup:
        text = Markup(' data-name="{}"').format(self.name)
        text += Markup(' data-method="{}"').format(self.method) if self.method else ""
        return text + (Markup(' data-measure="{}"').format(self.measure) if self.measure is not None else "")


@dataclass(frozen=True)
class Axis:
    """A scale from data to pixels, with its name and round ticks."""

    name: str
    low: float
    high: float
    suffix: str = ""
    ticks: tuple[float, ...] = ()

    @classmethod
    def around(cls, name: str, values: Iterable[float], suffix: str = "", pad: float = 0.06, count: int = 5) -> "Axis":
        """Wide enough for all values; ticks at round numbers."""
        known = list(values)
        low, high = min(known), max(known)
        margin = pad * (high - low) or max(abs(high) * pad, 0.5)
        low, high = low - margin, high + margin
        return cls(name, low, high, suffix, tuple(round_ticks(low, high, count)))

    def position(self, value: float, start: float, end: float) -> float:
        return start + (value - self.low) / (self.high - self.low) * (end - start)


def round_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten inside [low, high], about ``count`` of them.

    >>> round_ticks(58.3, 83.1)
    [60, 65, 70, 75, 80]
    """
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= count + 0.5)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 10) for n in range(first, last + 1)]


@dataclass(frozen=True)
class Frame:
    """The background of a chart: two axes, and a description for screen readers."""

    x: Axis
    y: Axis
    description: str
    height: int = HEIGHT
    reference: tuple[str, Stat] | None = None  # the dense line
    names: dict[float, str] = field(default_factory=dict)  # of the ticks on x, instead of numbers

    def px(self, value: float) -> float:
        return round(self.x.position(value, LEFT, WIDTH - RIGHT), 1)

    def py(self, value: float) -> float:
        return round(self.y.position(value, self.height - BOTTOM, TOP), 1)

    def wrap(self, content: Iterable[str]) -> Markup:
        head = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" tabindex="0" aria-label="{}">').format(
            WIDTH, self.height, self.description
        )
        return head + Markup("").join([*self._background(), *content]) + Markup("</svg>")

    def _background(self) -> Iterable[Markup]:
        bottom, right = self.height - BOTTOM, WIDTH - RIGHT
        for tick in self.y.ticks:
            y = self.py(tick)
            yield Markup(
                '<path class="gridline" d="M{} {}H{}"/><text class="tick" x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(LEFT, y, right, LEFT - 7, y + 3.5, f"{tick:g}".replace("-", "−") + self.y.suffix)
        for tick in self.x.ticks:
            x = self.px(tick)
            name = self.names.get(tick, f"{tick:g}".replace("-", "−") + self.x.suffix)
            yield Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>').format(x, bottom + 16, name)
        yield Markup('<path class="axis" d="M{} {}H{}"/>').format(LEFT, bottom, right)
        yield Markup('<text class="name" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            (LEFT + right) / 2, self.height - 7, self.x.name
        )
        yield Markup(
            '<text class="name" transform="translate(11 {})rotate(-90)" text-anchor="middle">{}</text>'
        ).format((TOP + bottom) / 2, self.y.name)
        if self.reference is not None:
            yield self._reference(*self.reference)

    def _reference(self, name: str, stat: Stat) -> Markup:
        right, y = WIDTH - RIGHT, self.py(stat.mean)
        band = Markup("")
        if stat.sd:
            top, end = self.py(stat.mean + stat.sd), self.py(stat.mean - stat.sd)
            band = Markup('<rect class="band" x="{}" y="{}" width="{}" height="{}"/>').format(
                LEFT, top, right - LEFT, round(end - top, 1)
            )
        return band + Markup(
            '<path class="dense" d="M{} {}H{}"/><text class="densename" x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(LEFT, y, right, right - 2, y - 5, f"{name} {stat.mean:.1f}")


def lines(frame: Frame, curves: Sequence[Line], shown: str | None = "") -> Markup:
    """Curves with error bars; those of another measure than ``shown`` are hidden at first."""
    position = {name: n for n, name in enumerate(dict.fromkeys(c.method or c.name for c in curves))}
    middle = (len(position) - 1) / 2
    drawn = sorted(curves, key=lambda c: (c.emphasised, -c.style))  # the emphasised ones on top
    labels = _Labels()
    return frame.wrap(_line(frame, c, _DODGE * (position[c.method or c.name] - middle), shown, labels) for c in drawn)


class _Labels:
    """Labels beside points; one that would overlap another is left out, since the tip of the point has it too."""

    def __init__(self) -> None:
        self.placed: list[tuple[str | None, float, float, float]] = []

    def try_place(self, measure: str | None, x: float, y: float, text: str) -> bool:
        """Places a label to the right of x or, near the border, to the left, unless it would overlap another."""
        width = 6.0 * len(text) + 7
        start = x - width if x > _TURN else x
        for other, begin, end, height in self.placed:
            together = other is None or measure is None or other == measure
            if together and abs(height - y) < 12 and start < end and begin < start + width:
                return False
        self.placed.append((measure, start, start + width, y))
        return True


def _line(frame: Frame, line: Line, shift: float, shown: str | None, labels: _Labels) -> Markup:
    shift = shift if any(p.sd for p in line.points) and line.joined else 0.0
    pixels = [(round(frame.px(p.x) + shift, 1), frame.py(p.y)) for p in line.points]
    hidden = line.measure is not None and line.measure != shown
    classes = f"line s{line.style}" + (" strong" if line.emphasised else "") + (" off" if hidden else "")
    parts = [Markup('<g class="{}"{}>').format(classes, line.attributes)]
    bars = "".join(
        f"M{x} {frame.py(p.y - p.sd)}V{frame.py(p.y + p.sd)}"
        for p, (x, _) in zip(line.points, pixels, strict=True)
        if p.sd
    )
    if bars:
        parts.append(Markup('<path class="bars" d="{}"/>').format(bars))
    if line.joined:
        parts.append(Markup('<path class="stroke" d="M{}"/>').format("L".join(f"{x} {y}" for x, y in pixels)))
    for n, (p, (x, y)) in enumerate(zip(line.points, pixels, strict=True)):
        if not p.tip or (line.plain and n % 20 != 10):
            continue
        parts.append(Markup('<use href="#m{}" x="{}" y="{}" data-tip="{}"/>').format(line.style % MARKERS, x, y, p.tip))
        if p.label and labels.try_place(line.measure, x, y, p.label):
            left = x > _TURN
            parts.append(
                Markup('<text class="label" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                    round(x + (-7 if left else 7), 1), round(y - 6, 1), "end" if left else "start", p.label
                )
            )
    return Markup("").join(parts) + Markup("</g>")


@dataclass(frozen=True)
class Bar:
    name: str
    style: int
    value: Stat
    tip: str


def bars(frame: Frame, groups: Sequence[Sequence[Bar | None]]) -> Markup:
    """Groups of bars from zero at x = 0, 1, 2, …; a missing bar leaves a gap."""
    zero = frame.py(0)
    slot = (frame.px(1) - frame.px(0)) * 0.82
    parts = [Markup('<path class="zero" d="M{} {}H{}"/>').format(LEFT, zero, WIDTH - RIGHT)]
    for n, group in enumerate(groups):
        width = min(slot / max(len(group), 1), 34)
        start = frame.px(n) - width * len(group) / 2
        for k, bar in enumerate(group):
            if bar is None:
                continue
            x, y = start + k * width, frame.py(bar.value.mean)
            parts.append(
                Markup(
                    '<g class="line s{}" data-name="{}">'
                    '<rect class="bar" x="{}" y="{}" width="{}" height="{}" data-tip="{}"/>'
                ).format(
                    bar.style,
                    bar.name,
                    round(x + 0.5, 1),
                    min(y, zero),
                    round(width - 1, 1),
                    round(max(abs(y - zero), 1), 1),
                    bar.tip,
                )
            )
            if bar.value.sd:
                low, high = frame.py(bar.value.mean - bar.value.sd), frame.py(bar.value.mean + bar.value.sd)
                parts.append(Markup('<path class="whisker" d="M{} {}V{}"/>').format(round(x + width / 2, 1), low, high))
            parts.append(Markup("</g>"))
    return frame.wrap(parts)


def legend(entries: Iterable[tuple[str, int]], bar: bool = False) -> Markup:
    """Names beside their markers."""
    items = (
        Markup('<li><svg class="key s{}" viewBox="-7 -7 14 14" aria-hidden="true">{}</svg>{}</li>').format(
            style,
            Markup('<rect class="bar" x="-5" y="-5" width="10" height="10"/>')
            if bar
            else Markup('<use href="#m{}"/>').format(style % MARKERS),
            name,
        )
        for name, style in entries
    )
    return Markup('<ul class="legend">') + Markup("").join(items) + Markup("</ul>")
