"""What Deploy loses when features change after deployment, with and without scenarios.

python benchmarks/scenarios.py [DATASET] [--sparsity 0.8] [--seeds 1] > results/scenarios.json

GCN-64, lr 0.01, 100 + 100 epochs. Test scores of the frozen model on all edges and on each sparse graph, on the
features as they are and with 20 and 30 % of the columns dropped or shuffled (three draws each, seen by no search).
"""

import argparse
import json
import sys
import time
from typing import Any

import torch

import gst
from gst.methods.deploy import find_path, objective
from gst.methods.scenarios import Scenarios, on_features
from gst.nn.feature_changes import CHANGES

CANDIDATES: dict[str, Scenarios | None] = {
    "plain": None,
    **{f"8 × {change} {share}": Scenarios(8, change, share) for change, share in (
        ("dropped", 0.2), ("dropped", 0.4), ("shuffled", 0.3), ("perturbed", 0.2))},
}  # fmt: skip


@torch.no_grad()
def measure(name: str, sparsity: float, seed: int, candidates: list[str]) -> list[dict[str, Any]]:
    """One row for all edges and one for each candidate."""
    options: dict[str, Any] = {"hidden": 64, "lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100, "seed": seed}
    run = gst.Deploy(sparsity=sparsity, **options).run(gst.load(name))
    run.begin({})
    with torch.enable_grad():
        dense = run.dense
    network, x = run.network(), run.data.x
    network.module.load_state_dict(dense.model)
    network.module.eval()
    changed = {f"{change} {share}": [on_features(network, CHANGES[change](x, share, 99 + draw)) for draw in range(3)]
               for change in ("dropped", "shuffled") for share in (0.2, 0.3)}  # fmt: skip
    draws = {"as cut": [network], **changed}

    def row(label: str, edges: Any, seconds: float) -> dict[str, Any]:
        scores = {
            key: sum(run.task.score(n.logits(edges)[run.task.test], "test") for n in networks) / len(networks)
            for key, networks in draws.items()
        }
        found = {
            "edges": label,
            "seed": seed,
            **{k: round(v, 2) for k, v in scores.items()},
            "seconds": round(seconds, 1),
        }
        print(json.dumps(found), file=sys.stderr, flush=True)
        return found

    rows = [row("all", run.edges, dense.seconds)]
    total = run.edges.num_edges
    kept = total - round(sparsity * total)
    for label in candidates:
        start = time.perf_counter()
        record = find_path(run, objective(run, network).with_copies(run, CANDIDATES[label]), kept)
        seconds = time.perf_counter() - start
        rows.append(row(label, run.edges.subset(record.path.scores(kept, total) > 0), seconds))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="cora")
    parser.add_argument("--sparsity", type=float, default=0.8)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--candidates", nargs="*", default=list(CANDIDATES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        r
        for s in range(arguments.seeds)
        for r in measure(arguments.dataset, arguments.sparsity, s, arguments.candidates)
    ]
    print(json.dumps({"dataset": arguments.dataset, "sparsity": arguments.sparsity, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
