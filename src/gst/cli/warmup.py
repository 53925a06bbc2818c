"""``gst warmup``: all kernels compiled at once, so that no later run waits for the compiler."""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import torch
import typer
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, SAGEConv

from gst.api.sparsify import sparsify
from gst.base import jit
from gst.base.errors import AgreementWarning
from gst.cli import console
from gst.cli.options import Json, print_json
from gst.data import load
from gst.data.gowalla import Recommendation
from gst.graph import large_laplacian, partition
from gst.graph.edgeset import EdgeSet
from gst.methods import METHODS
from gst.methods.recommender import RecommenderPath
from gst.nn.backbones import BACKBONES
from gst.nn.lightgcn import LightGCN, Propagation
from gst.train.bpr import BPRState, bpr_steps

GRAPH = "synthetic:nodes=600,degree=6"  # large enough for the passes that small graphs leave to torch
SETTINGS: dict[str, Any] = {"sparsity": 0.5, "hidden": 256, "anchor_epochs": 1, "sparse_epochs": 1, "cache": False}


class _OwnTyped(torch.nn.Module):
    """A model of a typed graph whose edges have no gates."""

    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        inputs = data["paper"].num_features, data["author"].num_features
        self.layer = SAGEConv(inputs, int(data["author"].y.max()) + 1, "max")

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[Any, Tensor]) -> Tensor:
        return self.layer((x_dict["paper"], x_dict["author"]), edge_index_dict["paper", "rev_writes", "author"])


class _Own(torch.nn.Module):
    """A model of PyG's layers, as users bring them: GCN, which is recognised, or maxima, which are not."""

    def __init__(self, data: Data, maxima: bool = False) -> None:
        super().__init__()
        outputs = int(data.y.max()) + 1
        self.layer = SAGEConv(data.num_features, outputs, "max") if maxima else GCNConv(data.num_features, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)


def steps(data: Data) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Small calls, by what they are for, that together use every kernel."""
    for backbone in BACKBONES:
        yield f"deploy, {backbone}", partial(_sparsify, data, "deploy", backbone=backbone)
    for maxima in (False, True):
        own = _Own(data, maxima)
        yield f"deploy, {'any' if maxima else 'recognised'} model", partial(_sparsify, data, "deploy", model=own)
    yield "links", partial(_sparsify, load(GRAPH, task="links"), "deploy")
    yield "recommendation", _recommend
    typed = load("papers")
    yield "typed graphs", partial(_sparsify, typed, "deploy")
    yield "typed graphs, any model", partial(_sparsify, typed, "deploy", model=_OwnTyped(typed))
    yield "retrain", partial(_sparsify, data, "retrain", turns=1)
    for name, method in METHODS.items():
        if method.kind == "topology":
            yield name, partial(_sparsify, data, name)
    for batch in ("clusters", "neighbors"):
        yield f"gst, {batch}", partial(_sparsify, data, "gst", batch=batch, backbone="sage", clusters=4)
    yield "directed graphs", partial(_sparsify, _directed(data), "random")
    for backbone in ("gcn", "gat"):
        yield f"inference, {backbone}", partial(_infer, data, backbone)
        yield f"answers by node, {backbone}", partial(_answer, data, backbone=backbone)
    sparse = data.clone().update({"x": data.x.to_sparse_csr()})
    yield "answers by node, sparse features", partial(_answer, sparse)
    yield "answers by node, recognised model", partial(_answer, data, "deploy", model=_Own(data))
    yield "changes", partial(_change, data)
    yield "large graphs", partial(_large, EdgeSet.from_data(data))


def _sparsify(data: Data, method: str, **more: Any) -> Any:
    return sparsify(data, method, **{**SETTINGS, **more})


def _infer(data: Data, backbone: str) -> None:
    _sparsify(data, "gst", backbone=backbone).compile()()


def _answer(data: Data, method: str = "random", **more: Any) -> None:
    engine = _sparsify(data, method, **more).engine()
    engine([0])
    engine.reads([0])


def _change(data: Data) -> None:
    """Products kept, and an edge removed."""
    result = _sparsify(data, "random")
    result.engine(products=True)([0])
    result.engine(updates=True).update(remove=[tuple(data.edge_index[:, 0].tolist())])


def _recommend() -> None:
    pairs = torch.stack([torch.arange(60) % 20, torch.arange(60) % 29])
    data = Recommendation.of(pairs[:, :50], pairs[:, 50:], num_users=20, num_items=29)
    model = LightGCN(49, width=16, layers=2)
    state, propagate = BPRState.of(model.embedding.detach()), Propagation.of(data.seen.edge_index, 49, layers=2)
    for by_user in (True, False):
        options: dict[str, Any] = {"steps": state.step + 1, "batch": 8, "lr": 0.01, "warm_down": 1, "penalty": 1e-4}
        list(bpr_steps(state, propagate, data.seen, **options, seed=0, by_user=by_user))
    RecommenderPath(model, data.seen).sparse(sparsity=0.4)


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
