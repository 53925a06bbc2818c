"""The tables that ``gst bench`` prints: one row per method, one column per sparsity."""

from collections.abc import Sequence

from gst.cli import console
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import Line, efficiency, summarise

_TITLES = {
    "test": "returned model, test",
    "frozen_test": "frozen model, test",
    "retrain_test": "fresh model, test",
    "warm_test": "warm start, test",
    "spectrum_top": "mean relative error of the largest eigenvalues",
    "spectrum_bottom": "mean relative error of the smallest eigenvalues above zero",
    "normalised_top": "the same of the normalised Laplacian, largest",
    "normalised_bottom": "the same of the normalised Laplacian, smallest above zero",
}


def show(experiment: str, rows: Sequence[Row]) -> None:
    """Means ± standard deviations over seeds; of ``rq3`` the efficiency table."""
    if experiment == "rq3":
        _show_efficiency(efficiency(rows))
        return
    lines = summarise(rows)
    for dataset, backbone in dict.fromkeys((line["dataset"], line["backbone"]) for line in lines):
        part = [line for line in lines if (line["dataset"], line["backbone"]) == (dataset, backbone)]
        dense = next((line["dense_test"] for line in part if "dense_test" in line), None)
        reference = "" if dense is None else f" · dense {dense:.1f}"
        for column, title in _TITLES.items():
            if any(column in line for line in part):
                _pivot(f"{dataset} · {backbone} · {title}{reference if 'test' in column else ''}", column, part)


def _pivot(title: str, column: str, lines: Sequence[Line]) -> None:
    sparsities = sorted({line["sparsity"] for line in lines})
    rows: dict[str, dict[float, str]] = {}
    for line in lines:
        name = " ".join(filter(None, (line["method"], line["variation"])))
        rows.setdefault(name, {})[line["sparsity"]] = _mean(line, column)
    cells = [[name, *(means.get(s, "–") for s in sparsities)] for name, means in rows.items()]
    width = sum(2 + max(len(row[index]) for row in cells) for index in range(len(sparsities) + 1))
    if console.out.is_terminal and width > console.out.width + 2:  # rather no spread than a truncated number
        cells = [[cell.partition(" ±")[0] for cell in row] for row in cells]
        title += " · means; spreads in a wider window"
    console.table(title, ["", *(f"{s:.4g}" for s in sparsities)], cells)
    console.say("")


def _mean(line: Line, column: str) -> str:
    if column not in line:
        return "–"
    digits = 2 if column.startswith(("spectrum", "normalised")) else 1
    spread = f" ± {line[f'{column}_sd']:.{digits}f}" if f"{column}_sd" in line else ""
    return f"{line[column]:.{digits}f}{spread}"


def _show_efficiency(lines: Sequence[Line]) -> None:
    columns = ["data set", "backbone", "method", "returned", "fresh", "warm", "saved", "speed-up", "rank"]
    cells = []
    for line in lines:
        saved = f"{line['macs_saving']:.0%}" if "macs_saving" in line else None
        speedup = f"{line['speedup']:.2f}×" if "speedup" in line else None
        names = (line["dataset"], line["backbone"], line["method"])
        sparsities = (f"{line[name]:.0%}" for name in ("safe", "safe_fresh", "safe_warm"))
        cells.append([*names, *sparsities, saved, speedup, f"{line['rank']:.1f}"])
    console.table("largest sparsity without loss on validation", columns, cells)
