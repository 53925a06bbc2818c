"""Where X·W is faster sparse than dense, as JSON: forward and backward of one layer over the density of X.

The density at which the ratio crosses 1 is ``gst.nn.features.SPARSE_BELOW``.

    python benchmarks/features.py
"""

import json
import statistics
import sys
import time

import torch

from gst.nn.csr import Pattern
from gst.nn.features import SPARSE_BELOW, Features, SparseFeatures, linear

NODES, INPUTS, HIDDEN = 4000, 1000, 256


def sparse(x: torch.Tensor) -> SparseFeatures:
    row, col = x.nonzero(as_tuple=True)
    return SparseFeatures(Pattern(row, col, (NODES, INPUTS)), x[row, col])


def once(x: Features, weight: torch.Tensor, grad: torch.Tensor) -> float:
    start = time.perf_counter()
    linear(x, weight).backward(grad)
    return time.perf_counter() - start


def main() -> None:
    weight, grad = torch.randn(INPUTS, HIDDEN, requires_grad=True), torch.randn(NODES, HIDDEN)
    rows = []
    for density in (0.005, 0.01, 0.02, 0.04, 0.05, 0.07, 0.1, 0.2):
        dense = (torch.rand(NODES, INPUTS) < density).float()
        layouts: tuple[Features, Features] = (sparse(dense), dense)
        times = [[once(x, weight, grad) for x in layouts] for _ in range(12)][2:]
        ratio = statistics.median(pair[0] / pair[1] for pair in times)
        rows.append({"density": density, "sparse_over_dense": round(ratio, 3)})
    json.dump({"benchmark": "features", "threshold": SPARSE_BELOW, "rows": rows}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
