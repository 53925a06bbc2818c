"""Means, spreads, paired differences: everything the page says is computed here."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from gst.lab.bench.rows import Row
from gst.lab.bench.summary import EPSILON
from gst.lab.report.names import BACKBONES, MEASURES, series_of, series_order, variations_of


@dataclass(frozen=True)
class Stat:
    """Mean and sample standard deviation of the seeds.

    >>> print(Stat.of([80.0, 82.0]), Stat.of([80.0]), Stat.of([]))
    81.0 ± 1.4 80.0 None
    """

    mean: float
    sd: float | None  # of one seed there is none
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Stat | None":
        found = [value for value in values if value is not None]
        if not found:
            return None
        mean, n = statistics.fmean(found), len(found)
        squares = math.fsum((value - mean) ** 2 for value in found)
        return cls(mean, math.sqrt(squares / (n - 1)) if n > 1 else None, n)

    def __str__(self) -> str:
        return self.text(1)

    def text(self, digits: int = 1, sign: bool = False) -> str:
        mean = f"{self.mean:{'+' if sign else ''}.{digits}f}".replace("-", "−")
        return mean if self.sd is None else f"{mean} ± {self.sd:.{digits}f}"


@dataclass(frozen=True, order=True)
class Panel:
    """Rows that may be compared with each other: the same data, backbone and sizes."""

    dataset: str
    backbone: str
    profile: str

    @property
    def title(self) -> str:
        return f"{self.dataset} · {BACKBONES.get(self.backbone, self.backbone)}"


@dataclass(frozen=True)
class Extreme:
    """The largest sparsity without loss, of one method on one panel."""

    panel: Panel
    series: str
    measure: str
    by_test: float | None  # as in the paper; None: loses at every sparsity measured
    by_val: float | None  # decided without looking at the test set
    by_both: float | None
    test: Stat | None  # test score at by_val, else at by_test
    difference: Stat | None  # from dense, seed by seed
    rows: tuple[Row, ...]  # those at by_val, else at by_test


class Study:
    """All rows, sorted into what the page shows."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = sorted(rows, key=_order)
        self.done = [row for row in self.rows if row.status == "done"]
        self.failed = [row for row in self.rows if row.status != "done"]

    @cached_property
    def curves(self) -> dict[tuple[Panel, str, str], dict[float, list[Row]]]:
        """Rows by panel, method and variation, then by sparsity."""
        found: dict[tuple[Panel, str, str], dict[float, list[Row]]] = {}
        for row in self.done:
            if row.method != "dense":
                curve = found.setdefault((panel_of(row), series_of(row), row.variation), {})
                curve.setdefault(row.sparsity, []).append(row)
        return found

    def curve(self, panel: Panel, series: str, variation: str = "") -> dict[float, list[Row]]:
        return self.curves.get((panel, series, variation), {})

    @cached_property
    def panels(self) -> list[Panel]:
        """Those with plain runs: nothing varied."""
        size = Counter(row.profile for row in self.done)
        found = {panel for panel, _, variation in self.curves if not variation}
        return sorted(found, key=lambda panel: (-size[panel.profile], panel_order(panel)))

    @cached_property
    def series(self) -> list[str]:
        """Every method of the page."""
        return sorted({series_of(row) for row in self.rows if row.method != "dense"}, key=series_order)

    def series_in(self, panel: Panel) -> list[str]:
        return sorted({s for where, s, variation in self.curves if where == panel and not variation}, key=series_order)

    def sparsities_in(self, panel: Panel) -> list[float]:
        return sorted({sparsity for series in self.series_in(panel) for sparsity in self.curve(panel, series)})

    def dense(self, panel: Panel, split: str = "test") -> dict[int, float]:
        """Score of the full graph by seed."""
        return self._dense.get((panel, split), {})

    @cached_property
    def _dense(self) -> dict[tuple[Panel, str], dict[int, float]]:
        found: dict[tuple[Panel, str], dict[int, float]] = {}
        for row in self.done:
            if variations_of(row.variation).get("relocated", "0.0") not in ("0.0", "0"):
                continue  # the dense score of another graph
            for split in ("val", "test"):
                value = getattr(row, split if row.method == "dense" else f"dense_{split}")
                if value is not None:
                    found.setdefault((panel_of(row), split), {}).setdefault(row.seed, value)
        return found

    def score(self, panel: Panel, series: str, sparsity: float, column: str, variation: str = "") -> Stat | None:
        return Stat.of(by_seed(self.curve(panel, series, variation).get(sparsity, ()), column).values())

    def loss(
        self, panel: Panel, series: str, sparsity: float, measure: str, variation: str = "", split: str = "test"
    ) -> Stat | None:
        """Difference from the full graph, paired by seed."""
        rows = self.curve(panel, series, variation).get(sparsity, ())
        return paired(by_seed(rows, f"{measure}{split}"), self.dense(panel, split))

    def height(self, panel: Panel, loss: Stat) -> float:
        """Where a point stands beside the dense line: at the dense mean and its own paired difference.

        With all seeds that is its mean score; with fewer, a lucky seed does not lift it.
        """
        dense = Stat.of(self.dense(panel).values())
        return loss.mean + (dense.mean if dense else 0.0)

    @cached_property
    def extremes(self) -> list[Extreme]:
        """The largest sparsity without loss of every panel, method and measure that was measured."""
        every = ((p, s, m) for p in self.panels for s in self.series_in(p) for m in MEASURES)
        found = (self.extreme(panel, series, measure) for panel, series, measure in every)
        return [extreme for extreme in found if extreme is not None]

    def extreme(self, panel: Panel, series: str, measure: str, variation: str = "") -> Extreme | None:
        """Largest s that loses at most ε on average, paired by seed; None where nothing was measured."""
        curve = self.curve(panel, series, variation)
        fine: dict[str, list[float]] = {}
        for split in ("val", "test"):
            losses = {s: self.loss(panel, series, s, measure, variation, split) for s in curve}
            if any(losses.values()):
                fine[split] = [s for s, loss in losses.items() if loss and loss.mean >= -EPSILON]
        if "test" not in fine:
            return None
        by_test, by_val = (max(fine.get(split, ()), default=None) for split in ("test", "val"))
        chosen = by_val if by_val is not None else by_test
        if chosen is None:
            return Extreme(panel, series, measure, None, None, None, None, None, ())
        test = self.score(panel, series, chosen, f"{measure}test", variation)
        loss = self.loss(panel, series, chosen, measure, variation)
        both = max(set(fine["test"]) & set(fine.get("val", ())), default=None)
        return Extreme(panel, series, measure, by_test, by_val, both, test, loss, tuple(curve[chosen]))

    def losses(self, sparsity: float, measure: str) -> tuple[dict[str, float], int]:
        """Mean loss of methods over the panels that have them all, best first; and the number of panels."""
        table: dict[Panel, dict[str, float]] = {}
        for panel in self.panels:
            found = {s: self.loss(panel, s, sparsity, measure) for s in self.series_in(panel)}
            table[panel] = {series: loss.mean for series, loss in found.items() if loss is not None}
        common = widest(table.values())
        whole = [scores for scores in table.values() if scores and set(common) <= scores.keys()]
        means = {series: statistics.fmean(scores[series] for scores in whole) for series in common}
        return dict(sorted(means.items(), key=lambda pair: -pair[1])), len(whole)

    def ranks(self, measure: str) -> dict[str, Stat]:
        """Rank of every method, 1 the best, averaged over the panels and sparsities where all of them were measured."""
        table: dict[tuple[Panel, float], dict[str, float]] = {}
        for (panel, series, variation), curve in self.curves.items():
            for sparsity in curve if not variation else ():
                loss = self.loss(panel, series, sparsity, measure)
                if loss is not None:
                    table.setdefault((panel, sparsity), {})[series] = loss.mean
        common = widest(table.values())
        found: dict[str, list[float]] = {}
        for scores in table.values():
            if not set(common) <= scores.keys():
                continue
            for series in common:
                others = [scores[other] for other in common if other != series]
                better = sum(other > scores[series] for other in others)
                ties = sum(other == scores[series] for other in others)
                found.setdefault(series, []).append(1 + better + ties / 2)
        ranked = {series: Stat.of(ranks) for series, ranks in found.items()}
        return {s: r for s, r in sorted(ranked.items(), key=lambda pair: pair[1].mean if pair[1] else 0) if r}


def widest(tables: Iterable[dict[str, float]]) -> list[str]:
    """The methods of one table with which most comparisons can be made: methods times tables that have them all."""
    found = [set(table) for table in tables]
    best = max(found, key=lambda one: (len(one) * sum(one <= other for other in found), len(one)), default=set())
    return sorted(best, key=series_order)


def panel_of(row: Row) -> Panel:
    return Panel(row.dataset, row.backbone, row.profile)


def by_seed(rows: Iterable[Row], column: str) -> dict[int, float]:
    """One value a seed: the same run may belong to two experiments."""
    found: dict[int, float] = {}
    for row in rows:
        value = getattr(row, column)
        if value is not None:
            found.setdefault(row.seed, value)
    return found


def latency_share(rows: Iterable[Row]) -> float | None:
    """Time on the sparse graph over that on the full one, timed in turns; of several runs the median."""
    shares = [row.sparse_ms / row.dense_ms for row in rows if row.sparse_ms and row.dense_ms]
    return statistics.median(shares) if shares else None


def paired(one: dict[int, float], other: dict[int, float]) -> Stat | None:
    """Mean and spread of the differences of those seeds that both have.

    >>> print(paired({0: 80.0, 1: 81.0, 2: 7.0}, {0: 82.0, 1: 82.0}))
    −1.5 ± 0.7
    """
    return Stat.of(one[seed] - other[seed] for seed in sorted(one.keys() & other.keys()))


def certain(difference: Stat) -> bool:
    """Whether a paired difference is larger than twice its standard error; of one seed nobody knows."""
    return difference.sd is not None and abs(difference.mean) > 2 * difference.sd / math.sqrt(difference.n)


def _order(row: Row) -> tuple[object, ...]:
    return (*panel_order(panel_of(row)), series_order(series_of(row)), row.variation, row.sparsity, row.seed, row.key)


def panel_order(panel: Panel) -> tuple[int, str, int, str]:
    """Data sets as the paper has them, then by name."""
    known = ["cora", "citeseer", "pubmed"]
    name, backbones = panel.dataset.lower(), list(BACKBONES)
    return (
        known.index(name) if name in known else len(known),
        panel.dataset,
        backbones.index(panel.backbone) if panel.backbone in backbones else len(backbones),
        f"{panel.backbone} {panel.profile}",
    )
