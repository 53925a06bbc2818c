"""Runs beside each other in threads, and beside a neighbour that draws from torch's generator."""

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from reliability.alike import MOST, differences, untimed

FEW = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 6, "sparsity": 0.4, "seed": 2, "cache": False, "dense": True}


def own_model() -> GCN:
    """A user's model that draws numbers while it trains."""
    model, numbers = GCN(5, 8, 2, 3, dropout=0.4, norm="batch_norm"), torch.Generator().manual_seed(1)
    for weight in model.parameters():
        weight.data.uniform_(-0.5, 0.5, generator=numbers)
    return model


MODEL, DATA = own_model(), random_graph(nodes=40, edges=100)  # shared by all threads
ROUNDS = {"round_epochs": 3, "prune_ratio": 0.3}
CALLS: dict[str, dict[str, Any]] = {
    "paper": {"recipe": "paper", "interval": 2},
    "deploy": {"recipe": "deploy"},
    "retrain": {"recipe": "retrain", "turns": 1},
    "random": {"method": "random"},
    "ugs": {"method": "ugs", **ROUNDS},
    "wd-glt": {"method": "wd-glt", "sample": 8, **ROUNDS},
    "mgspar": {"method": "mgspar", "inner_steps": 2, "meta_epochs": 2, "prune_ratio": 0.3},
    "set": {"method": "set", "interval": 2},
    "clusters": {"recipe": "paper", "backbone": "cluster-gcn", "batch": "clusters", "clusters": 4},
    "neighbors": {"recipe": "paper", "backbone": "sage", "batch": "neighbors", "batch_nodes": 5, "fanout": 3},
    "own model": {"recipe": "paper", "interval": 2, "model": MODEL},
    "own model, ugs": {"method": "ugs", "model": MODEL, **ROUNDS},
    "own model, deploy": {"recipe": "deploy", "model": MODEL, "sparsity": 0.9},
}


def run(name: str, **more: Any) -> dict[str, Any]:
    """The whole outcome of a call, but for clocks."""
    result = gst.sparsify(DATA, **{**FEW, **CALLS[name], **more})
    assert result.model is not None
    tensors = {"mask": result.edge_mask, "scores": result.scores, "model": dict(result.model.state_dict())}
    return {"metrics": untimed(result.metrics), **tensors}


@contextmanager
def neighbour() -> Iterator[None]:
    """Inside, another thread draws from torch's generator without a pause."""
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            torch.rand(100)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def together(names: Sequence[str], at_once: int) -> list[dict[str, Any]]:
    """The outcomes of these calls, so many at once, beside the neighbour."""
    with neighbour(), ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, names))


class CutError(Exception):
    """What ends a run before its time."""


def resumed(name: str, folder: Path, epochs: int) -> dict[str, Any]:
    """The outcome of a call that was cut off after so many epochs and goes on beside the neighbour."""
    seen: list[int] = []

    def cut(progress: Any) -> None:
        seen.append(1)
        if len(seen) == epochs:
            raise CutError

    with neighbour():
        try:
            with gst.Checkpoint(folder, every=0) as checkpoint:
                return run(name, watch=cut, checkpoint=checkpoint)
        except CutError:
            return run(name, checkpoint=folder)


def repeat(rounds: int, place: Path, seed: int) -> dict[str, Any]:
    """In every round all calls in another order, three at once, and one of them resumed; what is not as it is alone."""
    rng, names = random.Random(seed), list(CALLS)
    alone = {name: run(name) for name in names}
    told: list[str] = []
    for number in range(rounds):
        order = rng.sample(names, len(names))
        for name, found in zip(order, together(order, 3), strict=True):
            told += differences(found, alone[name], name)
        folder = place / f"threads-{number}"
        told += differences(resumed(order[0], folder, rng.randint(1, 10)), alone[order[0]], f"{order[0]}, resumed")
    return {"runs": rounds * (len(names) + 1), "different_values": len(told), "told": told[:MOST]}
