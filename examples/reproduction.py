"""Writes what was measured beside what the paper says: python examples/reproduction.py results docs/reproduction.md …

Everything between ``<!-- NAME -->`` and ``<!-- end -->`` is made anew from the record; the rest is left alone.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

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


def fresh_and_warm(lines: list[Line]) -> str:
    """Every method on the same graphs with GCN: a fresh model's score / that of a warm start, dense first."""
    gcn = [line for line in lines if line["backbone"] == "gcn" and line["dataset"] in SMALL]
    places = [(dataset, sparsity) for dataset in SMALL for sparsity in (0.6, 0.8)]
    found: dict[str, dict[tuple[str, float], str]] = {}
    for line in gcn:
        place = line["dataset"], line["sparsity"]
        if place in places and "retrain_test" in line:
            pair = f"{line['retrain_test']:.1f} / " + (f"{line['warm_test']:.1f}" if "warm_test" in line else "–")
            found.setdefault(name(line), {})[place] = f"{pair} ({line['seeds']})"
            found.setdefault("dense", {})[place] = f"{line['dense_test']:.1f}"
    best = sorted(found, key=lambda key: key != "dense")
    head = ["", *(f"{dataset} {100 * sparsity:.0f} %" for dataset, sparsity in places)]
    return table(head, [[key, *(found[key].get(place, "–") for place in places)] for key in best])


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
        return fresh_and_warm(lines)
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
