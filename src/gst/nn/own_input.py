"""An own model and its graph: features in the dtype and layout that the model takes, one output per class."""

from copy import copy

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAE

from gst.base.errors import InputError
from gst.nn.own_model import call_model, check_model, undisturbed
from gst.sparse.layouts import check_kind, checked_dense, is_sparse, rows_of


def graph_for(model: nn.Module, data: Data) -> Data:
    """``data`` with x in the dtype of the model's parameters, and dense unless the model accepts it sparse."""
    x = data.get("x")
    if x is None:
        return data
    check_kind(x)
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    if x.dtype == dtype and not x.requires_grad and not is_sparse(x):
        return data
    graph = copy(data)
    graph.x = x.detach().to(dtype)
    if is_sparse(x) and not _accepts(model, graph):
        graph.x = checked_dense(graph.x, type(model).__name__)
    return graph


def check_own_model(model: nn.Module, graph: Data, classes: int | None = None) -> None:
    """Refuses a model whose edges cannot be gated, or that does not have one output per class (None: any number)."""
    if isinstance(model, GAE):
        raise InputError(
            f"{type(model).__name__} gives embeddings, which are not class scores: "
            "give a model that ends with one output per class, such as its encoder followed by a linear layer"
        )
    check_outputs(model, check_model(model, graph), classes)


def check_outputs(model: nn.Module, outputs: int, classes: int | None) -> None:
    """Refuses outputs that are not one per class (or label): they cannot be compared with y."""
    if classes is not None and outputs != classes:
        raise InputError(
            f"{type(model).__name__} has {outputs} outputs per node, but y has {classes} classes (or labels): "
            f"end it with a layer of {classes} outputs; embeddings are not class scores"
        )


def _accepts(model: nn.Module, graph: Data) -> bool:
    """Whether the model runs and trains with x as it is; it may fail in training only, in dropout for instance."""
    try:
        with undisturbed(model), torch.enable_grad():
            call_model(model, graph)
            model.train()
            out = call_model(model, graph)
            weights = [p for p in model.parameters() if p.requires_grad]
            if isinstance(out, Tensor) and out.requires_grad and weights:
                torch.autograd.grad(out.sum(), weights, allow_unused=True)
    except InputError:
        return False
    return True


def subgraph(data: Data, nodes: Tensor) -> Data:
    """``data.subgraph(nodes)``, which in PyG fails for a sparse x."""
    x = data.get("x")
    if x is None or not is_sparse(x):
        return data.subgraph(nodes)
    part = copy(data)
    del part.x
    part.num_nodes = data.num_nodes
    part = part.subgraph(nodes)
    part.x = rows_of(x, nodes)
    return part
