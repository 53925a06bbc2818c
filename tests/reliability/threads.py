"""Concurrent runs in threads, while another thread draws from torch's global generator."""

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
from reliability.alike import MAX_SHOWN, differences, untimed

FEW = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 6, "sparsity": 0.4, "seed": 2, "cache": False, "dense": True}


def own_model() -> GCN:
    """A user's model with dropout."""
    model, numbers = GCN(5, 8, 2, 3, dropout=0.4, norm="batch_norm"), torch.Generator().manual_seed(1)
    for weight in model.parameters():
        weight.data.uniform_(-0.5, 0.5, generator=numbers)
    return model


MODEL, DATA = own_model(), random_graph(nodes=40, edges=100)  # shared by all threads
ROUNDS = {"round_epochs": 3, "prune_ratio": 0.3}
CALLS: dict[str, dict[str, Any]] = {
    "paper": {"method": "gst", "interval": 2},
    "deploy": {"method": "deploy"},
    "retrain": {"method": "retrain", "turns": 1},
    "random": {"method": "random"},
    "ugs": {"method": "ugs", **ROUNDS},
    "wd-glt": {"method": "wd-glt", "sample_size": 8, **ROUNDS},
    "mgspar": {"method": "mgspar", "inner_steps": 2, "meta_epochs": 2, "prune_ratio": 0.3},
    "set": {"method": "set", "interval": 2},
    "clusters": {"method": "gst", "backbone": "cluster-gcn", "batch": "clusters", "clusters": 4},
    "neighbors": {"method": "gst", "backbone": "sage", "batch": "neighbors", "batch_nodes": 5, "fanout": 3},
    "own model": {"method": "gst", "interval": 2, "model": MODEL},
    "own model, ugs": {"method": "ugs", "model": MODEL, **ROUNDS},
    "own model, deploy": {"method": "deploy", "model": MODEL, "sparsity": 0.9},
}


def run(name: str, **more: Any) -> dict[str, Any]:
    """The whole outcome of a call, without times."""
    result = gst.sparsify(DATA, **{**FEW, **CALLS[name], **more})
    assert result.model is not None
    tensors = {"mask": result.edge_mask, "scores": result.scores, "model": dict(result.model.state_dict())}
    return {"metrics": untimed(result.metrics), **tensors}


@contextmanager
def neighbour() -> Iterator[None]:
    """Inside, another thread draws from torch's generator continuously."""
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
    """The outcomes of these calls, ``at_once`` of them concurrently, beside the drawing thread."""
    with neighbour(), ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, names))


class CutError(Exception):
    """Interrupts a run."""


def resumed(name: str, folder: Path, epochs: int) -> dict[str, Any]:
    """The outcome of a call that is interrupted after some epochs and resumed, beside the drawing thread."""
    seen: list[int] = []

    def cut(progress: Any) -> None:
        seen.append(1)
        if len(seen) == epochs:
            raise CutError

    with neighbour():
        try:
            with gst.Checkpoint(folder, every=0) as checkpoint:
                return run(name, callbacks=cut, checkpoint=checkpoint)
        except CutError:
            return run(name, checkpoint=folder)


def repeat(rounds: int, root: Path, seed: int) -> dict[str, Any]:
    """In every round all calls in a new order, three at once, and one resumed; compared with each call alone."""
    rng, names = random.Random(seed), list(CALLS)
    alone = {name: run(name) for name in names}
    details: list[str] = []
    for number in range(rounds):
        order = rng.sample(names, len(names))
        for name, found in zip(order, together(order, 3), strict=True):
            details += differences(found, alone[name], name)
        folder = root / f"threads-{number}"
        details += differences(resumed(order[0], folder, rng.randint(1, 10)), alone[order[0]], f"{order[0]}, resumed")
    return {"runs": rounds * (len(names) + 1), "different_values": len(details), "details": details[:MAX_SHOWN]}
