"""Making an engine: from a model and a graph, or from a file."""

from os import PathLike

import numpy as np
from torch import nn
from torch_geometric.data import Data

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.inference.serving.describe import is_native
from gst.inference.serving.engine import Engine, NativeEngine
from gst.inference.serving.features import mapped, pack_features
from gst.inference.serving.module_engine import ModuleEngine
from gst.inference.serving.state import State
from gst.inference.serving.stored import EngineFile, read_module, read_native
from gst.nn.backbones import Backbone
from gst.nn.features import as_features

MMAP = "mmap"  # features=: those in the file of the engine itself, mapped


def make_engine(
    model: nn.Module, graph: Data, *, features: str | PathLike[str] | None = None, products: bool = False
) -> Engine:
    """An engine for any model and any graph; see :meth:`gst.Result.engine`."""
    if not is_native(model):
        if features is not None or products:
            raise InputError("features= and products= are for native models: this one reads graph.x")
        return ModuleEngine(model, graph)
    assert isinstance(model, Backbone)
    shape = (int(graph.num_nodes), model.stack[0].weight.shape[0])
    x = pack_features(as_features(graph.x.cpu())) if features is None else mapped(features, *shape)
    state = State.of(model, graph, x)
    if products:
        state.tabulate()
    return NativeEngine(state)


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
    """
    file = EngineFile(as_path("path", path), features == MMAP)
    if file.metadata["kind"] == "module":
        if model is None or features is not None:
            raise InputError(f"{file.path} holds the weights of a module, not its code: load_engine(path, model=…)")
        return ModuleEngine(model, read_module(file, model))
    if model is not None:
        raise InputError(f"{file.path} holds its whole network: call load_engine(path) without a model")
    others = None
    if features not in (None, MMAP):
        assert features is not None
        others = mapped(features, file.number("nodes", 0), int(file.array("network/width", np.int64, -1)[0]))
    return NativeEngine(read_native(file, others))
