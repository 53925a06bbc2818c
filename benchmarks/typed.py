"""ACM, DBLP and IMDB: a trained model beside the same on sparse typed graphs, R-GCN and HGT. Prints JSON lines.

    python benchmarks/typed.py --datasets DBLP IMDB ACM --models rgcn hgt --seeds 0 1 2 --out typed.csv

Published scores (Lv et al., KDD 2021, table 3): Micro-F1, which for one class a node is the accuracy.
"""

import argparse
import csv
import json
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch_geometric.data import HeteroData
from torch_geometric.nn import HGTConv

import gst
from gst.api.sparsify import make_method
from gst.train.task import Task
from gst.train.typed_run import TypedRun

PUBLISHED = {
    ("DBLP", "rgcn"): 92.07,
    ("DBLP", "hgt"): 93.49,
    ("ACM", "rgcn"): 91.41,
    ("ACM", "hgt"): 91.00,
    ("IMDB", "rgcn"): 62.05,
    ("IMDB", "hgt"): 67.20,
}
FIELDS = ("dataset", "model", "seed", "method", "sparsity", "val", "test", "dense", "published", "agreement", "seconds")


class HGT(nn.Module):
    """Projections, two layers of attention, a linear layer; learned vectors for types without features."""

    def __init__(self, data: HeteroData, classes: int, hidden: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.target = next(name for name in data.node_types if "y" in data[name])
        sized = {name: data[name].x.shape[1] for name in data.node_types if "x" in data[name]}
        self.enter = nn.ModuleDict({name: nn.Linear(size, hidden) for name, size in sized.items()})
        bare = [name for name in data.node_types if name not in sized]
        self.vectors = nn.ParameterDict({n: nn.Parameter(torch.randn(data[n].num_nodes, hidden)) for n in bare})
        self.convs = nn.ModuleList(HGTConv(hidden, hidden, data.metadata(), heads) for _ in range(2))
        self.leave = nn.Linear(hidden, classes)

    def forward(self, x_dict: dict[str, torch.Tensor], edge_index_dict: dict[Any, torch.Tensor]) -> torch.Tensor:
        hidden = {name: self.enter[name](x).relu() for name, x in x_dict.items()} | dict(self.vectors.items())
        for conv in self.convs:
            hidden = {n: functional.dropout(x, 0.5, self.training) for n, x in hidden.items()}
            hidden = conv(hidden, edge_index_dict)
        return self.leave(hidden[self.target])


def train_hgt(data: HeteroData, task: Task, seed: int, epochs: int) -> HGT:
    """As a user would train it: PyG alone, the best validation epoch."""
    torch.manual_seed(seed)
    model = HGT(data, task.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-4)
    best, kept = -1.0, {}
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        task.loss(model(data.x_dict, data.edge_index_dict)[task.train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            val = task.score(model(data.x_dict, data.edge_index_dict)[task.val], "val")
        if val > best:
            best, kept = val, {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return model.eval()


def rows_of(name: str, model: str, seed: int, epochs: int, cache: bool) -> Any:
    """One row per method and sparsity, in the order of their cost."""
    data = gst.load(name, split=seed)
    options: dict[str, Any] = {"seed": seed, "cache": cache}
    own = None
    if model == "hgt":
        task = TypedRun(data).task
        own = train_hgt(data, task, seed, epochs)
        options["model"] = own
    for sparsity in (0.8, 0.6):
        trained = options if own is None else {"model": own}
        for method, scope in (("random", None), ("local-similarity", "union"), ("local-similarity", "relation")):
            yield from frozen(data, method, scope, sparsity, seed, cache, trained)
        yield "deploy", gst.sparsify(data, "deploy", sparsity=sparsity, **options).metrics
    if model == "rgcn":
        yield "gst", gst.sparsify(data, "gst", sparsity=0.4, **options).metrics
        yield "random, fresh", gst.sparsify(data, "random", sparsity=0.4, **options).metrics
        for scope in ("union", "relation"):
            metrics = gst.sparsify(data, "local-similarity", sparsity=0.4, scope=scope, **options).metrics
            yield f"local-similarity by {scope}, fresh", metrics


def frozen(data: Any, method: str, scope: Any, sparsity: float, seed: int, cache: bool, trained: dict[str, Any]) -> Any:
    """The trained model as it is on the edges of a topology method: the rival of Deploy."""
    est = make_method(method, sparsity=sparsity, seed=seed, **({} if scope is None else {"scope": scope}))
    model = trained.get("model")
    learned = (
        gst.Deploy(model, sparsity=0.0, seed=seed, cache=cache)
        if model is not None
        else gst.Deploy(sparsity=0.0, seed=seed, cache=cache)
    )
    run = learned.run(data)
    network = run.network()
    network.module.load_state_dict(run.dense.model)
    network.module.eval()
    with torch.no_grad():
        logits = network.logits(run.edges.subset(est.select(run.edges)[0]))
    scores = {split: run.task.score(logits[getattr(run.task, split)], split) for split in ("val", "test")}
    label = method if scope is None else f"{method} by {scope}"
    yield (
        f"{label}, frozen",
        {**scores, "sparsity": sparsity, "agreement": run.agreement(logits), "dense": run.dense.test},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["DBLP", "IMDB", "ACM"])
    parser.add_argument("--models", nargs="+", default=["rgcn", "hgt"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=60, help="of HGT; R-GCN takes the settings of the data set")
    parser.add_argument("--out", type=Path, help="CSV file that rows are appended to")
    parser.add_argument("--no-cache", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in given.seeds:
        for name in given.datasets:
            for model in given.models:
                start, dense = time.perf_counter(), None
                for method, metrics in rows_of(name, model, seed, given.epochs, not given.no_cache):
                    dense = metrics.get("dense", dense)
                    row = {"dataset": name, "model": model, "seed": seed, "method": method}
                    row |= {key: round(metrics[key], 4) for key in ("sparsity", "val", "test")}
                    row |= {"dense": dense, "published": PUBLISHED[name, model], "agreement": metrics.get("agreement")}
                    row["seconds"] = round(time.perf_counter() - start, 1)
                    print(json.dumps(row), flush=True)
                    if given.out is not None:
                        new = not given.out.exists()
                        with given.out.open("a", newline="") as file:
                            writer = csv.DictWriter(file, FIELDS)
                            if new:
                                writer.writeheader()
                            writer.writerow(row)


if __name__ == "__main__":
    main()
