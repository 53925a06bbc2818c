"""Tables from rows: means over seeds, largest safe sparsities, ranks."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from gst.base.stats import TOLERANCE, Stat, difference, largest_safe, paired
from gst.lab.bench.rows import Row

_CONFIGURATION = ("dataset", "backbone", "method", "variation", "sparsity")
_MEASURED = (
    *("test", "frozen_test", "retrain_test", "warm_test", "dense_test", "updates"),
    *(
        "spectrum_top",
        "spectrum_bottom",
        "normalised_top",
        "normalised_bottom",
        "macs_dense",
        "macs_sparse",
        "macs_paper",
    ),
    *("dense_ms", "sparse_ms", "weight_sparsity"),
)
Line = dict[str, Any]


def summarise(rows: Iterable[Row]) -> list[Line]:
    """One line per configuration: the number of seeds, means, and sample standard deviations as ``…_sd``."""
    grouped: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.status == "done":
            grouped[tuple(getattr(row, name) for name in _CONFIGURATION)].append(row)
    lines = []
    for configuration, group in sorted(grouped.items()):
        line: Line = {**dict(zip(_CONFIGURATION, configuration, strict=True)), "seeds": len(group)}
        for column in _MEASURED:
            stat = Stat.of(getattr(row, column) for row in group)
            if stat is not None:
                line[column] = stat.mean
            if stat is not None and stat.sd is not None:
                line[f"{column}_sd"] = stat.sd
        lines.append(line)
    return lines


def by_seed(rows: Iterable[Row], column: str) -> dict[int, float]:
    """One value per seed: the same run may belong to two experiments."""
    values: dict[int, float] = {}
    for row in rows:
        value = getattr(row, column)
        if value is not None:
            values.setdefault(row.seed, value)
    return values


def safe_sparsity(curve: dict[float, list[Row]], measure: str, tolerance: float = TOLERANCE) -> float | None:
    """The largest sparsity of a curve without loss on validation, by the rule of ``gst search``; None: none is.

    ``measure``: the prefix of the columns, ``""``, ``"retrain_"`` or ``"warm_"``.
    """
    losses = {s: paired(by_seed(rows, f"{measure}val"), by_seed(rows, "dense_val")) for s, rows in curve.items()}
    return largest_safe({s: difference(values) for s, values in losses.items() if values}, tolerance)


def efficiency(rows: Iterable[Row], tolerance: float = TOLERANCE) -> list[Line]:
    """The paper's efficiency table: one line per data set, backbone, method and variation; of sparse graphs only.

    ``safe`` is the largest safe sparsity of the returned model, ``safe_fresh`` of a freshly trained one, ``safe_warm``
    of a warm-started one; 0 where none is safe. Savings and speed-up are those at ``safe``. ``rank`` is the mean over
    data sets of the rank by ``safe``; ties share the better rank.
    """
    curves: dict[tuple[str, ...], dict[float, list[Row]]] = {}
    for row in rows:
        if row.status == "done" and row.dense_test is not None and row.method not in ("ensemble", "drop-edge"):
            curve = curves.setdefault((row.dataset, row.backbone, row.method, row.variation), defaultdict(list))
            curve[row.sparsity].append(row)
    table = []
    for (dataset, backbone, method, variation), curve in sorted(curves.items()):
        safe, fresh, warm = (safe_sparsity(curve, measure, tolerance) for measure in ("", "retrain_", "warm_"))
        dense = by_seed((row for group in curve.values() for row in group), "dense_test")
        line: Line = {"dataset": dataset, "backbone": backbone, "method": method, "variation": variation}
        line |= {"dense_test": statistics.fmean(dense.values()), "safe": safe or 0.0}
        line |= {"safe_fresh": fresh or 0.0, "safe_warm": warm or 0.0}
        if safe is not None:
            macs_dense, macs_sparse, dense_ms, sparse_ms = (
                Stat.of(by_seed(curve[safe], column).values())
                for column in ("macs_dense", "macs_sparse", "dense_ms", "sparse_ms")
            )
            if macs_dense and macs_sparse:
                line["macs_saving"] = 1 - macs_sparse.mean / macs_dense.mean
            if dense_ms and sparse_ms:
                line["speedup"] = dense_ms.mean / sparse_ms.mean
        table.append(line)
    for line in table:
        peers = [other for other in table if other["backbone"] == line["backbone"]]
        ranks = [
            1 + sum(other["safe"] > same["safe"] for other in peers if other["dataset"] == same["dataset"])
            for same in peers
            if (same["method"], same["variation"]) == (line["method"], line["variation"])
        ]
        line["rank"] = statistics.fmean(ranks)
    return table
