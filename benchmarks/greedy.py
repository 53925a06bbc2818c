"""What the search of recipe "deploy" costs: against training, and as graphs grow. JSON on stdout.

    python benchmarks/greedy.py [--datasets cora citeseer pubmed computers] [--scales 1 2 4 8]

Processor seconds of one thread, after compilation. ``ratio``: the search against the training of the model it is for
(E + D = 200 epochs, hidden 64, PubMed 32). ``answers_alike``: share of all nodes, in percent, that answer as on all
edges; no label is read. At 0.2 the search goes from all edges down. Computers has nodes of up to 2,992 edges.
``growth``: the slope of log seconds over log edges on block models of 2,000 nodes and more, 10 edges a node, 40 % kept,
two sizes or more; ``growth_of_rows``: that of the rows recomputed, which no other user of the caches changes.
Training and searches take turns three times (Computers once), and so do the sizes five times, since whoever shares the
machine slows both: ``seconds`` are the least, ``ratio`` and ``growth`` the median of the turns.
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
from gst.train.run import Problem

TRAINING: dict[str, Any] = {"lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100, "cache": False}
SHORT = {"anchor_epochs": 15, "sparse_epochs": 15}


def cost(problem: Problem, sparsities: list[float], times: int = 3) -> dict[str, Any]:
    """Seconds of training and of each search, in turns so many times: the least, and the median of their ratios."""
    edges, spent = problem.edges, np.empty((times, 1 + len(sparsities)))
    found: dict[str, Any] = {"edges": edges.num_edges}
    for turn in range(times):
        start = time.process_time()
        network, _ = problem.train_fresh(None, "dense")
        spent[turn, 0] = time.process_time() - start
        network.module.eval()
        with torch.no_grad():
            logits = network.logits(edges)
        deploy(network, edges, logits, 1)  # compiles
        for column, sparsity in enumerate(sparsities, 1):
            start = time.process_time()
            keep, _ = deploy(network, edges, logits, edges.num_edges - round(sparsity * edges.num_edges))
            spent[turn, column] = time.process_time() - start
            with torch.no_grad():
                alike = (network.logits(edges.subset(keep)).argmax(1) == logits.argmax(1)).double().mean()
            found[str(sparsity)] = {"answers_alike": round(100 * float(alike), 1)}
    found["training"] = round(spent[:, 0].min(), 2)
    for column, sparsity in enumerate(sparsities, 1):
        ratio = np.median(spent[:, column] / spent[:, 0])
        found[str(sparsity)] |= {"seconds": round(spent[:, column].min(), 2), "ratio": round(float(ratio), 2)}
    return found


def growth(scales: list[int], times: int = 5) -> dict[str, Any]:
    """Slopes over log edges: of log seconds, the median of so many turns of all sizes, and of log rows."""
    problems = [
        Problem(gst.load(f"synthetic:nodes={2000 * scale},degree=20"), hidden=32, **{**TRAINING, **SHORT})
        for scale in scales
    ]
    models = [(problem.train_fresh(None, "dense")[0], problem.edges) for problem in problems]
    search(*models[0])  # compiles
    found = np.array([[search(*model) for model in models] for _ in range(times)])  # [turn, size, seconds or rows]
    edges = [model[1].num_edges for model in models]
    slopes, of_rows = (np.polyfit(np.log(edges), np.log(found[..., what].T), 1)[0] for what in (0, 1))
    return {
        "edges": edges,
        "seconds": [round(least, 2) for least in found[..., 0].min(0)],
        "growth": round(float(np.median(slopes)), 3),
        "growth_of_turns": [round(slope, 3) for slope in slopes],
        "growth_of_rows": round(float(of_rows[0]), 3),
    }


def search(network: Network, edges: EdgeSet, sparsity: float = 0.6) -> tuple[float, int]:
    """Seconds of a search, and how many rows of all layers its trials recompute."""
    network.module.eval()
    with torch.no_grad():
        logits = network.logits(edges)
    start = time.process_time()
    made = make_search([network], edges, [logits], Target.of(logits))
    assert isinstance(made, Search)
    made.advance(edges.num_edges - round(sparsity * edges.num_edges))
    trial = made.model[2]
    return time.process_time() - start, int(trial.first.sum() + trial.size.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="*", default=["cora", "citeseer", "pubmed", "computers"])
    parser.add_argument("--scales", nargs="*", type=int, default=[1, 2, 4, 8])
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name in args.datasets:
        width = 32 if name == "pubmed" else 64
        sparsities = [0.8, 0.9, 0.95] if name == "computers" else [0.2, 0.4, 0.6, 0.8]
        times = 1 if name == "computers" else 3
        found[name] = cost(Problem(gst.load(name), hidden=width, **TRAINING), sparsities, times)
    if len(args.scales) > 1:
        found["synthetic"] = growth(args.scales)
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
