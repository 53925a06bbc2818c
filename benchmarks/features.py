"""Where X·W is faster sparse than dense, and what a sparse product and dropout of X cost, as JSON.

Forward and backward of one layer over the density of X; the density at which the ratio crosses 1 is
``gst.nn.features.SPARSE_BELOW``. Then gst's product of a sparse X against PyTorch's CSR product, in alternation, over
the width of W, and whether both have the same bits. Then gst's dropout against that of PyTorch, likewise: first with
the memory management of the C library, then with memory reused (``gst.base.memory.reuse_memory``). ``memory``: gst's
time with memory reused over that without.

    python benchmarks/features.py
"""

import json
import statistics
import sys
import time

import torch

from gst.base.memory import reuse_memory
from gst.nn.features import SPARSE_BELOW, Features, SparseFeatures, dropout, linear
from gst.sparse.csr import Pattern, spmm

NODES, INPUTS, HIDDEN = 4000, 1000, 256
SHAPES = {"PubMed": (19717, 500), "Computers": (13752, 767)}


def sparse(x: torch.Tensor) -> SparseFeatures:
    row, col = x.nonzero(as_tuple=True)
    return SparseFeatures(Pattern(row, col, (NODES, INPUTS)), x[row, col])


def step_seconds(x: Features, weight: torch.Tensor, grad: torch.Tensor) -> float:
    start = time.perf_counter()
    linear(x, weight).backward(grad)
    return time.perf_counter() - start


def products() -> list[dict[str, object]]:
    x = sparse((torch.rand(NODES, INPUTS) < 0.02).float() * torch.rand(NODES, INPUTS))
    rows: list[dict[str, object]] = []
    for width in (7, 16, 64, 512):
        weight, ratios = torch.randn(INPUTS, width), []
        for _ in range(42):
            start = time.perf_counter()
            ours = spmm(x.pattern, x.values, weight)
            middle = time.perf_counter()
            theirs = x.pattern.matrix(x.values) @ weight
            ratios.append((middle - start) / (time.perf_counter() - middle))
        same = torch.equal(ours, theirs)
        rows.append({"width": width, "gst_over_torch": round(statistics.median(ratios[2:]), 3), "same_bits": same})
    return rows


def dropout_seconds(shape: tuple[int, int]) -> tuple[float, float]:
    """Seconds of one dropout, gst's and PyTorch's; the minimum of several."""
    x, times = torch.randn(shape), []
    for _ in range(12):
        start = time.perf_counter()
        dropout(x, 0.5, training=True)
        middle = time.perf_counter()
        torch.nn.functional.dropout(x, 0.5)
        times.append((middle - start, time.perf_counter() - middle))
    return min(t[0] for t in times), min(t[1] for t in times)


def dropouts() -> list[dict[str, object]]:
    plain = {name: dropout_seconds(shape) for name, shape in SHAPES.items()}
    reuse_memory()
    reused = {name: dropout_seconds(shape) for name, shape in SHAPES.items()}
    return [
        {
            "features_of": name,
            "gst_over_torch": round(plain[name][0] / plain[name][1], 3),
            "gst_over_torch_memory_reused": round(reused[name][0] / reused[name][1], 3),
            "memory": round(reused[name][0] / plain[name][0], 3),
        }
        for name in SHAPES
    ]


def main() -> None:
    weight, grad = torch.randn(INPUTS, HIDDEN, requires_grad=True), torch.randn(NODES, HIDDEN)
    rows = []
    for density in (0.005, 0.01, 0.02, 0.04, 0.05, 0.07, 0.1, 0.2):
        dense = (torch.rand(NODES, INPUTS) < density).float()
        layouts: tuple[Features, Features] = (sparse(dense), dense)
        times = [[step_seconds(x, weight, grad) for x in layouts] for _ in range(12)][2:]
        ratio = statistics.median(pair[0] / pair[1] for pair in times)
        rows.append({"density": density, "sparse_over_dense": round(ratio, 3)})
    report: dict[str, object] = {"benchmark": "features", "threshold": SPARSE_BELOW, "rows": rows}
    report |= {"products": products(), "dropout": dropouts()}
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
