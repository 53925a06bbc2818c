"""Inference on the dense and the sparse graph, against the Amdahl limit and against plain PyTorch Geometric, as JSON.

    python benchmarks/inference.py                     # Computers and Physics, GCN, hidden 512
    python benchmarks/inference.py synthetic-proteins:gcn:128 synthetic-proteins:scale=0.1:sage:256

A case is DATASET:BACKBONE:HIDDEN. DSpar removes 70 % of the edges; weights are random, since times do not depend on
them. Peer: the model of PyG with the same layers, its normalisation cached, on the same two graphs as CSR tensors,
which is its fastest form; its two graphs are timed in alternation. ``ratio`` above 1 means that ours is faster.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GraphSAGE
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.utils import to_torch_csr_tensor

import gst
from gst.inference.latency import latency, summary, take_turns
from gst.nn.backbones import BACKBONES
from gst.train.task import Task

PEERS: dict[str, Callable[..., BasicGNN]] = {"gcn": GCN, "sage": GraphSAGE, "gat": GAT}


def race(case: str, sparsity: float, layout: str, features: str, repeats: int, peer_repeats: int) -> dict[str, Any]:
    name, backbone, hidden = case.rsplit(":", 2)
    data = gst.load(name)
    classes = Task.from_data(data).num_classes
    sparse = gst.DSpar(sparsity=sparsity)(data)
    print(f"{case}: {data.num_edges} → {sparse.num_edges} columns", file=sys.stderr)
    torch.manual_seed(0)
    model = BACKBONES[backbone](data.x.shape[1], int(hidden), classes).eval()
    times = latency(model, data, sparse, layout, features, repeats)
    peer = race_peer(backbone, int(hidden), classes, data, sparse, peer_repeats) if peer_repeats else {}
    for clock in ("ms", "cpu_ms") if peer else ():
        peer[f"dense_ratio_{clock}"] = peer["dense"][clock] / times["dense"][clock]
        peer[f"sparse_ratio_{clock}"] = peer["sparse"][clock] / times["reordered"][clock]
    row = {"case": case, "nodes": data.num_nodes, "columns": data.num_edges, "sparsity": sparsity, **times, "pyg": peer}
    print(json.dumps(row), file=sys.stderr, flush=True)  # not lost when a later case fails
    return row


def race_peer(backbone: str, hidden: int, classes: int, dense: Data, sparse: Data, repeats: int) -> dict[str, Any]:
    """Plain PyG on both graphs; one model each, since a model caches the normalised adjacency of its graph."""
    programs = {}
    for name, graph in (("dense", dense), ("sparse", sparse)):
        extra = {"cached": True} if backbone == "gcn" else {"heads": 8} if backbone == "gat" else {}
        model = PEERS[backbone](graph.x.shape[1], hidden, 2, classes, **extra).eval()
        flipped = to_torch_csr_tensor(graph.edge_index.flip(0), size=(graph.num_nodes, graph.num_nodes))
        programs[name] = _call(model, graph.x, flipped)
    with torch.inference_mode():
        times = take_turns(programs, repeats)
    return {name: summary(taken) for name, taken in times.items()}


def _call(model: BasicGNN, x: torch.Tensor, adjacency: torch.Tensor) -> Callable[[], Any]:
    return lambda: model(x, adjacency)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=["computers:gcn:512", "physics:gcn:512"])
    parser.add_argument("--sparsity", type=float, default=0.7)
    parser.add_argument("--layout", default="auto")
    parser.add_argument("--features", default="float32")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--peer-repeats", type=int, default=10)
    args = parser.parse_args()
    options = (args.sparsity, args.layout, args.features, args.repeats, args.peer_repeats)
    races = [race(case, *options) for case in args.cases]
    json.dump({"benchmark": "inference", "threads": torch.get_num_threads(), "races": races}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
