"""What a cap on the neighbours that a node reads costs: Deploy against K-Neighbor. JSON on stdout, a line per row.

    python benchmarks/max_degree.py [--datasets debian arxiv-citations] [--caps 4 8 16 32] [--fresh]

One GCN of width 128, 120 epochs, seed 0, on all edges; its weights stay as they are (frozen) on every sparse graph.
Deploy and K-Neighbor with random arcs (three draws) keep as many arcs as the cap allows, K-Neighbor also the arcs of
highest local similarity; Deploy also with 80 % of the arcs removed. ``reads``: nodes that the two layers read for the
answer of one test node, itself included; mean, median and 99th percentile over 1,000 of them. ``--fresh``: also test
accuracy of a model trained on each sparse graph.
"""

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

import gst
from gst.graph.edgeset import EdgeSet
from gst.train.run import Run

TRAINING: dict[str, Any] = {"hidden": 128, "layers": 2, "lr": 0.01, "anchor_epochs": 60, "sparse_epochs": 60}
PLAIN: dict[str, Any] = {"norm": "none", "residual": False}
DRAWS = 3


def reads(edges: EdgeSet, nodes: Tensor, sample: int = 1000) -> dict[str, float]:
    """Nodes within two hops of the kept arcs, for a sample of the nodes."""
    size = edges.num_nodes
    source, reader = edges.arcs.numpy()
    hop = sparse.csr_matrix((np.ones(source.size, np.float32), (reader, source)), shape=(size, size))
    hop = hop + sparse.identity(size, format="csr", dtype=np.float32)
    chosen = np.random.default_rng(0).permutation(nodes.numpy())[:sample]
    counts = np.concatenate([np.diff((hop[part] @ hop).indptr) for part in np.array_split(chosen, 50)])
    return {"mean": float(counts.mean()), "median": float(np.median(counts)), "p99": float(np.percentile(counts, 99))}


class Bench:
    """One dense model, and what it answers on sparse graphs."""

    def __init__(self, dataset: str, fresh: bool) -> None:
        self.data, self.fresh = gst.load(dataset), fresh
        self.run: Run = gst.Deploy(sparsity=0.5, **TRAINING, **PLAIN).run(self.data)
        self.network = self.run.network()
        self.network.module.load_state_dict(self.run.dense.model)
        self.network.module.eval()
        self.row: dict[str, Any] = {"dataset": dataset}

    @torch.no_grad()
    def show(self, method: str, keep_mask: Tensor, **facts: Any) -> None:
        edges, task = self.run.edges.subset(keep_mask), self.run.task
        logits = self.network.logits(edges)
        row = {**self.row, "method": method, **facts, "kept": round(edges.num_edges / self.run.edges.num_edges, 4)}
        row |= {part: round(task.score(logits[getattr(task, part)], part), 2) for part in ("val", "test")}
        row |= {"agreement": round(100 * self.run.agreement(logits), 2), "reads": reads(edges, task.test)}
        if self.fresh:
            with torch.enable_grad():
                row["fresh_test"] = round(self.run.train_fresh(keep_mask, "retrain")[1]["retrain_test"], 2)
        print(json.dumps(row), flush=True)

    def deploy(self, **amount: Any) -> None:
        start = time.process_time()
        found = gst.Deploy(**amount, **TRAINING, **PLAIN).fit(self.data)
        self.show("deploy", found.found_.keep_mask, **amount, seconds=round(time.process_time() - start, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["debian", "arxiv-citations"])
    parser.add_argument("--caps", nargs="+", type=int, default=[4, 8, 16, 32])
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for dataset in options.datasets:
        bench = Bench(dataset, options.fresh)
        edges = bench.run.edges
        bench.show("dense", torch.ones(edges.num_edges, dtype=torch.bool), seconds=round(bench.run.dense.seconds, 1))
        for cap in options.caps:
            for seed in range(DRAWS):
                chosen = gst.KNeighbor(max_degree=cap, seed=seed).select(edges)[0]
                bench.show("k-neighbor, random", chosen, max_degree=cap, seed=seed)
            chosen = gst.KNeighbor(max_degree=cap, scores="local-similarity").select(edges)[0]
            bench.show("k-neighbor, local similarity", chosen, max_degree=cap)
        bench.deploy(sparsity=0.8)
        for cap in options.caps:
            capacity = bench.run.edges.num_edges
            fits = int(torch.bincount(edges.pairs[1]).clamp(max=cap).sum())
            bench.deploy(max_degree=cap, keep=min(fits, capacity - round(0.8 * capacity)))


if __name__ == "__main__":
    main()
