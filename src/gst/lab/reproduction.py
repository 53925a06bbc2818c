"""Writes our measurements beside the paper's claims: python -m gst.lab.reproduction [RECORD [DOCUMENTS]]

Everything between ``<!-- NAME -->`` and ``<!-- end -->`` in the Markdown files of DOCUMENTS is generated from RECORD,
and so are the pictures in ``DOCUMENTS/figures``; the rest is left alone.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from gst.base.versions import is_current
from gst.lab.bench.load import load_rows
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import Line, efficiency, safe_sparsity, summarise
from gst.lab.comparisons import frozen, leads, loss, settings
from gst.lab.markdown import markdown_table
from gst.lab.report import figures, varied
from gst.lab.report.names import EMPHASISED, method_name, method_order
from gst.lab.report.paper import Claim, claims
from gst.lab.report.sheet import sheet
from gst.lab.report.summary import Study
from gst.lab.verdicts import verdicts

PART = re.compile(r"(<!-- ([\w+-]+(?: [\w-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
SMALL = ("Cora", "CiteSeer", "PubMed")
BACKBONES = ("gcn", "gin", "gat")
PREFIXES = {"returned": "", "fresh": "retrain_", "warm": "warm_"}  # of the columns, by model
NOTHING = "*not measured yet*\n"
COMPARISONS = {  # by the name of the part: our rows alone, by current code, compared with each other
    "paper setting": settings,
    "paper leads": leads,
    "models": settings,
    "leads": leads,
    "frozen": frozen,
}


def main(record: str = "results", documents: str = "docs") -> None:
    rows = one_version_each(load_rows(Path(record)).rows)
    draw(rows, Path(documents) / "figures")
    for path in sorted(Path(documents).rglob("*.md")):
        text = path.read_text()
        if PART.search(text):
            path.write_text(PART.sub(lambda part: f"{part[1]}\n{generate(part[2], rows)}\n{part[3]}", text))


def one_version_each(rows: list[Row]) -> list[Row]:
    """Of each experiment, profile and panel the rows by current code if all are, else those by earlier code."""
    selected = []
    parts: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault((row.experiment, row.profile, row.dataset, row.backbone), []).append(row)
    for part in parts.values():
        current = [row for row in part if is_current(row.versions)]
        complete = _runs(current) == _runs(part)
        selected += current if complete else [row for row in part if not is_current(row.versions)]
    return selected


def _runs(rows: list[Row]) -> set[tuple[object, ...]]:
    return {(row.dataset, row.backbone, row.method, row.variation, row.sparsity, row.seed) for row in rows}


def generate(part: str, rows: list[Row]) -> str:
    """The text of a part of a document: of one of our experiments, or of a table of the paper."""
    if part == "versions":
        return versions_text(rows)
    if part == "verdicts":
        return verdicts(rows)
    if part == "statements":
        return statements(rows)
    experiment, _, kind = part.partition(" ")
    profile = "paper" if kind.startswith("paper") else "quick"
    selected = [row for row in rows if (row.experiment, row.profile) == (experiment, profile)]
    if kind in COMPARISONS:
        current = [row for row in selected if is_current(row.versions)]
        return COMPARISONS[kind](current) if current else NOTHING
    if kind == "fresh and warm":
        return fresh_and_warm(selected)
    if kind == "overall":
        return overall(selected)
    if kind == "safe sparsities":
        return safe_sparsities(selected)
    if kind.startswith("table"):
        return compare(selected, lambda claim: claim.table == f"Table {kind.removeprefix('table-')}")
    raise ValueError(f"no part of the documents is called {part!r}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(head, rows) if rows else NOTHING


def mean(line: Line, column: str, digits: int = 1) -> str:
    if column not in line:
        return "–"
    spread = f" ± {line[f'{column}_sd']:.{digits}f}" if f"{column}_sd" in line else ""
    return f"{line[column]:.{digits}f}{spread}"


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def fresh_and_warm(rows: list[Row]) -> str:
    """With GCN, the loss of a fresh model and of a warm start against the dense model of the same seed."""
    columns = [(dataset, sparsity) for dataset in SMALL for sparsity in (0.6, 0.8)]
    losses: dict[str, dict[tuple[str, tuple[str, float]], list[float]]] = {}
    dense: dict[str, dict[int, float]] = {dataset: {} for dataset in SMALL}
    for row in rows:
        column = row.dataset, row.sparsity
        if row.backbone != "gcn" or column not in columns or row.status != "done" or row.dense_test is None:
            continue
        dense[row.dataset][row.seed] = row.dense_test
        for model, score in (("fresh", row.retrain_test), ("warm", row.warm_test)):
            if score is not None:
                of_method = losses.setdefault(row.method, {})
                of_method.setdefault((model, column), []).append(score - row.dense_test)
    lines = [
        [f"{method_name(method)}, {model}", *(loss(losses[method].get((model, column), [])) for column in columns)]
        for method in sorted(losses, key=method_order)
        for model in ("fresh", "warm")
    ]
    head = ["", *(f"{dataset} {100 * sparsity:.0f} %" for dataset, sparsity in columns)]
    full = (f"{dataset} {fmean(scores.values()):.1f}" for dataset, scores in dense.items() if scores)
    return f"Dense: {', '.join(full)}.\n\n{table(head, lines)}"


def overall(rows: list[Row]) -> str:
    """Mean difference to dense over all small graphs and backbones, the best fresh model first."""
    study = Study(row for row in rows if row.dataset in SMALL)
    columns = [(model, sparsity) for model in PREFIXES for sparsity in (0.4, 0.6, 0.8)]
    losses = {column: study.mean_losses(column[1], PREFIXES[column[0]]) for column in columns}
    order, panels = losses["fresh", 0.6]
    lines = [
        [method_name(method), *(signed(losses[column][0][method]) for column in columns)]
        for method in order
        if all(method in means for means, _ in losses.values())
    ]
    return table([f"{panels} panels", *(f"{model} {100 * sparsity:.0f} %" for model, sparsity in columns)], lines)


def safe_sparsities(rows: list[Row]) -> str:
    """The largest safe sparsity of every method on the grid, by the rule of gst search."""
    grid: dict[tuple[str, str, str], dict[float, list[Row]]] = {}
    for row in rows:
        if row.dataset in SMALL and row.status == "done":
            curve = grid.setdefault((row.method, row.dataset, row.backbone), {})
            curve.setdefault(row.sparsity, []).append(row)
    columns = [(dataset, backbone) for dataset in SMALL for backbone in BACKBONES]
    lines = [
        [method_name(method), *(_safest(method, grid.get((method, *column), {})) for column in columns)]
        for method in sorted({method for method, _, _ in grid}, key=method_order)
    ]
    return table(["", *(f"{dataset} {backbone.upper()}" for dataset, backbone in columns)], lines)


def _safest(method: str, curve: dict[float, list[Row]]) -> str:
    """Of the returned model for Deploy; else of a fresh or a warm-started one, whichever goes further."""
    models = ("returned",) if method == "deploy" else ("fresh", "warm")
    safe = {model: safe_sparsity(curve, PREFIXES[model]) or 0.0 for model in models}
    best = max(models, key=lambda model: safe[model])
    if not curve or not safe[best]:
        return "none" if curve else "–"
    tests = ((getattr(row, f"{PREFIXES[best]}test"), row.dense_test) for row in curve[safe[best]])
    losses = [test - dense for test, dense in tests if test is not None and dense is not None]
    return f"{100 * safe[best]:.0f} % {best} ({signed(fmean(losses))})"


def compare(rows: list[Row], accepts: Callable[[Claim], bool]) -> str:
    """The paper's numbers of one table beside ours, with methods as rows and settings or quantities as columns."""
    columns: dict[str, None] = {}
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    measured = False
    for claim in filter(accepts, claims()):
        ours = _ours(rows, claim)
        spread = f" ± {claim.sd}" if claim.sd is not None else ""
        removed = [] if claim.sparsity is None else [f"{100 * claim.sparsity:.3g} %"]
        quantity = [] if claim.quantity == "score" else [claim.quantity]
        column = ", ".join([*quantity, *removed, *filter(None, claim.variation.split(";"))])
        columns[column] = None
        measured = measured or ours != "–"
        line = cells.setdefault((claim.dataset, claim.backbone, method_name(claim.method)), {})
        line[column] = f"{claim.value:.4g}{spread} / {ours}"
    lines = [[*names, *(line.get(column, "") for column in columns)] for names, line in cells.items()]
    caption = "Paper / ours" if measured else "Paper; ours is not measured"
    return f"{caption}:\n\n{table(['data', 'backbone', 'method', *columns], lines)}"


def _ours(rows: list[Row], claim: Claim) -> str:
    """Our number for a claim."""
    names = claim.dataset, claim.backbone, claim.method, claim.variation
    same = [row for row in rows if (row.dataset, row.backbone, row.method, row.variation) == names]
    if claim.quantity == "score":
        lines = [line for line in summarise(same) if line["sparsity"] == claim.sparsity]
        return mean(lines[0], "test") if lines else "–"
    lines = efficiency(same)
    if not lines:
        return "–"
    if claim.quantity == "extreme sparsity":
        return f"{100 * lines[0]['safe']:.3g}"
    if claim.quantity == "MACs saved":
        return f"{100 * lines[0]['macs_saving']:.3g}" if "macs_saving" in lines[0] else "–"
    return f"{lines[0]['speedup']:.3g}" if "speedup" in lines[0] else "–"


def statements(rows: list[Row]) -> str:
    """What the text of the paper says about its figures, beside our differences to dense, paired by seed."""

    def lost(experiment: str, dataset: str, backbone: str, method: str, sparsity: float, variation: str = "") -> str:
        names = experiment, dataset, backbone, method, sparsity, variation
        return loss(
            [
                row.test - row.dense_test
                for row in rows
                if (row.experiment, row.dataset, row.backbone, row.method, row.sparsity, row.variation) == names
                and row.status == "done"
                and row.test is not None
                and row.dense_test is not None
            ]
        )

    def lead(dataset: str, backbone: str) -> str:
        """GST minus the best of the others at 80 %, returned models."""
        panel = dataset, backbone, 0.8
        lines = [line for line in quick if (line["dataset"], line["backbone"], line["sparsity"]) == panel]
        losses = {line["method"]: line["test"] - line["dense_test"] for line in lines if "test" in line}
        others = {method: value for method, value in losses.items() if method not in EMPHASISED}
        if "gst" not in losses or not others:
            return "–"
        best = max(others, key=others.__getitem__)
        return f"{signed(losses['gst'] - others[best])} ({method_name(best)})"

    quick = summarise(row for row in rows if row.experiment == "rq1" and row.profile == "quick")
    panels = [(dataset, backbone) for dataset in SMALL for backbone in BACKBONES]
    pairs = [
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
            "GST minus the best other: " + ", ".join(f"{d} {b.upper()} {lead(d, b)}" for d, b in panels),
        ),
        (
            "RQ1: GIN on PubMed at 50 %, GST +0.3 over dense, others −0.36 to −3.17",
            f"GST {lost('rq1', 'PubMed', 'gin', 'gst', 0.5)}",
        ),
        (
            "RQ4: GCN on Cora, 30 % of the edges relocated, GST at 10 % gains 7.23",
            lost("rq4-defense", "Cora", "gcn", "gst", 0.1, "relocated=0.3"),
        ),
        (
            "RQ4: GAT, 40 % relocated, GST at 30 % gains 5.09 (PubMed)",
            ", ".join(f"{d} {lost('rq4-defense', d, 'gat', 'gst', 0.3, 'relocated=0.4')}" for d in SMALL[:2]),
        ),
    ]
    return table(["paper", "ours"], pairs)


def versions_text(rows: list[Row]) -> str:
    """Which experiments were measured by earlier code."""
    old = [row for row in rows if not is_current(row.versions)]
    names = ", ".join(f"`{name}` ({_share(rows, old, name)})" for name in sorted({row.experiment for row in old}))
    return f"Measured by earlier versions of the code, to be repeated: {names}.\n" if old else "All by current code.\n"


def _share(rows: list[Row], old: list[Row], experiment: str) -> str:
    """How many of the panels of an experiment are by earlier code."""
    panels, of_old = (
        {(row.profile, row.dataset, row.backbone) for row in some if row.experiment == experiment}
        for some in (rows, old)
    )
    return f"{len(of_old)} of {len(panels)} panels"


def draw(rows: list[Row], folder: Path) -> None:
    """The charts of every experiment, one file each."""
    folder.mkdir(exist_ok=True)

    def study(experiment: str, datasets: Iterable[str] = ()) -> Study:
        selected = [row for row in rows if (row.experiment, row.profile) == (experiment, "quick")]
        return Study(row for row in selected if not datasets or row.dataset in datasets)

    fig1, small, large = study("fig1"), study("rq1", SMALL), study("rq1", ("Computers", "Physics"))
    pictures = {
        "fig1": sheet(figures.accuracy(fig1) + figures.spectral_errors(fig1), 2),
        "rq1-returned": sheet(figures.accuracy(small)),
        "rq1-fresh": sheet(figures.accuracy(small), measure="retrain_"),
        "rq1-warm": sheet(figures.accuracy(small), measure="warm_"),
        "rq1-large": sheet(figures.accuracy(large), 2, measure="retrain_"),
        "rq2": sheet(figures.spectra(study("rq2")), 4),
        "rq3": sheet(figures.pareto(small)),
        "rq4-defense": sheet(varied.perturbed(study("rq4-defense"))),
        "rq4-tickets": sheet(varied.tickets(study("rq4-tickets"))),
        "rq5-ablation": sheet(varied.ablations(study("rq5-ablation")), 2),
        "rq5-interval": sheet(varied.settings(study("rq5-interval")), 2),
        "rq5-schedule": sheet(varied.settings(study("rq5-schedule"))),
    }
    for title, text in pictures.items():
        (folder / f"{title}.svg").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
