"""The README's table: one ``gst run`` per cell and seed, one row per run, appended to a CSV file.

    python benchmarks/headline.py results/headline.csv             # runs what is missing or of earlier code
    python benchmarks/headline.py results/headline.csv --table     # prints the table

Every run is the command that its row names, in a separate process with one thread.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from gst.base.stats import Stat
from gst.base.versions import versions
from gst.lab.markdown import markdown_table
from gst.lab.measurements import Measurements, age

DATASETS = ("cora", "citeseer", "pubmed")
RUNS = {  # options by method
    "gst": "--sparsity 0.4 --retrain",
    "random": "--sparsity 0.4",
    "deploy": "--sparsity 0.8",
}
SHOWN = {  # the table's columns: method and score
    "dense": ("gst", "dense_test"),
    "Deploy, 80 % removed": ("deploy", "test"),
    "GST, 40 % removed": ("gst", "test"),
    "fresh model on its graph": ("gst", "retrain_test"),
    "random, 40 % removed": ("random", "test"),
}
SCORES = ["dense_val", "dense_test", "val", "test", "retrain_val", "retrain_test"]
COLUMNS = ["dataset", "method", "seed", "edges_total", "edges_kept", *SCORES, "versions", "command"]


def command_of(dataset: str, method: str, seed: int) -> str:
    options = f"--method {method} {RUNS[method]} --seed {seed} --json"
    return f"OMP_NUM_THREADS=1 MKL_CBWR=COMPATIBLE gst run --dataset {dataset} --backbone gcn {options}"


def run(command: str) -> dict[str, Any]:
    """The JSON object that such a command prints."""
    settings, _, options = command.partition("gst run")
    arguments = [sys.executable, "-m", "gst", "run", *shlex.split(options), "--quiet"]
    environment = {**os.environ, **dict(setting.split("=") for setting in settings.split())}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measurements(path: Path) -> Measurements:
    return Measurements(path, ["command"], COLUMNS, digits=2)


def measure(path: Path, datasets: list[str], seeds: int) -> None:
    for dataset in datasets:
        for seed in range(seeds):
            for method in RUNS:
                command = command_of(dataset, method, seed)
                code = versions(dataset, "gcn", "full", method)
                if measurements(path).measure({"command": command}, code, lambda command: [run(command)], command):
                    print(command, flush=True)


def table(path: Path) -> str:
    """Markdown, one row per data set; it says so if a method's runs are not all by current code: then those before."""
    every = measurements(path).rows()
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in every):
        cells, old = [], False
        for method, score in SHOWN.values():
            rows = [row for row in every if (row["dataset"], row["method"]) == (dataset, method)]
            before = [row for row in rows if age(row)]
            values = [float(row[score]) for row in before or rows]
            cells.append(str(Stat.of(values)) if len(values) > 1 else "–")
            old = old or bool(before)
        lines.append([f"{dataset}, earlier code" if old else dataset, *cells])
    return markdown_table(["data, GCN", *SHOWN], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        measure(args.csv, args.datasets, args.seeds)
    print(table(args.csv), end="")


if __name__ == "__main__":
    main()
