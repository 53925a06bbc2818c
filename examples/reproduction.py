"""Writes what was measured beside what the paper says: python examples/reproduction.py results docs/reproduction.md …

Everything between ``<!-- NAME -->`` and ``<!-- end -->`` is made anew from the record, and so are the pictures in
``figures/`` beside the first document; the rest is left alone.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from gst.after.search import Point, judge
from gst.after.search import difference as paired
from gst.base.versions import is_current
from gst.lab.bench.load import load_rows
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import Line, efficiency, summarise
from gst.lab.report import figures, varied
from gst.lab.report.paper import Claim, claims
from gst.lab.report.sheet import sheet
from gst.lab.report.summary import Study

PART = re.compile(r"(<!-- ([\w+-]+(?: [\w-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
SMALL = ("Cora", "CiteSeer", "PubMed")
NONE = "*not measured yet*\n"
DOCUMENTS = ("docs/reproduction.md", "docs/going-further.md", "docs/search.md")


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
    """A table for every graph, backbone and column, folded: a method a row, a sparsity a column."""
    parts = []
    for dataset, backbone in dict.fromkeys((line["dataset"], line["backbone"]) for line in lines):
        part = [line for line in lines if (line["dataset"], line["backbone"]) == (dataset, backbone)]
        sparsities = sorted({line["sparsity"] for line in part})
        dense = mean(max(part, key=lambda line: line["seeds"]), "dense_test")
        tables = []
        for column in columns:
            found: dict[str, dict[float, str]] = {}
            for line in part:
                if column in line:
                    found.setdefault(name(line), {})[line["sparsity"]] = mean(line, column, digits)
            if found:
                rows = [[key, *(values.get(s, "–") for s in sparsities)] for key, values in found.items()]
                tables.append(table([f"`{column}`", *(f"{100 * s:.3g} %" for s in sparsities)], rows))
        folded = f"<details><summary>{dataset}, {backbone}: dense {dense}; sparsity from left to right</summary>\n\n"
        parts.append(folded + "\n".join(tables) + "\n</details>\n")
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
    if not values:
        return "–"
    found, seeds = paired(values), "" if len(values) == 5 else f" ({len(values)})"
    half = "" if found.high is None else f" ± {found.high - found.mean:.1f}"
    return f"{found.mean:+.1f}{half}{seeds}".replace("-", "−")


def overall(rows: list[Row]) -> str:
    """Every method over all small graphs and backbones: mean difference to dense, the best fresh model first."""
    study = Study(row for row in rows if row.dataset in SMALL)
    places = [(start, sparsity) for start in COLUMN for sparsity in (0.4, 0.6, 0.8)]
    found = {place: study.losses(place[1], COLUMN[place[0]]) for place in places}
    order, panels = found["fresh", 0.6]
    lines = [
        [series.replace("/", " "), *(f"{found[place][0][series]:+.1f}".replace("-", "−") for place in places)]
        for series in order
        if all(series in losses for losses, _ in found.values())
    ]
    head = [f"{panels} panels", *(f"{start} {100 * sparsity:.0f} %" for start, sparsity in places)]
    return table(head, lines)


def extremes(rows: list[Row]) -> str:
    """The largest sparsity within half a point of dense, of every method: on a grid, decided as gst search decides."""
    curves: dict[tuple[str, str, str], dict[str, dict[float, list[Row]]]] = {}
    for row in rows:
        if row.dataset in SMALL and row.status == "done":
            curve = curves.setdefault((name(vars(row)), row.dataset, row.backbone), {})
            for start, score in (("returned", row.val), ("fresh", row.retrain_val), ("warm", row.warm_val)):
                if score is not None and (start == "returned") == (row.recipe == "deploy"):
                    curve.setdefault(start, {}).setdefault(row.sparsity, []).append(row)
    places = [(dataset, backbone) for dataset in SMALL for backbone in ("gcn", "gin", "gat")]
    methods = sorted({method for method, _, _ in curves})
    cells = [[method, *(_furthest(curves.get((method, *place), {})) for place in places)] for method in methods]
    return table(["", *(f"{dataset} {backbone.upper()}" for dataset, backbone in places)], cells)


COLUMN = {"returned": "", "fresh": "retrain_", "warm": "warm_"}


def _furthest(starts: dict[str, dict[float, list[Row]]]) -> str:
    """Of a fresh and a warm-started model, the one that goes further."""
    best, said = -1.0, "–"
    for start, curve in starts.items():
        points = []
        for sparsity, found in sorted(curve.items()):
            val, test = (
                paired(getattr(row, f"{COLUMN[start]}{part}") - getattr(row, f"dense_{part}") for row in found)
                for part in ("val", "test")
            )
            points.append(Point(sparsity, 0, val, test, fitted=0.0, within=False))
        within = [point for point in judge(points, 0.5) if point.within]
        point = within[-1] if within else None
        if (point.sparsity if point else 0.0) > best:
            best = point.sparsity if point else 0.0
            said = f"{100 * best:.0f} % {start} ({point.test.mean:+.1f})".replace("-", "−") if point else "none"
    return said


def beside(lines: list[Line], wanted: Callable[[Claim], bool]) -> str:
    """The paper's numbers of one table and ours: a method a row, a setting or quantity a column."""
    columns: dict[str, None] = {}
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    measured = False
    for claim in filter(wanted, claims()):
        ours = _ours(lines, claim)
        spread = f" ± {claim.sd}" if claim.sd is not None else ""
        removed = [] if claim.sparsity is None else [f"{100 * claim.sparsity:.3g} %"]
        score = [] if claim.quantity == "score" else [claim.quantity]
        at = ", ".join([*score, *removed, *filter(None, claim.variation.split(";"))])
        columns[at], measured = None, measured or ours != "–"
        row = found.setdefault((claim.dataset, claim.backbone, claim.series), {})
        row[at] = f"{claim.value:.4g}{spread} / {ours}"
    rows = [[*key, *(row.get(at, "") for at in columns)] for key, row in found.items()]
    said = "paper / ours" if measured else "Paper; ours is not measured"
    return f"{said[0].upper()}{said[1:]}:\n\n{table(['data', 'backbone', 'method', *columns], rows)}"


def _ours(lines: list[Line], claim: Claim) -> str:
    """What was measured for a number of the paper."""
    method, _, recipe = claim.series.partition("/")
    wanted = claim.dataset, claim.backbone, method, recipe, claim.variation
    names = ("dataset", "backbone", "method", "recipe", "variation")
    same = [line for line in lines if tuple(line[name] for name in names) == wanted]
    if claim.quantity == "score":
        at = [line for line in same if line["sparsity"] == claim.sparsity]
        return mean(at[0], "test") if at else "–"
    found = efficiency(same)
    return _efficient(found[0], claim.quantity) if found else "–"


def _efficient(line: Line, quantity: str) -> str:
    if quantity == "extreme sparsity":
        return f"{100 * line['extreme']:.3g}"
    if quantity == "MACs saved":
        return f"{100 * line['macs_saving']:.3g}" if "macs_saving" in line else "–"
    return f"{line['speedup']:.3g}" if "speedup" in line else "–"


def spoken(rows: list[Row]) -> str:
    """What the paper says in words of its figures, each with ours: points against dense, paired by seed."""

    def lost(experiment: str, dataset: str, backbone: str, who: str, sparsity: float, variation: str = "") -> str:
        found = [
            row.test - row.dense_test
            for row in rows
            if (row.experiment, row.dataset, row.backbone, row.variation) == (experiment, dataset, backbone, variation)
            and (name({**vars(row), "variation": ""}), row.sparsity, row.status) == (who, sparsity, "done")
            and row.test is not None and row.dense_test is not None
        ]  # fmt: skip
        return difference(found)

    def ahead(dataset: str, backbone: str) -> str:
        """GST (paper) less the best of the others at 80 %, both as returned."""
        place = dataset, backbone, 0.8
        lines = [line for line in quick if (line["dataset"], line["backbone"], line["sparsity"]) == place]
        scores = {name(line): line["test"] - line["dense_test"] for line in lines if "test" in line}
        own = scores.pop("gst paper", None)
        others = {who: score for who, score in scores.items() if not who.startswith("gst")}
        if own is None or not others:
            return "–"
        best = max(others, key=others.__getitem__)
        return f"{own - others[best]:+.1f} ({best})".replace("-", "−")

    quick = summarise(row for row in rows if row.experiment == "rq1" and row.profile == "quick")
    panels = [(dataset, backbone) for dataset in SMALL for backbone in ("gcn", "gin", "gat")]
    said = [
        (
            "figure 1, ogbn-proteins: UGS loses over 5.5 beyond 50 %, spectral radius less",
            "GraphSAGE, 60 %: "
            + "; ".join(
                f"{d} UGS {lost('fig1', d, 'sage', 'ugs', 0.6)}, "
                f"spectral radius {lost('fig1', d, 'sage', 'spectral-radius', 0.6)}"
                for d in ("Cora", "CiteSeer")
            ),
        ),
        (
            "RQ1: GST ahead of every other at 80 %, by 1.23 to 5.39",
            "GST (paper) less the best other: " + ", ".join(f"{d} {b.upper()} {ahead(d, b)}" for d, b in panels),
        ),
        (
            "RQ1: GIN on PubMed at 50 %, GST +0.3 over dense, others −0.36 to −3.17",
            f"GST (paper) {lost('rq1', 'PubMed', 'gin', 'gst paper', 0.5)}",
        ),
        (
            "RQ4: GCN on Cora, 30 % of the edges relocated, GST at 10 % gains 7.23",
            lost("rq4-defense", "Cora", "gcn", "gst paper", 0.1, "relocated=0.3"),
        ),
        (
            "RQ4: GAT, 40 % relocated, GST at 30 % gains 5.09 (PubMed)",
            ", ".join(f"{d} {lost('rq4-defense', d, 'gat', 'gst paper', 0.3, 'relocated=0.4')}" for d in SMALL[:2]),
        ),
    ]
    return table(["paper", "ours"], [list(pair) for pair in said])


def generate(part: str, rows: list[Row]) -> str:
    """The text of a part: an experiment of ours, or a table of the paper."""
    if part == "ages":
        return ages(rows)
    if part == "spoken":
        return spoken(rows)
    experiment, _, what = part.partition(" ")
    quick = [row for row in rows if row.experiment == experiment and row.profile != "smoke"]
    lines = summarise(quick)
    if what == "spectra":
        return curves(lines, ("spectrum_top", "spectrum_bottom"), 2)
    if what == "fresh and warm":
        return fresh_and_warm(quick)
    if what == "overall":
        return overall(quick)
    if what == "extremes":
        return extremes(quick)
    if what.startswith("table"):
        return beside(lines, lambda claim: claim.table == f"Table {what.removeprefix('table-')}")
    return curves(lines, ("test", "retrain_test", "warm_test"))


def pictures(rows: list[Row], folder: Path) -> None:
    """The charts of every experiment, a file each."""
    folder.mkdir(exist_ok=True)

    def of(experiment: str, *datasets: str) -> Study:
        found = (row for row in rows if row.experiment == experiment and row.profile != "smoke")
        return Study(row for row in found if not datasets or row.dataset in datasets)

    fig1, accuracy, large = of("fig1"), of("rq1", *SMALL), of("rq1", "Computers", "Physics")
    drawn = {
        "fig1": sheet(figures.accuracy(fig1) + figures.spectral_errors(fig1), 2),
        "rq1-returned": sheet(figures.accuracy(accuracy)),
        "rq1-fresh": sheet(figures.accuracy(accuracy), measure="retrain_"),
        "rq1-warm": sheet(figures.accuracy(accuracy), measure="warm_"),
        "rq1-large": sheet(figures.accuracy(large), 2, measure="retrain_"),
        "rq2": sheet(figures.spectra(of("rq2")), 4),
        "rq3": sheet(figures.pareto(accuracy)),
        "rq4-defense": sheet(varied.perturbed(of("rq4-defense"))),
        "rq4-tickets": sheet(varied.tickets(of("rq4-tickets"))),
        "rq5-ablation": sheet(varied.ablations(of("rq5-ablation")), 2),
        "rq5-interval": sheet(varied.settings(of("rq5-interval")), 2),
        "rq5-schedule": sheet(varied.settings(of("rq5-schedule"))),
    }
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text)


def of_one_version(rows: list[Row]) -> list[Row]:
    """Of every experiment the rows of today's code, if they are all there; else those of earlier code, never both."""
    chosen = []
    for experiment in dict.fromkeys(row.experiment for row in rows):
        part = [row for row in rows if row.experiment == experiment]
        now = [row for row in part if is_current(row.versions)]
        chosen += now if _runs(now) == _runs(part) else [row for row in part if not is_current(row.versions)]
    return chosen


def _runs(rows: list[Row]) -> set[tuple[object, ...]]:
    return {(r.dataset, r.backbone, r.method, r.recipe, r.variation, r.sparsity, r.seed) for r in rows}


def ages(rows: list[Row]) -> str:
    """Which experiments are of earlier code."""
    old = sorted({row.experiment for row in rows if not is_current(row.versions)})
    words = ", ".join(f"`{name}`" for name in old)
    return f"Made by earlier versions of the code, to be made again: {words}.\n" if old else "All of today's code.\n"


def main(record: str, *documents: str) -> None:
    rows = of_one_version(load_rows(Path(record)).rows)
    pictures(rows, Path(documents[0]).parent / "figures")
    for path in map(Path, documents):
        text = PART.sub(lambda part: f"{part[1]}\n{generate(part[2], rows)}\n{part[3]}", path.read_text())
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["results", *DOCUMENTS])
