"""Every method at every sparsity with one protocol: one row a run, appended to a CSV as it goes.

    python benchmarks/methods.py results/methods.csv --datasets cora citeseer pubmed --seeds 3

Rows that the file already has are not run again, so an interrupted table goes on where it stopped. All runs of one data
set and seed share a cache: one anchor, one dense baseline, one path of every iterative method. GCN, hidden 64 (PubMed
32), lr 0.01, 200 epochs for every model that is compared.
"""

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Any

import torch

import gst
from gst.cache import Cache
from gst.sparsifiers import METHODS

COLUMNS = ["dataset", "method", "sparsity", "seed", "val", "test", "retrain_val", "retrain_test"]
# half as many rounds: every epoch of WD-GLT passes over all nodes twice
OPTIONS: dict[tuple[str, str], dict[str, Any]] = {("PubMed", "wd-glt"): {"prune_ratio": 0.1}}
TRAINING: dict[str, Any] = {"lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100}


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: dict[str, Any]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({name: round(v, 1) if isinstance(v, float) else v for name, v in row.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.2, 0.4, 0.6, 0.8])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    done = {tuple(row[name] for name in COLUMNS[:4]) for row in rows_of(args.csv)}
    for name in args.datasets:
        data = gst.load(name)
        width = 32 if name.lower() == "pubmed" else 64
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as folder:
                common: dict[str, Any] = {"hidden": width, "seed": seed, "cache": Cache(Path(folder)), **TRAINING}
                for method in args.methods:
                    for sparsity in args.sparsities:
                        key = {"dataset": data.name, "method": method, "sparsity": sparsity, "seed": seed}
                        if tuple(map(str, key.values())) in done:
                            continue
                        own = OPTIONS.get((data.name, method), {})
                        found = gst.sparsify(data, method, sparsity=sparsity, retrain=True, **common, **own)
                        append(args.csv, {**key, **{score: found.metrics[score] for score in COLUMNS[4:]}})
                dense = {"dataset": data.name, "method": "dense", "sparsity": 0.0, "seed": seed}
                if tuple(map(str, dense.values())) not in done:
                    found = gst.sparsify(data, "random", sparsity=0.0, dense=True, **common)
                    scores = {"val": found.metrics["dense_val"], "test": found.metrics["dense_test"]}
                    append(args.csv, {**dense, **scores})


if __name__ == "__main__":
    main()
