"""``gst warmup``: all kernels compiled at once, so that no later run waits for the compiler."""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import torch
import typer
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from gst.api.sparsify import sparsify
from gst.base import jit
from gst.base.errors import AgreementWarning
from gst.cli import console
from gst.cli.options import Json, print_json
from gst.data import load
from gst.graph import large_laplacian, partition
from gst.graph.edgeset import EdgeSet
from gst.methods import METHODS
from gst.nn.backbones import BACKBONES

GRAPH = "synthetic:nodes=600,degree=6"  # large enough for the passes that small graphs leave to torch
SETTINGS: dict[str, Any] = {"sparsity": 0.5, "hidden": 256, "anchor_epochs": 1, "sparse_epochs": 1, "cache": False}


class _Own(torch.nn.Module):
    """A model of PyG's layers, as users bring them."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self.layer = GCNConv(data.num_features, int(data.y.max()) + 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)


def steps(data: Data) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Small calls, by what they are for, that together use every kernel."""
    for backbone in BACKBONES:
        yield f"deploy, {backbone}", partial(_sparsify, data, "deploy", backbone=backbone)
    yield "deploy, own model", partial(_sparsify, data, "deploy", model=_Own(data))
    yield "retrain", partial(_sparsify, data, "retrain", turns=1)
    for name, method in METHODS.items():
        if method.kind == "topology":
            yield name, partial(_sparsify, data, name)
    for batch in ("clusters", "neighbors"):
        yield f"gst, {batch}", partial(_sparsify, data, "gst", batch=batch, backbone="sage", clusters=4)
    yield "directed graphs", partial(_sparsify, _directed(data), "random")
    for backbone in ("gcn", "gat"):
        yield f"inference, {backbone}", partial(_infer, data, backbone)
    yield "answers by node", partial(_answer, data)
    yield "large graphs", partial(_large, EdgeSet.from_data(data))


def _sparsify(data: Data, method: str, **more: Any) -> Any:
    return sparsify(data, method, **{**SETTINGS, **more})


def _infer(data: Data, backbone: str) -> None:
    _sparsify(data, "gst", backbone=backbone).compile()()


def _answer(data: Data) -> None:
    _sparsify(data, "random").engine()([0])


def _directed(data: Data) -> Data:
    one_way = data.edge_index[0] < data.edge_index[1]
    return data.clone().update({"edge_index": data.edge_index[:, one_way]})


def _large(edges: EdgeSet) -> None:
    """What only large graphs need."""
    partition.streamed(edges, 4)
    large_laplacian.projected_resistance(edges, torch.ones(edges.num_edges).double().numpy(), 8, 0)


def warmup(
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
    as_json: Json = False,
) -> None:
    """Compile all kernels now, once for this machine; later versions reuse what did not change."""
    start = time.monotonic()
    compiled: list[str] = []
    jit.listeners.append(compiled.append)
    try:
        with warnings.catch_warnings(), console.err.status("", spinner="line") as status:
            warnings.simplefilter("ignore", AgreementWarning)
            pending = list(steps(load(GRAPH)))
            for number, (name, step) in enumerate(pending, 1):
                if not quiet:
                    status.update(f"{number} of {len(pending)}: {name}; {len(compiled)} kernels compiled")
                step()
    finally:
        jit.listeners.remove(compiled.append)
    seconds = time.monotonic() - start
    if as_json:
        print_json({"compiled": len(compiled), "steps": len(pending), "seconds": seconds, "folder": jit.folder()})
    else:
        console.say(f"{len(compiled)} kernels compiled in {seconds:.0f} s, in {jit.folder()}")
