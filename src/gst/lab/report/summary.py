"""Means, spreads, paired differences, safe sparsities and ranks: everything the page says is computed here."""

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from gst.base.stats import TOLERANCE, Difference, Stat, difference, largest_safe, paired, verdict
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import by_seed
from gst.lab.report.names import BACKBONES, MEASURES, REFERENCES, method_order, parse_variation


@dataclass(frozen=True, order=True)
class Panel:
    """Rows that may be compared with each other: the same data, backbone and profile."""

    dataset: str
    backbone: str
    profile: str

    @property
    def title(self) -> str:
        return f"{self.dataset} · {BACKBONES.get(self.backbone, self.backbone)}"


@dataclass(frozen=True)
class SafeSparsity:
    """The largest sparsity without loss on validation, of one method on one panel."""

    panel: Panel
    method: str
    measure: str
    sparsity: float | None  # None: every sparsity measured loses
    score: Stat | None = None  # on test
    loss: Stat | None = None  # test − dense, paired by seed
    interval: Difference | None = None  # of that loss
    rows: tuple[Row, ...] = ()

    @property
    def verdict(self) -> str:
        """Of the test nodes: "confirmed", "open" or "refuted"; empty where nothing was measured on test."""
        return "" if self.interval is None else verdict(self.interval)

    @property
    def holds_on_test(self) -> bool:
        """Whether the mean loss on test is within the tolerance, too."""
        return self.loss is not None and self.loss.mean >= -TOLERANCE


class Study:
    """All rows, sorted into what the page shows."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = sorted(rows, key=_row_order)
        self.done = [row for row in self.rows if row.status == "done" and row.method not in REFERENCES]
        self.failed = [row for row in self.rows if row.status != "done"]

    @cached_property
    def curves(self) -> dict[tuple[Panel, str, str], dict[float, list[Row]]]:
        """Rows by panel, method and variation, then by sparsity."""
        curves: dict[tuple[Panel, str, str], dict[float, list[Row]]] = {}
        for row in self.done:
            if row.method != "dense":
                curve = curves.setdefault((panel_of(row), row.method, row.variation), {})
                curve.setdefault(row.sparsity, []).append(row)
        return curves

    def curve(self, panel: Panel, method: str, variation: str = "") -> dict[float, list[Row]]:
        return self.curves.get((panel, method, variation), {})

    @cached_property
    def panels(self) -> list[Panel]:
        """The panels with runs in which nothing is varied."""
        size = Counter(row.profile for row in self.done)
        panels = {panel for panel, _, variation in self.curves if not variation}
        return sorted(panels, key=lambda panel: (-size[panel.profile], panel_order(panel)))

    @cached_property
    def methods(self) -> list[str]:
        return sorted({row.method for row in self.rows if row.method not in ("dense", *REFERENCES)}, key=method_order)

    def methods_in(self, panel: Panel) -> list[str]:
        methods = {method for other, method, variation in self.curves if other == panel and not variation}
        return sorted(methods, key=method_order)

    def sparsities_in(self, panel: Panel) -> list[float]:
        return sorted({sparsity for method in self.methods_in(panel) for sparsity in self.curve(panel, method)})

    def dense(self, panel: Panel, split: str = "test") -> dict[int, float]:
        """Score of the full graph by seed."""
        return self._dense.get((panel, split), {})

    @cached_property
    def _dense(self) -> dict[tuple[Panel, str], dict[int, float]]:
        scores: dict[tuple[Panel, str], dict[int, float]] = {}
        for row in self.done:
            if parse_variation(row.variation).get("relocated", "0.0") not in ("0.0", "0"):
                continue  # the dense score of another graph
            for split in ("val", "test"):
                value = getattr(row, split if row.method == "dense" else f"dense_{split}")
                if value is not None:
                    scores.setdefault((panel_of(row), split), {}).setdefault(row.seed, value)
        return scores

    def score(self, panel: Panel, method: str, sparsity: float, column: str, variation: str = "") -> Stat | None:
        return Stat.of(by_seed(self.curve(panel, method, variation).get(sparsity, ()), column).values())

    def losses(
        self, panel: Panel, method: str, sparsity: float, measure: str, variation: str = "", split: str = "test"
    ) -> list[float]:
        """Differences to the full graph, paired by seed."""
        rows = self.curve(panel, method, variation).get(sparsity, ())
        return paired(by_seed(rows, f"{measure}{split}"), self.dense(panel, split))

    def loss(
        self, panel: Panel, method: str, sparsity: float, measure: str, variation: str = "", split: str = "test"
    ) -> Stat | None:
        """Their mean and deviation."""
        return Stat.of(self.losses(panel, method, sparsity, measure, variation, split))

    def height(self, panel: Panel, loss: Stat) -> float:
        """Where to draw a point: its mean loss below the dense line.

        With all seeds that is its mean score; with fewer, a lucky seed does not lift it.
        """
        dense = Stat.of(self.dense(panel).values())
        return loss.mean + (dense.mean if dense else 0.0)

    @cached_property
    def safe_sparsities(self) -> list[SafeSparsity]:
        """For every panel, method and measure that has validation scores."""
        combinations = ((p, method, m) for p in self.panels for method in self.methods_in(p) for m in MEASURES)
        results = (self.safe_sparsity(panel, method, measure) for panel, method, measure in combinations)
        return [safe for safe in results if safe is not None]

    def safe_sparsity(self, panel: Panel, method: str, measure: str, variation: str = "") -> SafeSparsity | None:
        """By the rule of ``gst search``: validation decides, test only judges; None where nothing was measured."""
        curve = self.curve(panel, method, variation)
        losses = {s: self.losses(panel, method, s, measure, variation, "val") for s in curve}
        differences = {s: difference(values) for s, values in losses.items() if values}
        if not differences:
            return None
        safe = largest_safe(differences)
        if safe is None:
            return SafeSparsity(panel, method, measure, None)
        on_test = self.losses(panel, method, safe, measure, variation)
        return SafeSparsity(
            panel,
            method,
            measure,
            safe,
            score=self.score(panel, method, safe, f"{measure}test", variation),
            loss=Stat.of(on_test),
            interval=difference(on_test) if on_test else None,
            rows=tuple(curve[safe]),
        )

    def mean_losses(self, sparsity: float, measure: str) -> tuple[dict[str, float], int]:
        """Mean loss of methods over the panels that have them all, best first; and the number of these panels."""
        table: dict[Panel, dict[str, float]] = {}
        for panel in self.panels:
            stats = {method: self.loss(panel, method, sparsity, measure) for method in self.methods_in(panel)}
            table[panel] = {method: stat.mean for method, stat in stats.items() if stat is not None}
        common = most_comparable(table.values())
        complete = [losses for losses in table.values() if losses and set(common) <= losses.keys()]
        means = {method: statistics.fmean(losses[method] for losses in complete) for method in common}
        return dict(sorted(means.items(), key=lambda pair: -pair[1])), len(complete)

    def ranks(self, measure: str) -> dict[str, Stat]:
        """Rank of every method, 1 is best, averaged over the panels and sparsities where all of them were measured."""
        table: dict[tuple[Panel, float], dict[str, float]] = {}
        for (panel, method, variation), curve in self.curves.items():
            for sparsity in curve if not variation else ():
                loss = self.loss(panel, method, sparsity, measure)
                if loss is not None:
                    table.setdefault((panel, sparsity), {})[method] = loss.mean
        common = most_comparable(table.values())
        ranks: dict[str, list[float]] = {}
        for losses in table.values():
            if not set(common) <= losses.keys():
                continue
            for method in common:
                others = [losses[other] for other in common if other != method]
                better = sum(other > losses[method] for other in others)
                ties = sum(other == losses[method] for other in others)
                ranks.setdefault(method, []).append(1 + better + ties / 2)
        stats = {method: stat for method, values in ranks.items() if (stat := Stat.of(values)) is not None}
        return dict(sorted(stats.items(), key=lambda pair: pair[1].mean))


def most_comparable(tables: Iterable[dict[str, float]]) -> list[str]:
    """The methods of one table that allow the most comparisons: methods times tables that have them all."""
    methods = [set(table) for table in tables]
    best = max(methods, key=lambda one: (len(one) * sum(one <= other for other in methods), len(one)), default=set())
    return sorted(best, key=method_order)


def panel_of(row: Row) -> Panel:
    return Panel(row.dataset, row.backbone, row.profile)


def latency_share(rows: Iterable[Row]) -> float | None:
    """Time on the sparse graph over that on the full one, measured in alternation; the median of several runs."""
    shares = [row.sparse_ms / row.dense_ms for row in rows if row.sparse_ms and row.dense_ms]
    return statistics.median(shares) if shares else None


def _row_order(row: Row) -> tuple[object, ...]:
    return (*panel_order(panel_of(row)), method_order(row.method), row.variation, row.sparsity, row.seed, row.key)


def panel_order(panel: Panel) -> tuple[int, str, int, str]:
    """Data sets in the order of the paper, then by name."""
    known = ["cora", "citeseer", "pubmed"]
    name, backbones = panel.dataset.lower(), list(BACKBONES)
    return (
        known.index(name) if name in known else len(known),
        panel.dataset,
        backbones.index(panel.backbone) if panel.backbone in backbones else len(backbones),
        f"{panel.backbone} {panel.profile}",
    )
