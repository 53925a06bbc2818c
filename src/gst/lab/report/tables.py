"""The page's tables: headings, cells and the facts that filters and LaTeX need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from gst.lab.bench.rows import Row
from gst.lab.report.names import MEASURES, percent, series_name, series_order
from gst.lab.report.paper import Claim, claims
from gst.lab.report.summary import Extreme, Panel, Stat, Study, by_seed, certain, latency_share, panel_order


@dataclass(frozen=True)
class Line:
    """A row of a table; the names are what filters know it by."""

    cells: Sequence[str]
    panel: Panel
    series: str = ""
    measure: str | None = None
    best: frozenset[int] = frozenset()  # cells in bold


@dataclass(frozen=True)
class Table:
    name: str  # file name of its downloads
    caption: str
    columns: Sequence[str]
    lines: Sequence[Line]
    numeric: frozenset[int] = field(default_factory=frozenset)  # columns set to the right


def scores(study: Study, panel: Panel) -> Table:
    """Mean ± sd of every method at every sparsity; the best of a column, among one measure, in bold."""
    sparsities = study.sparsities_in(panel)
    found: dict[tuple[str, str], list[Stat | None]] = {}
    for series in study.series_in(panel):
        for measure in MEASURES:
            row = [study.score(panel, series, s, f"{measure}test") for s in sparsities]
            if any(row):
                found[series, measure] = row
    best = {
        (measure, n): max((row[n].mean for (_, m), row in found.items() if m == measure and row[n]), default=None)  # type: ignore[union-attr]
        for measure in MEASURES
        for n in range(len(sparsities))
    }
    lines = [
        Line(
            [series_name(series), MEASURES[measure], *("–" if stat is None else str(stat) for stat in row)],
            panel,
            series,
            measure,
            frozenset(n + 2 for n, stat in enumerate(row) if stat is not None and stat.mean == best[measure, n]),
        )
        for (series, measure), row in found.items()
    ]
    dense = Stat.of(study.dense(panel).values())
    caption = f"{panel.title}: test score, mean ± sd over seeds" + (f"; dense {dense}" if dense else "")
    columns = ["method", "model", *(percent(s) for s in sparsities)]
    return Table(f"scores-{panel.dataset}-{panel.backbone}", caption, columns, lines, frozenset(range(2, len(columns))))


def singles(study: Study) -> Table:
    """Panels with one sparsity have no curve: their scores, and differences from dense, in one table."""
    lines = []
    for panel in study.panels:
        sparsities = study.sparsities_in(panel)
        dense = Stat.of(study.dense(panel).values())
        for series in study.series_in(panel) if len(sparsities) == 1 else ():
            for measure in MEASURES:
                score = study.score(panel, series, sparsities[0], f"{measure}test")
                loss = study.loss(panel, series, sparsities[0], measure)
                if score is not None:
                    told = [
                        percent(sparsities[0]),
                        str(score),
                        *("–" if s is None else s.text(sign=s is loss) for s in (dense, loss)),
                    ]
                    lines.append(
                        Line([panel.title, series_name(series), MEASURES[measure], *told], panel, series, measure)
                    )
    columns = ["data · backbone", "method", "model", "removed", "test", "dense", "against dense"]
    return Table("one-sparsity", "Measured at one sparsity only", columns, lines, frozenset(range(3, 7)))


def extremes(study: Study) -> Table:
    """Largest sparsity without loss, what it saves and what it costs."""
    every = study.extremes
    lines = [Line(_extreme(found), found.panel, found.series, found.measure) for found in every]
    columns = [
        "data · backbone", "method", "model", "by test", "by validation", "test there", "against dense",
        "MACs saved", "paper’s count", "speed-up",
    ]  # fmt: skip
    caption = "Largest measured share of edges removed whose mean score is within one point of the dense mean"
    return _without_empty(Table("extreme-sparsity", caption, columns, lines, frozenset(range(3, 10))), last=3)


def _without_empty(table: Table, last: int) -> Table:
    """The table without those of its last columns that say nothing."""
    first = len(table.columns) - last
    kept = [n for n in range(len(table.columns)) if n < first or any(line.cells[n] != "–" for line in table.lines)]
    lines = [replace(line, cells=[line.cells[n] for n in kept]) for line in table.lines]
    numeric = frozenset(k for k, n in enumerate(kept) if n in table.numeric)
    return replace(table, columns=[table.columns[n] for n in kept], lines=lines, numeric=numeric)


def _extreme(found: Extreme) -> list[str]:
    def share(value: float | None) -> str:
        return "none" if value is None else percent(value)

    loss = "–" if found.difference is None else found.difference.text(sign=True)
    saved, counted, faster = savings(found.rows)
    return [
        found.panel.title,
        series_name(found.series),
        MEASURES[found.measure],
        share(found.by_test),
        share(found.by_val),
        "–" if found.test is None else str(found.test),
        loss + (" *" if found.difference and certain(found.difference) else ""),
        "–" if saved is None else f"{saved:.1f} %",
        "–" if counted is None else f"{counted:.1f} %",
        "–" if faster is None else f"{faster:.2f} ×",
    ]


def savings(rows: Iterable[Row]) -> tuple[float | None, float | None, float | None]:
    """MACs saved in % (true count, the paper's convention) and speed-up: 1 / share of the full graph's time."""
    rows = list(rows)
    dense, sparse, counted = (
        Stat.of(by_seed(rows, column).values()) for column in ("macs_dense", "macs_sparse", "macs_paper")
    )
    share = latency_share(rows)
    saved = [
        100 * (1 - part.mean / dense.mean) if dense and dense.mean and part else None for part in (sparse, counted)
    ]
    return saved[0], saved[1], 1 / share if share else None


def paper(study: Study) -> Table:
    """Every number of the paper beside ours, for the data, backbones and methods that the rows hold."""
    panels: dict[tuple[str, str], list[Panel]] = {}
    for panel in sorted({panel for panel, _, _ in study.curves}):
        panels.setdefault((panel.dataset.lower(), panel.backbone), []).append(panel)
    lines = [
        Line(cells, panel, claim.series)
        for claim in sorted(claims(), key=_claim_order)
        for panel in panels.get((claim.dataset.lower(), claim.backbone), ())
        if (cells := _claim(study, claim, panel)) is not None
    ]
    columns = ["paper", "data · backbone", "method", "quantity", "paper says", "measured", "difference", "profile"]
    return Table("paper-and-measured", "The paper’s numbers beside ours", columns, lines, frozenset((4, 5, 6)))


def _claim(study: Study, claim: Claim, panel: Panel) -> list[str] | None:
    ours = measured(study, claim, panel)
    if ours is None:
        return None
    unit, digits = ("×", 2) if claim.quantity == "speed-up" else ("%", 1)
    said = Stat(claim.value, claim.sd, 1).text(digits)
    what = claim.quantity
    if claim.sparsity is not None:
        what = f"{what} at {percent(claim.sparsity)}"
    if claim.variation:
        what = f"{what} ({claim.variation.replace(';', ', ')})"
    shown, difference = ours.text(digits), Stat(ours.mean - claim.value, None, 1).text(digits, sign=True)
    if claim.quantity == "extreme sparsity" and ours.mean == 0:  # the least that was measured is too much
        shown, difference = f"< {100 * min(study.curve(panel, claim.series, claim.variation)):g}", "–"
    named = [claim.table, panel.title, series_name(claim.series), f"{what}, {unit}"]
    return [*named, said, shown, difference, panel.profile]


def _claim_order(claim: Claim) -> tuple[object, ...]:
    return (
        int(claim.table.split()[1]),
        panel_order(Panel(claim.dataset, claim.backbone, "")),
        claim.quantity,
        series_order(claim.series),
    )


def measured(study: Study, claim: Claim, panel: Panel) -> Stat | None:
    """Our figure for a number of the paper: of the returned model, as theirs are."""
    if claim.quantity == "score":
        assert claim.sparsity is not None
        return study.score(panel, claim.series, claim.sparsity, "test", claim.variation)
    found = study.extreme(panel, claim.series, "", claim.variation)
    if found is None:
        return None
    if claim.quantity == "extreme sparsity":
        return Stat(100 * (found.by_test or 0.0), None, 1)
    if found.by_test is None:
        return None
    saved, _, faster = savings(study.curve(panel, claim.series, claim.variation)[found.by_test])
    value = saved if claim.quantity == "MACs saved" else faster
    return None if value is None else Stat(value, None, 1)
