"""From rows to tables: means over seeds, extreme sparsities, ranks."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from gst.bench.rows import Row

_GROUP = ("dataset", "backbone", "method", "recipe", "variation", "sparsity")
_MEASURED = (
    *("test", "retrain_test", "warm_test", "dense_test"),
    *("spectrum_top", "spectrum_bottom", "macs_dense", "macs_sparse", "dense_ms", "sparse_ms", "weight_sparsity"),
)


def summarise(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One line a configuration: the number of seeds, means, and sample standard deviations as ``…_sd``."""
    by_name: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.status == "done":
            by_name[tuple(getattr(row, name) for name in _GROUP)].append(row)
    lines = []
    for name, found in sorted(by_name.items()):
        line: dict[str, Any] = {**dict(zip(_GROUP, name, strict=True)), "seeds": len(found)}
        for column in _MEASURED:
            values = [value for row in found if (value := getattr(row, column)) is not None]
            if values:
                line[column] = statistics.fmean(values)
            if len(values) > 1:
                line[f"{column}_sd"] = statistics.stdev(values)
        lines.append(line)
    return lines
