"""Making an engine: from a model and a graph, or from a file."""

from dataclasses import dataclass
from os import PathLike

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.inference.serving.base import Base
from gst.inference.serving.describe import is_native
from gst.inference.serving.engine import Engine, NativeEngine
from gst.inference.serving.features import mapped, pack_features
from gst.inference.serving.living import Living
from gst.inference.serving.module_engine import ModuleEngine
from gst.inference.serving.state import State
from gst.inference.serving.stored import EngineFile, read_living, read_module, read_native
from gst.inference.serving.tape_engine import TapeEngine
from gst.nn.backbones import Backbone
from gst.nn.features import as_features
from gst.nn.recognise import native

MMAP = "mmap"  # features=: those in the file of the engine itself, mapped


@dataclass(frozen=True)
class Decisions:
    """What a run decided: which of the edges of its dense graph it kept, and in which order it wanted them."""

    edges: EdgeSet
    keep_mask: Tensor  # [E]
    scores: Tensor  # [E]
    multilabel: bool = False


def make_engine(
    model: nn.Module,
    graph: Data,
    *,
    features: str | PathLike[str] | None = None,
    products: bool = False,
    decisions: Decisions | None = None,
) -> Engine:
    """An engine for any model and any graph; see :meth:`gst.Result.engine`."""
    if not is_native(model):
        if features is not None or products or decisions is not None:
            raise InputError("features=, products= and updates= are for gst's own backbones: this model reads graph.x")
        return of_module(model, graph)
    assert isinstance(model, Backbone)
    shape = (int(graph.num_nodes), model.stack[0].weight.shape[0])
    x = pack_features(as_features(graph.x.cpu())) if features is None else mapped(features, *shape)
    state = State.of(model, graph, x)
    if products:
        state.tabulate()
    engine = NativeEngine(state)
    if decisions is not None:
        state.identify()
        logits = engine(np.arange(state.num_nodes)).numpy()
        kept, scores = decisions.keep_mask.numpy(), decisions.scores.double().numpy()
        engine.living = Living(Base.of(decisions.edges, kept, scores, logits, decisions.multilabel), state)
    return engine


def of_module(model: nn.Module, graph: Data) -> ModuleEngine:
    """An engine for a model of the user's: in kernels if it is recognised, else by calling it."""
    graph = graph.cpu() if graph.is_cuda else graph
    network = None if any(p.dtype != torch.float32 for p in model.parameters()) else native(model, graph)
    return ModuleEngine(model, graph) if network is None else TapeEngine(model, graph, network)


def load_engine(
    path: str | PathLike[str],
    model: nn.Module | None = None,
    features: str | PathLike[str] | None = None,
) -> Engine:
    """Reads a file of ``engine.save``. It may come from an untrusted source: no code in it is run.

    Args:
        path: of the file.
        model: receives the weights where the file holds those of a module, which gst's kernels do not compute.
        features: ``"mmap"`` maps the file into memory: of its features only what answers read is loaded. Or the path
            of an ``.npy`` file with the features, which is mapped instead.

    >>> import gst, pathlib, tempfile
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> engine = gst.sparsify(data, "gst", sparsity=0.5, **few).engine()
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "engine.safetensors"
    >>> _ = engine.save(path)
    >>> bool((gst.load_engine(path)([3, 5]) == engine([3, 5])).all())
    True
    """
    file = EngineFile(as_path("path", path), features == MMAP)
    if file.metadata["kind"] == "module":
        if model is None or features is not None:
            raise InputError(f"{file.path} holds the weights of a module, not its code: load_engine(path, model=…)")
        return of_module(model, read_module(file, model))
    if model is not None:
        raise InputError(f"{file.path} holds its whole network: call load_engine(path) without a model")
    others = None
    if features not in (None, MMAP):
        assert features is not None
        others = mapped(features, file.number("nodes", 0), int(file.array("network/width", np.int64, -1)[0]))
    state = read_native(file, others)
    return NativeEngine(state, read_living(file, state))
