"""From rows to tables: means over seeds, extreme sparsities, ranks."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from gst.lab.bench.rows import Row

EPSILON = 1.0  # points that count as no loss, the paper's "negligible"
_GROUP = ("dataset", "backbone", "method", "recipe", "variation", "sparsity")
_MEASURED = (
    *("test", "retrain_test", "warm_test", "dense_test"),
    *("spectrum_top", "spectrum_bottom", "macs_dense", "macs_sparse", "macs_paper"),
    *("dense_ms", "sparse_ms", "weight_sparsity"),
)
Line = dict[str, Any]


def summarise(rows: Iterable[Row]) -> list[Line]:
    """One line a configuration: the number of seeds, means, and sample standard deviations as ``…_sd``."""
    by_name: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.status == "done":
            by_name[tuple(getattr(row, name) for name in _GROUP)].append(row)
    lines = []
    for name, found in sorted(by_name.items()):
        line: Line = {**dict(zip(_GROUP, name, strict=True)), "seeds": len(found)}
        for column in _MEASURED:
            values = [value for row in found if (value := getattr(row, column)) is not None]
            if values:
                line[column] = statistics.fmean(values)
            if len(values) > 1:
                line[f"{column}_sd"] = statistics.stdev(values)
        lines.append(line)
    return lines


def efficiency(lines: Sequence[Line], epsilon: float = EPSILON) -> list[Line]:
    """The paper's efficiency table: one line a data set, backbone, method and recipe.

    ``extreme`` is the largest sparsity whose mean test score is within ``epsilon`` of the dense mean: of the returned
    model, ``extreme_fresh`` of a freshly trained one, ``extreme_warm`` of a warm-started one; 0 where there is none.
    Savings and speed-up are those at ``extreme``; by the paper's count, the saving is the sparsity itself. ``rank`` is
    the mean over data sets of the place by ``extreme``, equals sharing the better place.
    """
    by_method: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in (line for line in lines if "dense_test" in line):
        by_method[tuple(line[name] for name in _GROUP[:4])].append(line)
    table = []
    for name, curve in by_method.items():
        at = {column: _extreme(curve, column, epsilon) for column in ("test", "retrain_test", "warm_test")}
        found: Line = {
            **dict(zip(_GROUP[:4], name, strict=True)),
            "dense_test": statistics.fmean(line["dense_test"] for line in curve),
            "extreme": at["test"]["sparsity"],
            "extreme_fresh": at["retrain_test"]["sparsity"],
            "extreme_warm": at["warm_test"]["sparsity"],
        }
        best = at["test"]
        if "macs_sparse" in best:
            found["macs_saving"] = 1 - best["macs_sparse"] / best["macs_dense"]
        if "sparse_ms" in best:
            found["speedup"] = best["dense_ms"] / best["sparse_ms"]
        table.append(found)
    for line in table:
        alike = [o for o in table if o["backbone"] == line["backbone"]]
        same = [o for o in alike if (o["method"], o["recipe"]) == (line["method"], line["recipe"])]
        places = [
            1 + sum(o["extreme"] > own["extreme"] for o in alike if o["dataset"] == own["dataset"]) for own in same
        ]
        line["rank"] = statistics.fmean(places)
    return table


def _extreme(curve: list[Line], column: str, epsilon: float) -> Line:
    """The line of the largest sparsity that is good enough."""
    good = [line for line in curve if column in line and line[column] >= line["dense_test"] - epsilon]
    return max(good, key=lambda line: line["sparsity"], default={"sparsity": 0.0})
