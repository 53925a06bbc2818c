"""The jobs that are killed: commands and Python calls with a checkpoint, and what each leaves in its folder."""

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst.cli import main as cli
from gst.storage import files
from reliability.alike import CLOCKS, untimed

cli.load_commands()  # imports them here, and not in every fork
SHORT = "--hidden 8 --anchor-epochs 15 --sparse-epochs 20"
FEW = "--hidden 8 --anchor-epochs 10 --sparse-epochs 10"
SMALL = "--dataset synthetic:nodes=150,degree=6"
OWN = {"hidden": 8, "anchor_epochs": 15, "sparse_epochs": 25}  # settings of the runs with an own model


@dataclass(frozen=True)
class Job:
    """Work for a child process that a later one can resume."""

    work: Callable[[Path, float], None]  # in this folder, with a state every given number of seconds
    outcome: Callable[[Path], Any]  # everything it left, except for times and the folder name
    aim: str = ""  # the phase in which the first kill happens; the others happen at random


def execute(words: str, folder: Path, every: float) -> None:
    """``gst …`` in this process."""
    sys.argv = ["gst", *words.format(folder=folder).split(), "--quiet", "--json"]
    sys.argv += ["--checkpoint-every", str(every), "--out", str(folder)]
    cli.main()


def command(words: str, aim: str = "") -> Job:
    return Job(partial(execute, words), _run, aim)


def _run(folder: Path) -> dict[str, Any]:
    """A result with every tensor, the printed output and the names of all files."""
    result = gst.Result.load(folder)
    tree = {
        "metrics": result.metrics,
        "settings": result.settings,
        "graph": result.graph.to_dict(),
        "mask": result.edge_mask,
        "scores": result.scores,
        "model": dict(result.model.state_dict()),  # type: ignore[union-attr]
        "printed": json.loads(folder.with_suffix(".out").read_text()),
        # without hashes: the order of a safetensors header is undefined
        "files": sorted(str(path.relative_to(folder)).split("-")[0] for path in folder.rglob("*")),
    }
    return untimed(tree, CLOCKS | {"out"})


def _search(folder: Path) -> dict[str, Any]:
    """The selected run, the curve as JSON, table and picture, and every measured run."""
    with (folder / "curve.csv").open() as table:
        curve = list(csv.DictReader(table))
    words = {name: files.read_json(folder / name) for name in ("search.json", "runs.json")}
    return {**_run(folder), "curve": curve, "picture": (folder / "curve.png").read_bytes().hex(), **words}


def search(words: str, aim: str) -> Job:
    return Job(partial(execute, f"search {SMALL} {words}"), _search, aim)


def _own_model() -> tuple[Data, GCN]:
    data = random_graph(nodes=120, edges=400, loops=True)
    torch.manual_seed(3)
    return data, GCN(5, 8, 2, 3, dropout=0.3, norm="batch_norm")


def _trained(data: Data, model: GCN) -> GCN:
    """The model, trained by its user beforehand."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(10):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    return model


def _fit(make: Callable[..., Any], trained: bool, folder: Path, every: float) -> None:
    data, model = _own_model()
    with gst.Checkpoint(folder, every) as checkpoint:
        fitted = make(_trained(data, model) if trained else model, checkpoint=checkpoint).fit(data)
    tensors = {name: getattr(fitted.found_, name) for name in ("keep_mask", "scores", "logits")}
    tensors |= {f"model.{name}": tensor for name, tensor in fitted.result_.model.state_dict().items()}
    words = {"val": fitted.found_.val, "history": fitted.found_.history}
    files.write_tensors(folder.with_suffix(".safetensors"), tensors, words)


def _fitted(folder: Path) -> dict[str, Any]:
    tensors, words = files.read_tensors(folder.with_suffix(".safetensors"))
    return {**tensors, **untimed(words)}


def own(make: Callable[..., Any], aim: str, trained: bool = False) -> Job:
    return Job(partial(_fit, make, trained), _fitted, aim)


PAPER = "--method gst --interval 5"
ROUNDS = f"run {SMALL} --sparsity 0.1 {FEW} --no-cache"
HALF = f"--sparsity 0.5 {SHORT} --retrain --no-cache"
CLUSTERS = "--backbone cluster-gcn --batch clusters --clusters 6 --clusters-per-batch 2"
NEIGHBORS = "--backbone sage --batch neighbors --batch-nodes 16 --fanout 3"
CACHED = "--data-root {folder}-data"  # a separate cache for every run, so that none profits from another
JOBS = {
    "paper": command(f"run --dataset digits {PAPER} {HALF}", "sparse"),
    "deploy": command(f"run --dataset digits --method deploy --sparsity 0.7 {SHORT} {CACHED}", "greedy"),
    "retrain": command(f"run {SMALL} --method retrain --turns 2 {HALF}", "turn"),
    "scan": command(f"run --dataset digits --method scan {HALF}"),
    "set": command(f"run {SMALL} --method set --interval 5 {HALF}", "sparse"),
    "ugs": command(f"{ROUNDS} --method ugs", "prune"),
    "wd-glt": command(f"{ROUNDS} --method wd-glt --round-epochs 15 --sample-size 16", "prune"),
    "mgspar": command(f"{ROUNDS} --method mgspar", "prune"),
    "clusters": command(f"run {SMALL} {CLUSTERS} {PAPER} {HALF}", "sparse"),
    "neighbors": command(f"run {SMALL} {NEIGHBORS} {PAPER} {HALF}", "sparse"),
    "own-paper": own(partial(gst.GST, interval=5, sparsity=0.5, **OWN), "sparse"),
    "own-trained": own(partial(gst.Deploy, sparsity=0.7), "greedy", trained=True),
    "own-ugs": own(partial(gst.UGS, round_epochs=10, weight_prune_ratio=0.2, sparsity=0.2, **OWN), "prune"),
    "search": search(f"{FEW} --seeds 2 --step 0.3 --precision 0.2 {CACHED}", "dense"),
    "search-paper": search(f"{FEW} {PAPER} --seeds 2 --step 0.4 --precision 0.3 --no-cache", "sparse"),
}
