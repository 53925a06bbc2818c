"""Where X·W is faster sparse than dense, and what dropout of X costs, as JSON.

Forward and backward of one layer over the density of X; the density at which the ratio crosses 1 is
``gst.nn.features.SPARSE_BELOW``. Then gst's dropout against that of PyTorch, taken in turns; first with memory as the C
library gives it, then with what ``gst.limits.reuse_memory`` has it keep. ``memory``: gst's time then over that before.

    python benchmarks/features.py
"""

import json
import statistics
import sys
import time

import torch

from gst.limits import reuse_memory
from gst.nn.csr import Pattern
from gst.nn.features import SPARSE_BELOW, Features, SparseFeatures, dropout, linear

NODES, INPUTS, HIDDEN = 4000, 1000, 256
SHAPES = {"PubMed": (19717, 500), "Computers": (13752, 767)}


def sparse(x: torch.Tensor) -> SparseFeatures:
    row, col = x.nonzero(as_tuple=True)
    return SparseFeatures(Pattern(row, col, (NODES, INPUTS)), x[row, col])


def once(x: Features, weight: torch.Tensor, grad: torch.Tensor) -> float:
    start = time.perf_counter()
    linear(x, weight).backward(grad)
    return time.perf_counter() - start


def drop(shape: tuple[int, int]) -> tuple[float, float]:
    """Seconds of one dropout: gst's, PyTorch's; the least of several."""
    x, times = torch.randn(shape), []
    for _ in range(12):
        start = time.perf_counter()
        dropout(x, 0.5, training=True)
        middle = time.perf_counter()
        torch.nn.functional.dropout(x, 0.5)
        times.append((middle - start, time.perf_counter() - middle))
    return min(t[0] for t in times), min(t[1] for t in times)


def dropouts() -> list[dict[str, object]]:
    plain = {name: drop(shape) for name, shape in SHAPES.items()}
    reuse_memory()
    kept = {name: drop(shape) for name, shape in SHAPES.items()}
    return [
        {
            "features_of": name,
            "gst_over_torch": round(plain[name][0] / plain[name][1], 3),
            "gst_over_torch_memory_kept": round(kept[name][0] / kept[name][1], 3),
            "memory": round(kept[name][0] / plain[name][0], 3),
        }
        for name in SHAPES
    ]


def main() -> None:
    weight, grad = torch.randn(INPUTS, HIDDEN, requires_grad=True), torch.randn(NODES, HIDDEN)
    rows = []
    for density in (0.005, 0.01, 0.02, 0.04, 0.05, 0.07, 0.1, 0.2):
        dense = (torch.rand(NODES, INPUTS) < density).float()
        layouts: tuple[Features, Features] = (sparse(dense), dense)
        times = [[once(x, weight, grad) for x in layouts] for _ in range(12)][2:]
        ratio = statistics.median(pair[0] / pair[1] for pair in times)
        rows.append({"density": density, "sparse_over_dense": round(ratio, 3)})
    found = {"benchmark": "features", "threshold": SPARSE_BELOW, "rows": rows, "dropout": dropouts()}
    json.dump(found, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
