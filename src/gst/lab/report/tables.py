"""The page's tables: headings and cells, and what filters and LaTeX need to know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from gst.base.stats import TOLERANCE, Stat
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import by_seed
from gst.lab.report.names import MEASURES, method_name, method_order, percent
from gst.lab.report.paper import Claim, claims
from gst.lab.report.summary import Panel, SafeSparsity, Study, latency_share, panel_order


@dataclass(frozen=True)
class Line:
    """A row of a table; panel, method and measure are for the filters."""

    cells: Sequence[str]
    panel: Panel
    method: str = ""
    measure: str | None = None
    best: frozenset[int] = frozenset()  # cells in bold


@dataclass(frozen=True)
class Table:
    name: str  # file name of its downloads
    caption: str
    columns: Sequence[str]
    lines: Sequence[Line]
    numeric: frozenset[int] = field(default_factory=frozenset)  # right-aligned columns


def scores(study: Study, panel: Panel) -> Table:
    """Mean ± sd of every method at every sparsity; the best of a column, within one measure, in bold."""
    sparsities = study.sparsities_in(panel)
    stats: dict[tuple[str, str], list[Stat | None]] = {}
    for method in study.methods_in(panel):
        for measure in MEASURES:
            row = [study.score(panel, method, s, f"{measure}test") for s in sparsities]
            if any(row):
                stats[method, measure] = row
    best = {
        (measure, n): max(
            (stat.mean for (_, m), row in stats.items() if m == measure and (stat := row[n])), default=None
        )
        for measure in MEASURES
        for n in range(len(sparsities))
    }
    lines = [
        Line(
            [method_name(method), MEASURES[measure], *("–" if stat is None else str(stat) for stat in row)],
            panel,
            method,
            measure,
            frozenset(n + 2 for n, stat in enumerate(row) if stat is not None and stat.mean == best[measure, n]),
        )
        for (method, measure), row in stats.items()
    ]
    dense = Stat.of(study.dense(panel).values())
    caption = f"{panel.title}: test score, mean ± sd over seeds" + (f"; dense {dense}" if dense else "")
    columns = ["method", "model", *(percent(s) for s in sparsities)]
    return Table(f"scores-{panel.dataset}-{panel.backbone}", caption, columns, lines, frozenset(range(2, len(columns))))


def single_sparsities(study: Study) -> Table:
    """Scores and differences to dense of the panels with one sparsity, which have no curve."""
    lines = []
    for panel in study.panels:
        sparsities = study.sparsities_in(panel)
        dense = Stat.of(study.dense(panel).values())
        for method in study.methods_in(panel) if len(sparsities) == 1 else ():
            for measure in MEASURES:
                score = study.score(panel, method, sparsities[0], f"{measure}test")
                loss = study.loss(panel, method, sparsities[0], measure)
                if score is not None:
                    numbers = [
                        percent(sparsities[0]),
                        str(score),
                        *("–" if stat is None else stat.text(sign=stat is loss) for stat in (dense, loss)),
                    ]
                    cells = [panel.title, method_name(method), MEASURES[measure], *numbers]
                    lines.append(Line(cells, panel, method, measure))
    columns = ["data · backbone", "method", "model", "removed", "test", "dense", "against dense"]
    return Table("one-sparsity", "Measured at one sparsity only", columns, lines, frozenset(range(3, 7)))


def safe_sparsities(study: Study) -> Table:
    """The largest sparsity without loss, what it saves and what it costs."""
    lines = [Line(_safe_cells(safe), safe.panel, safe.method, safe.measure) for safe in study.safe_sparsities]
    columns = [
        "data · backbone", "method", "model", "removed", "test", "against dense", "verdict of test",
        "MACs saved", "paper’s count", "speed-up",
    ]  # fmt: skip
    caption = f"Largest measured share of edges removed within {TOLERANCE:g} points of dense on validation"
    numeric = frozenset((3, 4, 5, 7, 8, 9))
    return _without_empty(Table("safe-sparsity", caption, columns, lines, numeric), last=3)


def _without_empty(table: Table, last: int) -> Table:
    """The table without empty columns among its last ones."""
    first = len(table.columns) - last
    filled = [n for n in range(len(table.columns)) if n < first or any(line.cells[n] != "–" for line in table.lines)]
    lines = [replace(line, cells=[line.cells[n] for n in filled]) for line in table.lines]
    numeric = frozenset(k for k, n in enumerate(filled) if n in table.numeric)
    return replace(table, columns=[table.columns[n] for n in filled], lines=lines, numeric=numeric)


def _safe_cells(safe: SafeSparsity) -> list[str]:
    saved, counted, speedup = savings(safe.rows)
    star = " *" if safe.interval is not None and safe.interval.certain else ""
    return [
        safe.panel.title,
        method_name(safe.method),
        MEASURES[safe.measure],
        "none" if safe.sparsity is None else percent(safe.sparsity),
        "–" if safe.score is None else str(safe.score),
        "–" if safe.loss is None else safe.loss.text(sign=True) + star,
        safe.verdict or "–",
        "–" if saved is None else f"{saved:.1f} %",
        "–" if counted is None else f"{counted:.1f} %",
        "–" if speedup is None else f"{speedup:.2f} ×",
    ]


def savings(rows: Iterable[Row]) -> tuple[float | None, float | None, float | None]:
    """MACs saved in % (counted, and by the paper's convention) and speed-up: 1 / share of the full graph's time."""
    rows = list(rows)
    dense, sparse, by_convention = (
        Stat.of(by_seed(rows, column).values()) for column in ("macs_dense", "macs_sparse", "macs_paper")
    )
    share = latency_share(rows)
    saved = [
        100 * (1 - part.mean / dense.mean) if dense and dense.mean and part else None
        for part in (sparse, by_convention)
    ]
    return saved[0], saved[1], 1 / share if share else None


def paper(study: Study) -> Table:
    """Every number of the paper beside ours, for the data, backbones and methods that the rows hold."""
    panels: dict[tuple[str, str], list[Panel]] = {}
    for panel in sorted({panel for panel, _, _ in study.curves}):
        panels.setdefault((panel.dataset.lower(), panel.backbone), []).append(panel)
    lines = [
        Line(cells, panel, claim.method)
        for claim in sorted(claims(), key=_claim_order)
        for panel in panels.get((claim.dataset.lower(), claim.backbone), ())
        if (cells := _claim_cells(study, claim, panel)) is not None
    ]
    columns = ["paper", "data · backbone", "method", "quantity", "paper says", "measured", "difference", "profile"]
    return Table("paper-and-measured", "The paper’s numbers beside ours", columns, lines, frozenset((4, 5, 6)))


def _claim_cells(study: Study, claim: Claim, panel: Panel) -> list[str] | None:
    ours = measured(study, claim, panel)
    if ours is None:
        return None
    unit, digits = ("×", 2) if claim.quantity == "speed-up" else ("%", 1)
    theirs = Stat(claim.value, claim.sd, 1).text(digits)
    quantity = claim.quantity
    if claim.sparsity is not None:
        quantity = f"{quantity} at {percent(claim.sparsity)}"
    if claim.variation:
        quantity = f"{quantity} ({claim.variation.replace(';', ', ')})"
    shown, difference = ours.text(digits), Stat(ours.mean - claim.value, None, 1).text(digits, sign=True)
    if claim.quantity == "extreme sparsity" and ours.mean == 0:  # even the smallest sparsity measured loses
        shown, difference = f"< {100 * min(study.curve(panel, claim.method, claim.variation)):g}", "–"
    names = [claim.table, panel.title, method_name(claim.method), f"{quantity}, {unit}"]
    return [*names, theirs, shown, difference, panel.profile]


def _claim_order(claim: Claim) -> tuple[object, ...]:
    return (
        int(claim.table.split()[1]),
        panel_order(Panel(claim.dataset, claim.backbone, "")),
        claim.quantity,
        method_order(claim.method),
    )


def measured(study: Study, claim: Claim, panel: Panel) -> Stat | None:
    """Our figure for a number of the paper: of the returned model, as theirs are."""
    if claim.quantity == "score":
        assert claim.sparsity is not None
        return study.score(panel, claim.method, claim.sparsity, "test", claim.variation)
    safe = study.safe_sparsity(panel, claim.method, "", claim.variation)
    if safe is None:
        return None
    if claim.quantity == "extreme sparsity":
        return Stat(100 * (safe.sparsity or 0.0), None, 1)
    saved, _, speedup = savings(safe.rows)
    value = saved if claim.quantity == "MACs saved" else speedup
    return None if value is None else Stat(value, None, 1)
