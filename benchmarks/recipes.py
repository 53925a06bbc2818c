"""GST's recipes on real graphs: one row a run, appended to a CSV as it goes.

    python benchmarks/recipes.py results/recipes.csv --datasets cora citeseer pubmed --recipes deploy retrain --seeds 5
    python benchmarks/recipes.py results/recipes.csv --table

Rows that the file already has are not run again, so an interrupted table goes on where it stopped. All runs of one data
set, backbone and seed share a cache: one dense model, one anchor, one path of the greedy. Hidden 64 (PubMed 32) unless
``--hidden`` says otherwise, lr 0.01 or ``--lr``, 100 + 100 epochs for every model. ``--table`` prints the paired
difference to the dense model of the same seed, mean over the seeds with its 95 % interval (Student's t).
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student

import gst
import record
from gst.base.versions import versions
from gst.storage.cache import Cache

KEY = ["dataset", "backbone", "hidden", "recipe", "sparsity", "seed"]
SCORES = ["dense_val", "dense_test", "val", "test", "retrain_val", "retrain_test"]
COLUMNS = [*KEY, *SCORES, "anchor_seconds", "search_seconds", "versions"]
TRAINING: dict[str, Any] = {"anchor_epochs": 100, "sparse_epochs": 100}
LR = 0.01


def run(args: argparse.Namespace) -> None:
    done = record.done(args.csv, KEY)
    for name in args.datasets:
        for seed in range(args.seeds):
            data = gst.load(name, split=seed if args.splits else None)
            width = args.hidden or (32 if name.lower() == "pubmed" else 64)
            label = data.name + (" (split of the seed)" if args.splits else "")
            label += f" (lr {args.lr:g})" if args.lr != LR else ""
            for backbone in args.backbones:
                with tempfile.TemporaryDirectory() as folder:
                    common: dict[str, Any] = {
                        "hidden": width,
                        "seed": seed,
                        "cache": Cache(Path(folder)),
                        **TRAINING,
                        "lr": args.lr,
                    }
                    for recipe in args.recipes:
                        for sparsity in sorted(args.sparsities):  # the longest path first: the others are part of it
                            key = dict(zip(KEY, (label, backbone, width, recipe, sparsity, seed), strict=True))
                            if tuple(map(str, key.values())) in done:
                                continue
                            chosen = {**common, "recipe": recipe, "backbone": backbone, "sparsity": sparsity}
                            found = gst.sparsify(data, "gst", dense=True, retrain=not args.no_retrain, **chosen).metrics
                            seconds = found["seconds"]
                            times = {"anchor_seconds": seconds["anchor"], "search_seconds": seconds["sparse"]}
                            code = versions(data.name, backbone, "full", recipe)
                            row = {**key, **{s: found.get(s) for s in SCORES}, **times, "versions": code}
                            record.add(args.csv, KEY, COLUMNS, [row], 2)


def table(path: Path) -> None:
    """Markdown: a row a setting."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in record.read(path):
        groups.setdefault((*(row[name] for name in KEY[:-1]), record.age(row)), []).append(row)
    print("| data | backbone | hidden | recipe | sparsity | code | seeds | dense | returned | Δ | fresh | Δ |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for key, rows in groups.items():
        dense = np.array([float(row["dense_test"]) for row in rows])
        cells = [f"{dense.mean():.1f}"]
        for score in ("test", "retrain_test"):
            if any(row[score] == "" for row in rows):
                cells += ["", ""]
                continue
            found = np.array([float(row[score]) for row in rows])
            cells += [f"{found.mean():.1f}", difference(found - dense)]
        print("| " + " | ".join([*key, str(len(rows)), *cells]) + " |")


def difference(values: np.ndarray) -> str:
    if values.size < 2:
        return f"{values.mean():+.1f}"
    half = student.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return f"{values.mean():+.1f} ± {half:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--backbones", nargs="+", default=["gcn"])
    parser.add_argument("--recipes", nargs="+", default=["deploy", "retrain"])
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.6, 0.8])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--lr", type=float, default=LR)
    parser.add_argument("--splits", action="store_true", help="a split of its own for every seed")
    parser.add_argument("--no-retrain", action="store_true", help="no fresh model on the sparse graph")
    parser.add_argument("--table", action="store_true", help="print what the file has, run nothing")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.table:
        table(args.csv)
    else:
        run(args)


if __name__ == "__main__":
    main()
