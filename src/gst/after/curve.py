"""The curve of a search as text for a terminal, as a table and as a picture."""

import csv
import io
from collections.abc import Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from gst.after.search import Point, SafeSparsity
from gst.base.errors import InputError
from gst.base.stats import Difference
from gst.storage import files

SEARCH, TABLE, PICTURE = "search.json", "curve.csv", "curve.png"
WIDTH = 19  # characters of a strip, so that a row fits into 80 columns


def save(safe: SafeSparsity, folder: str | PathLike[str]) -> Path:
    """An ordinary run folder with ``search.json``, ``curve.csv`` and, where matplotlib is installed, ``curve.png``."""
    check(folder)
    path = safe.result.save(folder)
    files.write_json(path / SEARCH, summary(safe))  # first: it marks the other two as those of a search
    files.write_bytes(path / TABLE, table(safe.rows()).encode())
    if find_spec("matplotlib") is not None:
        files.write_bytes(path / PICTURE, picture(safe))
    return path


def check(folder: str | PathLike[str]) -> None:
    """Refuses a folder whose files of these names do not belong to an earlier search."""
    path = Path(folder)
    existing = [name for name in (SEARCH, TABLE, PICTURE) if (path / name).exists()]
    if existing and not _is_search(path / SEARCH):
        raise InputError(f"{path / existing[0]} does not belong to a search of gst: move it or choose another folder")


def _is_search(path: Path) -> bool:
    try:
        return "curve" in files.read_json(path)
    except InputError:
        return False


def summary(safe: SafeSparsity) -> dict[str, Any]:
    """Everything but the result, as plain values."""
    names = ("sparsity", "tolerance", "confidence", "verdict", "accuracy", "decision", "seeds")
    return {**{name: getattr(safe, name) for name in names}, "curve": safe.rows()}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def strips(safe: SafeSparsity) -> list[str]:
    """One line per point: its validation interval on a common scale, from the worst loss to the best gain.

    ``●`` is the mean, ``┊`` the tolerance.
    """
    ends = [end for point in safe.curve for end in (point.val.mean, point.val.low, point.val.high) if end is not None]
    low, high = min([*ends, -safe.tolerance]), max([*ends, 0.0])
    return [_strip(point.val, safe.tolerance, low, high) for point in safe.curve]


def _strip(val: Difference, tolerance: float, low: float, high: float) -> str:
    def column(value: float) -> int:
        return round((WIDTH - 1) * (value - low) / max(high - low, 1e-9))

    cells = [" "] * WIDTH
    if val.low is not None and val.high is not None:
        start, end = column(val.low), column(val.high)
        cells[start : end + 1] = "─" * (end - start + 1)
    cells[column(-tolerance)] = "┊"
    cells[column(val.mean)] = "●"
    return "".join(cells)


def name(metrics: dict[str, Any]) -> str:
    """Method, backbone and data."""
    return " · ".join(filter(None, (metrics.get(part) for part in ("method", "backbone", "dataset"))))


def share(sparsity: float) -> str:
    """11.25 %."""
    return f"{round(100 * sparsity, 4):g} %"


def show(difference: Difference) -> str:
    """−0.3 [−0.9, +0.2]."""
    text = f"{difference.mean:+.1f}"
    if difference.low is not None:
        text += f" [{difference.low:+.1f}, {difference.high:+.1f}]"
    return text.replace("-", "−")


def picture(safe: SafeSparsity) -> bytes:
    """A PNG of both differences with their intervals over sparsity, the tolerance and the selected sparsity."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - slow to load, needed only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 3.8), dpi=150)
    canvas, axes = FigureCanvasAgg(figure), figure.add_subplot()
    axes.axhline(0, color="black", linewidth=1, linestyle="--", label="dense graph")
    axes.axhspan(-safe.tolerance, 0, color="tab:green", alpha=0.12, linewidth=0, label="within the tolerance")
    percent = [100 * point.sparsity for point in safe.curve]
    for part, colour, marker in (("val", "tab:blue", "o"), ("test", "tab:orange", "s")):
        differences = [getattr(point, part) for point in safe.curve]
        label = "validation (decides)" if part == "val" else "test (confirms)"
        shift = 0.25 if part == "test" else -0.25
        axes.errorbar(
            [p + shift for p in percent],
            [d.mean for d in differences],
            [[_half_width(d, end) for d in differences] for end in ("low", "high")],
            color=colour,
            marker=marker,
            markersize=4,
            capsize=3,
            linewidth=1,
            label=label,
        )
    axes.step(
        percent,
        [point.fitted for point in safe.curve],
        color="tab:blue",
        alpha=0.4,
        where="mid",
        label="falling curve",
    )
    axes.axvline(100 * safe.sparsity, color="tab:green", linewidth=1)
    metrics = safe.result.metrics
    axes.set_title(f"{name(metrics)}: {share(safe.sparsity)} removed ({safe.verdict} on test)", fontsize=10)
    unit = "ROC-AUC" if metrics["metric"] == "rocauc" else "accuracy"
    axes.set(xlabel="sparsity: share of edges removed, %", ylabel=f"{unit}, sparse − dense, points")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="best")
    figure.tight_layout()
    stream = io.BytesIO()
    canvas.print_png(stream)
    return stream.getvalue()


def _half_width(difference: Difference, end: str) -> float:
    value = getattr(difference, end)
    return 0.0 if value is None else abs(value - difference.mean)


def lines(safe: SafeSparsity) -> list[list[Any]]:
    """Rows for a terminal."""

    def mark(point: Point) -> str:
        return "◀" if point.sparsity == safe.sparsity else ""

    return [
        [share(point.sparsity), point.edges_kept, show(point.val), strip, show(point.test), mark(point)]
        for point, strip in zip(safe.curve, strips(safe), strict=True)
    ]
