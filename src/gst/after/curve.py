"""The curve of a search: as text for a terminal, as a table, as a picture."""

import csv
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gst.after.search import Difference, Extreme, Point
from gst.base.errors import InputError
from gst.storage import files

SEARCH, TABLE, PICTURE = "search.json", "curve.csv", "curve.png"
WIDTH = 19  # so that a row fits into 80 columns


def save(found: Extreme, folder: str | PathLike[str]) -> Path:
    """A run folder like any other, with ``search.json``, ``curve.csv`` and ``curve.png`` beside the run."""
    check(folder)
    place = found.result.save(folder)
    files.write_json(place / SEARCH, words(found))  # the first: it says whose the other two are
    files.write_bytes(place / TABLE, table(found.rows()).encode())
    files.write_bytes(place / PICTURE, picture(found))
    return place


def check(folder: str | PathLike[str]) -> None:
    """Refuses a folder where files of these names are not those of an earlier search."""
    place = Path(folder)
    there = [name for name in (SEARCH, TABLE, PICTURE) if (place / name).exists()]
    if there and not _is_search(place / SEARCH):
        raise InputError(f"{place / there[0]} is not of a search of gst: move it away or choose another folder")


def _is_search(path: Path) -> bool:
    try:
        return "curve" in files.read_json(path)
    except InputError:
        return False


def words(found: Extreme) -> dict[str, Any]:
    """All of it as plain values."""
    names = ("sparsity", "tolerance", "confidence", "verdict", "accuracy", "decision", "seeds")
    return {**{name: getattr(found, name) for name in names}, "curve": found.rows()}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def strips(found: Extreme) -> list[str]:
    """One line a point: its validation interval on a common scale, which runs from the worst loss to the best gain.

    ``●`` is the mean, ``┊`` the tolerance.
    """
    ends = [end for point in found.curve for end in (point.val.mean, point.val.low, point.val.high) if end is not None]
    low, high = min([*ends, -found.tolerance]), max([*ends, 0.0])
    return [_strip(point.val, found.tolerance, low, high) for point in found.curve]


def _strip(val: Difference, tolerance: float, low: float, high: float) -> str:
    def place(value: float) -> int:
        return round((WIDTH - 1) * (value - low) / max(high - low, 1e-9))

    cells = [" "] * WIDTH
    if val.low is not None and val.high is not None:
        start, end = place(val.low), place(val.high)
        cells[start : end + 1] = "─" * (end - start + 1)
    cells[place(-tolerance)] = "┊"
    cells[place(val.mean)] = "●"
    return "".join(cells)


def name(metrics: dict[str, Any]) -> str:
    """Method, its recipe if it has several, backbone and data."""
    words = [metrics.get(part) for part in ("method", "recipe", "backbone", "dataset")]
    return " · ".join(word for word in words if word)


def share(sparsity: float) -> str:
    """11.25 %."""
    return f"{round(100 * sparsity, 4):g} %"


def show(difference: Difference) -> str:
    """−0.3 [−0.9, +0.2]."""
    text = f"{difference.mean:+.1f}"
    if difference.low is not None:
        text += f" [{difference.low:+.1f}, {difference.high:+.1f}]"
    return text.replace("-", "−")


def picture(found: Extreme) -> bytes:
    """A PNG: both differences with their intervals over the sparsity, the tolerance and the choice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second, for this alone
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 3.8), dpi=150)
    canvas, axes = FigureCanvasAgg(figure), figure.add_subplot()
    axes.axhline(0, color="black", linewidth=1, linestyle="--", label="dense graph")
    axes.axhspan(-found.tolerance, 0, color="tab:green", alpha=0.12, linewidth=0, label="within the tolerance")
    percent = [100 * point.sparsity for point in found.curve]
    for part, colour, marker in (("val", "tab:blue", "o"), ("test", "tab:orange", "s")):
        given = [getattr(point, part) for point in found.curve]
        label = "validation (decides)" if part == "val" else "test (confirms)"
        shift = 0.25 if part == "test" else -0.25
        axes.errorbar(
            [p + shift for p in percent],
            [d.mean for d in given],
            [[_reach(d, "low") for d in given], [_reach(d, "high") for d in given]],
            color=colour,
            marker=marker,
            markersize=4,
            capsize=3,
            linewidth=1,
            label=label,
        )
    axes.step(
        percent,
        [point.fitted for point in found.curve],
        color="tab:blue",
        alpha=0.4,
        where="mid",
        label="falling curve",
    )
    axes.axvline(100 * found.sparsity, color="tab:green", linewidth=1)
    m = found.result.metrics
    axes.set_title(
        f"{name(m)}: {share(found.sparsity)} removed ({found.verdict} on test)",
        fontsize=10,
    )
    unit = "ROC-AUC" if m["metric"] == "rocauc" else "accuracy"
    axes.set(xlabel="sparsity: share of edges removed, %", ylabel=f"{unit}, sparse − dense, points")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="best")
    figure.tight_layout()
    stream = io.BytesIO()
    canvas.print_png(stream)
    return stream.getvalue()


def _reach(difference: Difference, end: str) -> float:
    value = getattr(difference, end)
    return 0.0 if value is None else abs(value - difference.mean)


def lines(found: Extreme) -> list[list[Any]]:
    """Rows for a terminal."""

    def mark(point: Point) -> str:
        return "◀" if point.sparsity == found.sparsity else ""

    return [
        [share(point.sparsity), point.edges_kept, show(point.val), strip, show(point.test), mark(point)]
        for point, strip in zip(found.curve, strips(found), strict=True)
    ]
