"""Which divergence and which temperature suit the search of Deploy. A Markdown table on stdout.

    python benchmarks/divergence.py [--datasets cora citeseer pubmed] [--backbone gcn] [--seeds 6]

One path per row, data set and seed. A cell has, at each sparsity, the share of all nodes in per cent that are predicted
as on all edges, and the difference to the dense model on validation in points; means over the seeds. No test node is
read.
"""

import argparse
from typing import Any

import numpy as np
import torch

import gst
from gst.graph.select import top_k
from gst.lab.markdown import markdown_table
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import deploy
from gst.train.run import Run

TRAINING: dict[str, Any] = {"lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100, "cache": False}
SPARSITIES = (0.6, 0.8, 0.85, 0.9, 0.95)
ROWS = [(False, 0.01), (False, 0.05), (False, 0.2), *((True, sharp) for sharp in (0.005, 0.01, 0.02, 0.05, 0.2))]


@torch.no_grad()
def measure(run: Run) -> np.ndarray:
    """[row, sparsity, 2] agreement and the difference on validation."""
    with torch.enable_grad():
        network, _ = run.train_fresh(None, "dense")
    network.module.eval()
    edges, task = run.edges, run.task
    logits, total = network.logits(edges), edges.num_edges
    dense = task.score(logits[task.val], "val")
    measured = np.empty((len(ROWS), len(SPARSITIES), 2))
    for row, (damped, sharpness) in enumerate(ROWS):
        target = Target.of(logits, task.multilabel, sharpness, damped)
        _, scores = deploy(network, edges, logits, total - round(min(SPARSITIES) * total), target)
        for column, sparsity in enumerate(SPARSITIES):
            sparse = network.logits(edges.subset(top_k(scores, total - round(sparsity * total))))
            agreement = (task.predict(sparse) == task.predict(logits)).double().mean()
            measured[row, column] = 100 * float(agreement), task.score(sparse[task.val], "val") - dense
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--backbone", default="gcn")
    parser.add_argument("--seeds", type=int, default=6)
    args = parser.parse_args()
    torch.set_num_threads(1)
    columns = []
    for name in args.datasets:
        common = {"backbone": args.backbone, "hidden": 32 if name == "pubmed" else 64, **TRAINING}
        data = gst.load(name)
        runs = (gst.Deploy(sparsity=0.5, seed=seed, **common).run(data) for seed in range(args.seeds))
        columns.append(np.mean([measure(run) for run in runs], axis=0))
    lines = []
    for row, (damped, sharpness) in enumerate(ROWS):
        cells = [", ".join(f"{agreement:.1f} ({val:+.1f})" for agreement, val in column[row]) for column in columns]
        lines.append(["log(1 + KL)" if damped else "KL", str(sharpness), *(cell.replace("-", "−") for cell in cells)])
    print(markdown_table(["D", "T / margin", *args.datasets], lines), end="")


if __name__ == "__main__":
    main()
