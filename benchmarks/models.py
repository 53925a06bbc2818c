"""Kinds of models through Deploy: taken or refused, agreement at 80 % removed, time against the model's own training.

python benchmarks/models.py [DATASET] [--models NAME …] [--epochs 200] > results/models.json

Every model is trained (full batch, Adam, evaluated after every epoch, as PyG's examples do) and then given to Deploy as
it is. With --epochs below 200 it is trained for so many, and the time of 200 is extrapolated. Times are of one process
on one thread; kernels are compiled before.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.utils import degree

import gst
from gst.graph.edgeset import EdgeSet
from gst.nn.recognise import native

EPOCHS, HIDDEN, SPARSITY = 200, 64, 0.8


class Stack(nn.Module):
    """Linear, convolutions with norm, activation, dropout and residual, linear."""

    def __init__(
        self, inputs: int, outputs: int, convs: list[nn.Module], *, residual: bool = True, attr: bool = False
    ) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, outputs)
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in convs)
        self.residual, self.attr = residual, attr

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        x = self.start(functional.dropout(x, training=self.training)).relu()
        for conv, norm in zip(self.convs, self.norms, strict=True):
            out = conv(x, edge_index, edge_attr) if self.attr else conv(x, edge_index)
            out = functional.dropout(norm(out).relu(), training=self.training)
            x = x + out if self.residual else out
        return self.end(x)


class Initial(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, outputs)
        self.convs = nn.ModuleList(pyg.GCN2Conv(HIDDEN, 0.1, 0.5, layer + 1) for layer in range(4))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = first = self.start(functional.dropout(x, training=self.training)).relu()
        for conv in self.convs:
            x = conv(functional.dropout(x, training=self.training), first, edge_index).relu()
        return self.end(x)


class Propagated(nn.Module):
    """A perceptron, then propagation or one convolution."""

    def __init__(self, inputs: int, outputs: int, last: nn.Module, width: int | None = None) -> None:
        super().__init__()
        self.first, self.last, self.width = nn.Linear(inputs, HIDDEN), last, width
        self.second = nn.Linear(HIDDEN, outputs if width is None else width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = functional.dropout(self.first(functional.dropout(x, training=self.training)).relu(), training=self.training)
        return self.last(self.second(x), edge_index)


def histogram(data: Data) -> Tensor:
    return torch.bincount(degree(data.edge_index[1], data.num_nodes).long())


def basic(kind: type[nn.Module], inputs: int, outputs: int, **options: Any) -> nn.Module:
    return kind(inputs, HIDDEN, 2, outputs, dropout=0.5, **options)


def stack(inputs: int, outputs: int, conv: Callable[[], nn.Module], layers: int = 2, **options: Any) -> nn.Module:
    return Stack(inputs, outputs, [conv() for _ in range(layers)], **options)


Make = Callable[[int, int, Data], nn.Module]
H = HIDDEN
MODELS: dict[str, Make] = {
    "GCN": lambda i, o, d: basic(pyg.GCN, i, o),
    "GCN, BatchNorm, residual": lambda i, o, d: stack(i, o, lambda: pyg.GCNConv(H, H), 3),
    "GraphSAGE mean": lambda i, o, d: basic(pyg.GraphSAGE, i, o),
    "GraphSAGE sum": lambda i, o, d: basic(pyg.GraphSAGE, i, o, aggr="sum", norm="batch"),
    "GraphSAGE max": lambda i, o, d: basic(pyg.GraphSAGE, i, o, aggr="max"),
    "GIN, BatchNorm": lambda i, o, d: basic(pyg.GIN, i, o, norm="batch"),
    "GAT": lambda i, o, d: basic(pyg.GAT, i, o, heads=8),
    "GATv2": lambda i, o, d: basic(pyg.GAT, i, o, heads=8, v2=True),
    "GATv2, edge_attr": lambda i, o, d: stack(i, o, lambda: pyg.GATv2Conv(H, H // 8, heads=8, edge_dim=2), attr=True),
    "JumpingKnowledge cat": lambda i, o, d: basic(pyg.GCN, i, o, jk="cat"),
    "JumpingKnowledge LSTM": lambda i, o, d: basic(pyg.GCN, i, o, jk="lstm"),
    "GCN2": lambda i, o, d: Initial(i, o),
    "APPNP": lambda i, o, d: Propagated(i, o, pyg.APPNP(10, 0.1)),
    "SGC": lambda i, o, d: pyg.Sequential("x, edge_index", [(pyg.SGConv(i, o, K=2), "x, edge_index -> x")]),
    "TAG": lambda i, o, d: stack(i, o, lambda: pyg.TAGConv(H, H)),
    "ARMA": lambda i, o, d: stack(i, o, lambda: pyg.ARMAConv(H, H, num_stacks=2)),
    "Transformer": lambda i, o, d: stack(i, o, lambda: pyg.TransformerConv(H, H // 4, heads=4)),
    "ClusterGCN": lambda i, o, d: stack(i, o, lambda: pyg.ClusterGCNConv(H, H)),
    "Cheb": lambda i, o, d: stack(i, o, lambda: pyg.ChebConv(H, H, K=3)),
    "PNA": lambda i, o, d: stack(
        i,
        o,
        lambda: pyg.PNAConv(
            H, H, ["mean", "max", "std"], ["identity", "amplification"], histogram(d), divide_input=True
        ),
    ),
    "GPS": lambda i, o, d: stack(i, o, lambda: pyg.GPSConv(H, pyg.GCNConv(H, H), heads=2, attn_type="performer")),
    "GAE": lambda i, o, d: pyg.GAE(pyg.GCN(i, HIDDEN, 2, 16)),
    "Hypergraph": lambda i, o, d: stack(i, o, lambda: pyg.HypergraphConv(H, H)),
}


def train(model: nn.Module, data: Data, epochs: int) -> float:
    """Seconds of 200 epochs, of which this runs some."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    start, reads_attr = time.perf_counter(), getattr(model, "attr", False)
    inputs = (data.x, data.edge_index, data.edge_attr) if reads_attr else (data.x, data.edge_index)
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        out = model(*inputs)
        if isinstance(model, pyg.GAE):
            loss = model.recon_loss(out, data.edge_index)
        else:
            loss = functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            model(*inputs)
    return (time.perf_counter() - start) * EPOCHS / epochs


def measure(name: str, make: Make, data: Data, epochs: int) -> dict[str, Any]:
    """One row of the table."""
    torch.manual_seed(0)
    model = make(data.num_features, int(data.y.max()) + 1, data)
    seconds = train(model, data, epochs)
    plain = data if getattr(model, "attr", False) else Data(x=data.x, edge_index=data.edge_index)
    known = native(getattr(model, "encoder", model), plain)
    row: dict[str, Any] = {"model": name, "native": known is not None, "training": round(seconds, 2)}
    if known is not None:  # compiles
        gst.Deploy(model, keep=20).fit(data)
    start = time.perf_counter()
    try:
        metrics = gst.Deploy(model, sparsity=SPARSITY).fit(data, dense=True).result_.metrics
    except gst.InputError as error:
        return {**row, "refused": str(error)}
    spent = time.perf_counter() - start
    scores = {key: metrics[key] and round(metrics[key], 3) for key in ("dense_test", "test", "agreement")}
    return {**row, "head": metrics["head"], **scores, "deploy": round(spent, 2), "ratio": round(spent / seconds, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="cora")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data = gst.load(arguments.dataset)
    data.x = data.x.to_dense() if data.x.layout != torch.strided else data.x
    ends = data.edge_index
    data.edge_attr = torch.stack([degree(end, data.num_nodes)[end].add(1).log() for end in ends], dim=1)
    rows = []
    for name in arguments.models:
        rows.append(measure(name, MODELS[name], data, arguments.epochs))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    edges = EdgeSet.from_data(data, "arcs").num_edges
    print(
        json.dumps(
            {
                "dataset": arguments.dataset,
                "arcs": edges,
                "sparsity": SPARSITY,
                "epochs": arguments.epochs,
                "rows": rows,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
