"""Deploy, Retrain and GST on real graphs: one row per run, appended to a CSV file.

    python benchmarks/methods.py results/methods.csv --datasets cora citeseer pubmed --methods deploy retrain --seeds 5
    python benchmarks/methods.py results/methods.csv --table

Runs that the file already has are not repeated, so an interrupted table continues where it stopped. All runs of one
data set, backbone and seed share a cache: one dense model, one anchor, one greedy path. Hidden 64 (PubMed 32) unless
``--hidden`` says otherwise, lr 0.01 or ``--lr``, 100 + 100 epochs for every model. ``--table`` prints the difference to
the dense model of the same seed: mean over the seeds ± half its 95 % interval (Student's t).
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

import gst
from gst.base.stats import difference
from gst.base.versions import versions
from gst.lab.markdown import markdown_table
from gst.lab.measurements import Measurements
from gst.storage.cache import Cache

KEY = ["dataset", "backbone", "hidden", "method", "sparsity", "seed"]
SCORES = ["dense_val", "dense_test", "val", "test", "retrain_val", "retrain_test"]
COLUMNS = [*KEY, *SCORES, "anchor_seconds", "search_seconds", "versions"]
TRAINING: dict[str, Any] = {"anchor_epochs": 100, "sparse_epochs": 100}
LR = 0.01


def measure(args: argparse.Namespace, table: Measurements) -> None:
    for name in args.datasets:
        for seed in range(args.seeds):
            data = gst.load(name, split=seed if args.splits else None)
            hidden = args.hidden or (32 if name.lower() == "pubmed" else 64)
            label = data.name + (" (split of the seed)" if args.splits else "")
            label += f" (lr {args.lr:g})" if args.lr != LR else ""
            for backbone in args.backbones:
                with tempfile.TemporaryDirectory() as folder:
                    common: dict[str, Any] = {"backbone": backbone, "hidden": hidden, "seed": seed, **TRAINING}
                    common |= {"lr": args.lr, "cache": Cache(Path(folder))}
                    for method, sparsity in runs(args):
                        key = dict(zip(KEY, (label, backbone, hidden, method, sparsity, seed), strict=True))
                        arguments = {**common, "sparsity": sparsity, "retrain": not args.no_retrain}
                        if method == "gst":
                            arguments["interval"] = TRAINING["sparse_epochs"] // 20  # 19 exchanges
                        table.measure(key, versions(data.name, backbone, "full", method), run, data, method, arguments)


def run(data: Data, method: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    metrics = gst.sparsify(data, method, dense=True, **arguments).metrics
    seconds = metrics["seconds"]
    yield {**metrics, "anchor_seconds": seconds["anchor"], "search_seconds": seconds["sparse"]}


def runs(args: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Methods and sparsities; the longest path comes first, since the others are part of it."""
    return ((method, sparsity) for method in args.methods for sparsity in sorted(args.sparsities))


def show(table: Measurements) -> str:
    """One row per configuration."""
    lines = []
    for key, rows in table.groups(KEY[:-1]).items():
        dense = [float(row["dense_test"]) for row in rows]
        cells = [f"{fmean(dense):.1f}"]
        for column in ("test", "retrain_test"):
            if any(row[column] == "" for row in rows):
                cells += ["", ""]
                continue
            scores = [float(row[column]) for row in rows]
            losses = [score - reference for score, reference in zip(scores, dense, strict=True)]
            cells += [f"{fmean(scores):.1f}", str(difference(losses))]
        lines.append([*key, str(len(rows)), *cells])
    head = ["data", "backbone", "hidden", "method", "sparsity", "code", "seeds", "dense", "returned", "Δ", "fresh", "Δ"]
    return markdown_table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--backbones", nargs="+", default=["gcn"])
    parser.add_argument("--methods", nargs="+", default=["deploy", "retrain"])
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.6, 0.8])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--lr", type=float, default=LR)
    parser.add_argument("--splits", action="store_true", help="a different split for every seed")
    parser.add_argument("--no-retrain", action="store_true", help="no fresh model on the sparse graph")
    parser.add_argument("--table", action="store_true", help="print the table of the file, run nothing")
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = Measurements(args.csv, KEY, COLUMNS, digits=2)
    if args.table:
        print(show(table), end="")
    else:
        measure(args, table)


if __name__ == "__main__":
    main()
