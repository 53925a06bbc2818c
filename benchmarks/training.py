"""An epoch of plain dense training, gst's backbones against PyTorch Geometric's layers, in one process, as JSON.

Peers: ``GCNConv`` (normalisation cached), ``GINConv`` with a linear layer, ``GATConv`` and ``SAGEConv``, each on an
``edge_index`` (scatter) and on a transposed CSR matrix. Same widths, dropout, optimiser and number of layers; an epoch
is a training step and a validation pass. gst and both peers take turns, so that a busy machine disturbs all alike;
``ratio`` is gst's median over that of the faster peer, below 1 means that gst is faster. ``step``: the same of the
training step alone.

    OMP_NUM_THREADS=1 python benchmarks/training.py --datasets cora pubmed computers
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.utils import to_torch_csr_tensor

import gst
from gst.sparse.layouts import is_sparse
from gst.train.run import Run
from gst.train.settings import Training
from gst.train.task import Task

HEADS = 8
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gat": nn.functional.elu}


def convolution(backbone: str, inputs: int, outputs: int, last: bool) -> nn.Module:
    if backbone == "gcn":
        return GCNConv(inputs, outputs, cached=True)
    if backbone == "gin":
        return GINConv(nn.Linear(inputs, outputs), train_eps=True)
    if backbone == "sage":
        return SAGEConv(inputs, outputs)
    return GATConv(inputs, outputs) if last else GATConv(inputs, outputs // HEADS, HEADS)


class Peer:
    """PyG's layers on a graph given as edge_index or as a CSR matrix."""

    def __init__(self, data: Data, backbone: str, hidden: int, csr: bool) -> None:
        self.x, self.task = data.x, Task.from_data(data)
        self.graph: Any = data.edge_index
        if csr:
            self.graph = to_torch_csr_tensor(data.edge_index.flip(0), size=(data.num_nodes, data.num_nodes))
        sizes = ((data.x.shape[1], hidden, False), (hidden, self.task.num_classes, True))
        self.layers = nn.ModuleList(convolution(backbone, *size) for size in sizes)
        self.activation = ACTIVATIONS.get(backbone, nn.functional.relu)
        self.optimizer = torch.optim.Adam(self.layers.parameters(), lr=0.01, weight_decay=5e-4)

    def logits(self) -> Tensor:
        x = nn.functional.dropout(self.x, 0.5, self.layers.training)
        x = self.activation(self.layers[0](x, self.graph))
        return self.layers[1](nn.functional.dropout(x, 0.5, self.layers.training), self.graph)

    def step(self) -> None:
        self.layers.train()
        self.optimizer.zero_grad()
        self.task.loss(self.logits()[self.task.train]).backward()
        self.optimizer.step()

    def evaluate(self) -> None:
        self.layers.eval()
        with torch.no_grad():
            self.task.score(self.logits()[self.task.val], "val")


class Ours:
    """The same with gst."""

    def __init__(self, data: Data, backbone: str, hidden: int) -> None:
        training = Training(hidden=hidden, heads=HEADS, dropout=0.5, lr=0.01, weight_decay=5e-4)
        self.run = Run(data, backbone=backbone, training=training, cache=False)
        self.trainer = self.run.trainer(self.run.network())

    def step(self) -> None:
        self.trainer.step(self.run.edges)

    def evaluate(self) -> None:
        self.trainer.evaluate(self.run.edges)


def race(name: str, data: Data, backbone: str, hidden: int, rounds: int) -> dict[str, Any]:
    runners: dict[str, Any] = {"gst": Ours(data, backbone, hidden)}
    if not is_sparse(data.x):  # PyG's layers want a dense x
        runners |= {kind: Peer(data, backbone, hidden, csr=kind == "csr") for kind in ("scatter", "csr")}
    steps: dict[str, list[float]] = {kind: [] for kind in runners}
    epochs: dict[str, list[float]] = {kind: [] for kind in runners}
    failed: dict[str, str] = {}
    for turn in range(rounds + 1):
        for kind, runner in runners.items():
            if kind in failed:
                continue
            start = time.perf_counter()
            try:
                runner.step()
                middle = time.perf_counter()
                runner.evaluate()
            except (RuntimeError, NotImplementedError, ValueError) as error:
                failed[kind] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
                continue
            if turn:  # the first turn prepares
                steps[kind].append(middle - start)
                epochs[kind].append(time.perf_counter() - start)
    median = {kind: statistics.median(times) for kind, times in epochs.items() if times}
    step = {kind: statistics.median(times) for kind, times in steps.items() if times}
    peers = [kind for kind in median if kind != "gst"]
    best = min(peers, key=lambda kind: median[kind]) if peers else None
    return {
        "dataset": name,
        "backbone": backbone,
        "hidden": hidden,
        "ms": {kind: round(1000 * value, 2) for kind, value in median.items()},
        "faster_peer": best,
        "ratio": None if best is None else round(median["gst"] / median[best], 3),
        "step": None if best is None else round(step["gst"] / min(step[kind] for kind in peers), 3),
        **({"failed": failed} if failed else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed", "computers"])
    parser.add_argument("--backbones", nargs="+", default=["gcn", "gin", "gat", "sage"])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    races = []
    for name in args.datasets:
        data = gst.load(name)
        for backbone in args.backbones:
            races.append(race(name, data, backbone, args.hidden, args.rounds))
            print(json.dumps(races[-1]), file=sys.stderr)
    json.dump({"benchmark": "training", "threads": torch.get_num_threads(), "races": races}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
