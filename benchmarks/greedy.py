"""What the search of Deploy costs: against training, and as graphs grow. JSON on stdout.

    python benchmarks/greedy.py [--datasets cora citeseer pubmed computers] [--scales 1 2 4 8]

Processor seconds of one thread, after compilation. ``ratio``: the search against the training of the model it is for
(E + D = 200 epochs, hidden 64, PubMed 32). ``agreement``: share of all nodes, in per cent, that are predicted as on all
edges; no label is read. At 0.2 the search starts from all edges and removes some. Computers has nodes of up to 2,992
edges. ``growth``: the slope of log seconds over log edges on block models of 2,000 nodes and more, 10 edges per node,
40 % kept, two sizes or more; ``growth_of_rows``: that of the rows recomputed, which does not depend on the load of the
machine. Training and searches alternate three times (Computers once), the sizes five times, since other work slows
both: ``seconds`` are the minimum, ``ratio`` and ``growth`` the median of these rounds.
"""

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

import gst
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import Search, deploy, make_search
from gst.nn.network import Network
from gst.train.run import Run

TRAINING: dict[str, Any] = {"lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100, "cache": False}
SHORT = {"anchor_epochs": 15, "sparse_epochs": 15}


def cost(run: Run, sparsities: list[float], rounds: int = 3) -> dict[str, Any]:
    """Seconds of training and of each search, in alternation: the minimum, and the median of their ratios."""
    edges, seconds = run.edges, np.empty((rounds, 1 + len(sparsities)))
    measured: dict[str, Any] = {"edges": edges.num_edges}
    for number in range(rounds):
        start = time.process_time()
        network, _ = run.train_fresh(None, "dense")
        seconds[number, 0] = time.process_time() - start
        network.module.eval()
        with torch.no_grad():
            logits = network.logits(edges)
        deploy(network, edges, logits, 1)  # compiles
        for column, sparsity in enumerate(sparsities, 1):
            start = time.process_time()
            keep_mask, _ = deploy(network, edges, logits, edges.num_edges - round(sparsity * edges.num_edges))
            seconds[number, column] = time.process_time() - start
            with torch.no_grad():
                agreement = (network.logits(edges.subset(keep_mask)).argmax(1) == logits.argmax(1)).double().mean()
            measured[str(sparsity)] = {"agreement": round(100 * float(agreement), 1)}
    measured["training"] = round(seconds[:, 0].min(), 2)
    for column, sparsity in enumerate(sparsities, 1):
        ratio = np.median(seconds[:, column] / seconds[:, 0])
        measured[str(sparsity)] |= {"seconds": round(seconds[:, column].min(), 2), "ratio": round(float(ratio), 2)}
    return measured


def make_run(name: str, hidden: int, **arguments: Any) -> Run:
    return gst.Deploy(sparsity=0.5, hidden=hidden, **{**TRAINING, **arguments}).run(gst.load(name))


def growth(scales: list[int], rounds: int = 5) -> dict[str, Any]:
    """Slopes over log edges: of log seconds, the median over rounds of all sizes, and of log rows."""
    runs = [make_run(f"synthetic:nodes={2000 * scale},degree=20", hidden=32, **SHORT) for scale in scales]
    models = [(run.train_fresh(None, "dense")[0], run.edges) for run in runs]
    search(*models[0])  # compiles
    measured = np.array([[search(*model) for model in models] for _ in range(rounds)])  # [round, size, seconds or rows]
    edges = [model[1].num_edges for model in models]
    slopes, of_rows = (np.polyfit(np.log(edges), np.log(measured[..., part].T), 1)[0] for part in (0, 1))
    return {
        "edges": edges,
        "seconds": [round(least, 2) for least in measured[..., 0].min(0)],
        "growth": round(float(np.median(slopes)), 3),
        "growth_per_round": [round(slope, 3) for slope in slopes],
        "growth_of_rows": round(float(of_rows[0]), 3),
    }


def search(network: Network, edges: EdgeSet, sparsity: float = 0.6) -> tuple[float, int]:
    """Seconds of a search, and the number of rows of all layers that its trials recompute."""
    network.module.eval()
    with torch.no_grad():
        logits = network.logits(edges)
    start = time.process_time()
    steps = make_search([network], edges, [logits], Target.of(logits))
    assert isinstance(steps, Search)
    steps.advance(edges.num_edges - round(sparsity * edges.num_edges))
    trial = steps.model[2]
    return time.process_time() - start, int(trial.first.sum() + trial.size.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="*", default=["cora", "citeseer", "pubmed", "computers"])
    parser.add_argument("--scales", nargs="*", type=int, default=[1, 2, 4, 8])
    args = parser.parse_args()
    torch.set_num_threads(1)
    measured: dict[str, Any] = {}
    for name in args.datasets:
        sparsities = [0.8, 0.9, 0.95] if name == "computers" else [0.2, 0.4, 0.6, 0.8]
        rounds = 1 if name == "computers" else 3
        measured[name] = cost(make_run(name, hidden=32 if name == "pubmed" else 64), sparsities, rounds)
    if len(args.scales) > 1:
        measured["synthetic"] = growth(args.scales)
    print(json.dumps(measured, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
