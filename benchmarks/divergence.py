"""Which divergence, and which temperature, the search of recipe "deploy" should go by. A Markdown table on stdout.

    python benchmarks/divergence.py [--datasets cora citeseer pubmed] [--backbone gcn] [--seeds 6]

One path a row, data set and seed. A cell has, at each sparsity, the share of all nodes, in percent, that answer as on
all edges, and the difference to the dense model on validation, in points; means over the seeds. No test node is read.
"""

import argparse
from typing import Any

import numpy as np
import torch

import gst
from gst.graph.select import top_k
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import deploy
from gst.train.run import Problem

TRAINING: dict[str, Any] = {"lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100, "cache": False}
SPARSITIES = (0.6, 0.8, 0.85, 0.9, 0.95)
ROWS = [(False, 0.01), (False, 0.05), (False, 0.2), *((True, sharp) for sharp in (0.005, 0.01, 0.02, 0.05, 0.2))]


@torch.no_grad()
def follow(problem: Problem) -> np.ndarray:
    """[row, sparsity, 2] agreement and the difference on validation."""
    with torch.enable_grad():
        network, _ = problem.train_fresh(None, "dense")
    network.module.eval()
    edges, task = problem.edges, problem.task
    logits, total = network.logits(edges), edges.num_edges
    dense = task.score(logits[task.val], "val")
    found = np.empty((len(ROWS), len(SPARSITIES), 2))
    for row, (damped, sharpness) in enumerate(ROWS):
        target = Target.of(logits, task.multilabel, sharpness, damped)
        _, scores = deploy(network, edges, logits, total - round(min(SPARSITIES) * total), target)
        for column, sparsity in enumerate(SPARSITIES):
            sparse = network.logits(edges.subset(top_k(scores, total - round(sparsity * total))))
            alike = (task.predict(sparse) == task.predict(logits)).double().mean()
            found[row, column] = 100 * float(alike), task.score(sparse[task.val], "val") - dense
    return found


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
        problems = (Problem(gst.load(name), seed=seed, **common) for seed in range(args.seeds))
        columns.append(np.mean([follow(problem) for problem in problems], axis=0))
    print(f"| D | T / margin | {' | '.join(args.datasets)} |")
    print("|---|---|" + "---|" * len(args.datasets))
    for row, (damped, sharpness) in enumerate(ROWS):
        cells = [", ".join(f"{alike:.1f} ({val:+.1f})" for alike, val in column[row]) for column in columns]
        print(f"| {'log(1 + KL)' if damped else 'KL'} | {sharpness} | {' | '.join(cells)} |".replace("-", "−"))


if __name__ == "__main__":
    main()
