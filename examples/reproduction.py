"""Writes what was measured beside what the paper says: python examples/reproduction.py results docs/reproduction.md …

Everything between ``<!-- NAME -->`` and ``<!-- end -->`` is made anew from the record; the rest is left alone.
"""

import re
import sys
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from scipy.special import stdtrit

from gst.bench.load import load_rows
from gst.bench.rows import Row
from gst.bench.summary import Line, efficiency, summarise
from gst.report.paper import Claim, claims

PART = re.compile(r"(<!-- ([\w+-]+(?: [\w-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
SMALL = ("Cora", "CiteSeer", "PubMed")
NONE = "*not measured yet*\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines) if rows else NONE


def mean(line: Line, column: str, digits: int = 1) -> str:
    if column not in line:
        return "–"
    spread = f" ± {line[f'{column}_sd']:.{digits}f}" if f"{column}_sd" in line else ""
    return f"{line[column]:.{digits}f}{spread}"


def name(line: Line) -> str:
    return " ".join(filter(None, (line["method"], line["recipe"], line["variation"])))


def curves(lines: list[Line], columns: tuple[str, ...], digits: int = 1) -> str:
    """A table for every graph, backbone and column: a method a row, a sparsity a column."""
    parts = []
    for dataset, backbone in dict.fromkeys((line["dataset"], line["backbone"]) for line in lines):
        part = [line for line in lines if (line["dataset"], line["backbone"]) == (dataset, backbone)]
        sparsities = sorted({line["sparsity"] for line in part})
        dense = next((mean(line, "dense_test") for line in part if "dense_test" in line), "–")
        for column in columns:
            found: dict[str, dict[float, str]] = {}
            for line in part:
                if column in line:
                    found.setdefault(name(line), {})[line["sparsity"]] = mean(line, column, digits)
            if found:
                rows = [[key, *(values.get(s, "–") for s in sparsities)] for key, values in found.items()]
                title = f"**{dataset}, {backbone}**, `{column}`, dense {dense}\n\n"
                parts.append(title + table(["removed", *(f"{100 * s:.3g} %" for s in sparsities)], rows))
    return "\n".join(parts) or NONE


def fresh_and_warm(rows: list[Row]) -> str:
    """Every method with GCN: what a fresh model and a warm start lose against the dense model of the same seed."""
    places = [(dataset, sparsity) for dataset in SMALL for sparsity in (0.6, 0.8)]
    found: dict[str, dict[tuple[str, tuple[str, float]], list[float]]] = {}
    dense: dict[str, dict[int, float]] = {dataset: {} for dataset in SMALL}
    for row in rows:
        place = row.dataset, row.sparsity
        if row.backbone != "gcn" or place not in places or row.status != "done" or row.dense_test is None:
            continue
        dense[row.dataset][row.seed] = row.dense_test
        for start, score in (("fresh", row.retrain_test), ("warm", row.warm_test)):
            if score is not None:
                losses = found.setdefault(name(vars(row)), {})
                losses.setdefault((start, place), []).append(score - row.dense_test)
    head = ["", *(f"{dataset} {100 * sparsity:.0f} %" for dataset, sparsity in places)]
    lines = []
    for method, losses in sorted(found.items()):
        for start in ("fresh", "warm"):
            cells = [difference(losses.get((start, place), [])) for place in places]
            lines.append([f"{method}, {start}", *cells])
    full = (f"{d} {fmean(scores.values()):.1f}" for d, scores in dense.items() if scores)
    return f"Dense: {', '.join(full)}.\n\n{table(head, lines)}"


def difference(values: list[float]) -> str:
    """Mean ± half of its 95 % interval (Student's t); the number of seeds where it is not five."""
    seeds = "" if len(values) == 5 else f" ({len(values)})"
    if len(values) < 2:
        return f"{values[0]:+.1f}{seeds}".replace("-", "−") if values else "–"
    half = stdtrit(len(values) - 1, 0.975) * stdev(values) / sqrt(len(values))
    return f"{fmean(values):+.1f} ± {half:.1f}{seeds}".replace("-", "−")


def beside(lines: list[Line], wanted: Callable[[Claim], bool]) -> str:
    """The paper's numbers of one table, each with ours where there is one."""
    rows = []
    for claim in filter(wanted, claims()):
        method, _, recipe = claim.series.partition("/")
        same = [
            line
            for line in lines
            if (line["dataset"], line["backbone"], line["method"]) == (claim.dataset, claim.backbone, method)
            and line["recipe"] == recipe
        ]
        ours = "–"
        if claim.quantity == "score":
            at = [x for x in same if x["sparsity"] == claim.sparsity and x["variation"] == claim.variation]
            ours = mean(at[0], "test") if at else "–"
        elif found := efficiency([line for line in same if line["variation"] == claim.variation]):
            ours = _efficient(found[0], claim.quantity)
        spread = f" ± {claim.sd}" if claim.sd is not None else ""
        removed = [] if claim.sparsity is None else [f"{100 * claim.sparsity:.3g} %"]
        where = ", ".join([*removed, *claim.variation.split(";")] if claim.variation else removed)
        paper = f"{claim.value:.4g}{spread}"
        rows.append([claim.dataset, claim.backbone, claim.series, where, claim.quantity, paper, ours])
    measured = [row for row in rows if row[-1] != "–"]
    return table(["data", "backbone", "method", "at", "quantity", "paper", "ours"], measured)


def _efficient(line: Line, quantity: str) -> str:
    if quantity == "extreme sparsity":
        return f"{100 * line['extreme']:.3g}"
    if quantity == "MACs saved":
        return f"{100 * line['macs_saving']:.3g}" if "macs_saving" in line else "–"
    return f"{line['speedup']:.3g}" if "speedup" in line else "–"


def generate(part: str, rows: list[Row]) -> str:
    """The text of a part: an experiment of ours, or a table of the paper."""
    experiment, _, what = part.partition(" ")
    quick = [row for row in rows if row.experiment == experiment and row.profile != "smoke"]
    lines = summarise(quick)
    if what == "spectra":
        return curves(lines, ("spectrum_top", "spectrum_bottom"), 2)
    if what == "fresh and warm":
        return fresh_and_warm(quick)
    if what.startswith("table"):
        return beside(lines, lambda claim: claim.table == f"Table {what.removeprefix('table-')}")
    return curves(lines, ("test", "retrain_test", "warm_test"))


def main(record: str, *documents: str) -> None:
    rows = load_rows(Path(record)).rows
    for path in map(Path, documents):
        text = PART.sub(lambda part: f"{part[1]}\n{generate(part[2], rows)}\n{part[3]}", path.read_text())
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["results", "docs/reproduction.md", "docs/going-further.md"])
