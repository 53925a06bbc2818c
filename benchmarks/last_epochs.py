"""Why the model that GST returns is behind a fresh one: it may only be chosen among the epochs after the last update.

    python benchmarks/last_epochs.py --datasets cora citeseer --seeds 3

The dense GCN in the paper's setting, of which no edge is removed: its test accuracy at the best validation epoch of all
E + D, and at the best of the last ΔT, which is all that the last mask of GST has. Prints JSON.
"""

import argparse
import json
from statistics import fmean

import torch

import gst
from gst.base.randomness import seeded
from gst.base.stats import difference


def curve(dataset: str, seed: int) -> list[tuple[float, float]]:
    """Validation and test score after every epoch."""
    run = gst.Random(sparsity=0.4, seed=seed, cache=False).run(gst.load(dataset, split=f"paper:{seed}"))
    epochs, scores = run.training.anchor_epochs + run.training.sparse_epochs, []
    with seeded(seed + 1):
        trainer = run.trainer(run.network())
        for _ in range(epochs):
            trainer.step(run.edges)
            scores.append((trainer.evaluate(run.edges), trainer.evaluate(run.edges, "test")))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--last", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for dataset in args.datasets:
        pairs = []
        for seed in range(args.seeds):
            scores = curve(dataset, seed)
            pairs.append([max(part, key=lambda score: score[0])[1] for part in (scores, scores[-args.last :])])
        change = difference([late - best for best, late in pairs])
        print(
            json.dumps(
                {
                    "dataset": dataset,
                    "best of all epochs": round(fmean(best for best, _ in pairs), 2),
                    f"best of the last {args.last}": round(fmean(late for _, late in pairs), 2),
                    "difference": str(change),
                    "seeds": args.seeds,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
