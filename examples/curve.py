"""Draws test accuracy over sparsity on the embedded graph: python examples/curve.py docs/curve.png"""

import statistics
import sys
from typing import Any

import matplotlib

import gst

matplotlib.use("agg")
from matplotlib import pyplot

SPARSITIES = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
SEEDS = range(3)
CURVES = {
    "GST, returned model": ("gst", "test", "tab:blue"),
    "GST, fresh model on its graph": ("gst", "retrain_test", "tab:cyan"),
    "random edges, fresh model": ("random", "retrain_test", "tab:gray"),
}


def measure(method: str, sparsity: float) -> list[dict[str, Any]]:
    data = gst.load("digits")
    return [gst.sparsify(data, method, sparsity=sparsity, seed=s, dense=True, retrain=True).metrics for s in SEEDS]


def main(path: str) -> None:
    runs = {(method, s): measure(method, s) for method in ("gst", "random") for s in SPARSITIES}
    dense = [m["dense_test"] for m in runs["gst", SPARSITIES[0]]]
    figure, axes = pyplot.subplots(figsize=(7, 3.8), dpi=150)
    axes.axhline(statistics.mean(dense), color="black", linestyle="--", linewidth=1, label="dense graph")
    for label, (method, name, colour) in CURVES.items():
        found = [[m[name] for m in runs[method, s]] for s in SPARSITIES]
        means, spread = [statistics.mean(f) for f in found], [statistics.stdev(f) for f in found]
        percent = [100 * s for s in SPARSITIES]
        axes.errorbar(percent, means, spread, color=colour, marker="o", markersize=4, capsize=3, label=label)
    axes.set(xlabel="sparsity: share of edges removed, %", ylabel="test accuracy, %")
    axes.set_title("Handwritten digits as a graph, GCN-64, mean ± sd of 3 seeds", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["curve.png"])
