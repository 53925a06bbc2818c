"""The README's table: one ``gst run`` a cell and seed, one row a run, appended to a CSV as it goes.

    python benchmarks/headline.py results/headline.csv             # runs what is missing, or of earlier code
    python benchmarks/headline.py results/headline.csv --table     # prints the table

Every run is the very command that its row names, in a process of its own with one thread.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import record
from gst.base.versions import versions

DATASETS = ("cora", "citeseer", "pubmed")
RUNS = {  # algorithm: its options
    "gst": "--method gst --recipe paper --sparsity 0.4 --retrain",
    "random": "--method random --sparsity 0.4",
    "deploy": "--method gst --recipe deploy --sparsity 0.8",
}
SHOWN = {  # the table's columns: of which run, which score
    "dense": ("gst", "dense_test"),
    "Deploy, 80 % removed": ("deploy", "test"),
    "GST, 40 % removed": ("gst", "test"),
    "fresh model on its graph": ("gst", "retrain_test"),
    "random, 40 % removed": ("random", "test"),
}
SCORES = ["dense_val", "dense_test", "val", "test", "retrain_val", "retrain_test"]
COLUMNS = ["dataset", "method", "seed", "edges_total", "edges_kept", *SCORES, "versions", "command"]


def command_of(dataset: str, method: str, seed: int) -> str:
    return f"OMP_NUM_THREADS=1 gst run --dataset {dataset} --backbone gcn {RUNS[method]} --seed {seed} --json"


def run(command: str) -> dict[str, object]:
    """What such a command prints."""
    words = [sys.executable, "-m", *shlex.split(command)[1:], "--quiet"]
    done = subprocess.run(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def make(path: Path, datasets: list[str], seeds: int) -> None:
    done = record.done(path, ["command"])
    for dataset in datasets:
        for seed in range(seeds):
            for method in RUNS:
                command = command_of(dataset, method, seed)
                if (command,) in done:
                    continue
                found = run(command)
                code = versions(str(found["dataset"]), "gcn", "full", method)
                row = {**found, "method": method, "versions": code, "command": command}
                record.add(path, ["command"], COLUMNS, [row], 2)
                print(command, f"{found['test']:.1f}", flush=True)


def table(path: Path) -> str:
    """Markdown: a row a data set."""
    rows = [row for row in record.read(path) if not record.age(row)]
    head = ["data, GCN", *SHOWN]
    lines = [head, ["---"] * len(head)]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        part = [row for row in rows if row["dataset"] == dataset]
        lines.append([dataset, *(spread([float(r[s]) for r in part if r["method"] == m]) for m, s in SHOWN.values())])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def spread(values: list[float]) -> str:
    """Mean ± sample standard deviation."""
    return f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}" if len(values) > 1 else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        make(args.csv, args.datasets, args.seeds)
    print(table(args.csv), end="")


if __name__ == "__main__":
    main()
