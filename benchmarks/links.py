"""Link prediction: a tenth of the edges held out, dense against sparse graphs; prints JSON.

python benchmarks/links.py --datasets cora pubmed --seeds 3 > links.json
"""

import argparse
import json
import sys
import warnings
from statistics import mean

import torch

import gst
from gst.base.stats import difference

METHODS = ("gst", "deploy", "random", "local-similarity")
METRICS = ("auc", "hits@50", "mrr")


def runs(dataset: str, seed: int, sparsities: list[float], methods: list[str], backbone: str) -> list[dict]:
    """One row for the dense model and one for each method and sparsity, all of one split and seed."""
    data = gst.load(dataset, task="links", split=seed)
    rows: list[dict] = []
    for method in methods:
        for sparsity in sparsities:
            result = gst.sparsify(data, method, sparsity=sparsity, backbone=backbone, seed=seed, dense=True)
            measured, seconds = result.metrics["measures"], result.metrics["seconds"]["total"]
            if not rows:
                rows.append({"method": "dense", "sparsity": 0.0, **measured["dense_test"]})
            row = {"method": method, "sparsity": sparsity, **measured["test"], "seconds": seconds}
            rows.append({**row, "agreement": result.metrics["agreement"], "by": result.metrics["by"]})
            print(dataset, seed, method, sparsity, round(measured["test"]["hits@50"], 3), file=sys.stderr)
    return [{"dataset": dataset, "seed": seed, **row} for row in rows]


def summary(rows: list[dict]) -> list[dict]:
    """Mean and 95 % interval over the seeds, of the score and of its difference from dense."""
    dense = {(row["dataset"], row["seed"]): row for row in rows if row["method"] == "dense"}
    lines = []
    for key in dict.fromkeys((row["dataset"], row["method"], row["sparsity"]) for row in rows):
        cell = [row for row in rows if (row["dataset"], row["method"], row["sparsity"]) == key]
        line: dict = dict(zip(("dataset", "method", "sparsity"), key, strict=True)) | {"seeds": len(cell)}
        for metric in METRICS:
            line[metric] = mean(row[metric] for row in cell)
            change = [row[metric] - dense[row["dataset"], row["seed"]][metric] for row in cell]
            gap = difference(change)
            line[f"{metric} - dense"] = [gap.mean, gap.low, gap.high]
        lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.2, 0.4, 0.6])
    parser.add_argument("--backbone", default="gcn")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", gst.AgreementWarning)
    rows: list[dict] = []
    for dataset in options.datasets:
        for seed in range(options.seeds):
            rows += runs(dataset, seed, options.sparsities, options.methods, options.backbone)
    facts = {"torch": torch.__version__, "threads": torch.get_num_threads(), "backbone": options.backbone}
    print(json.dumps({"facts": facts, "summary": summary(rows), "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
