"""A model and a graph bound together for inference, with nodes in the order that is fastest."""

from abc import ABC, abstractmethod
from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.inference.compiled.layers import Operand, Rows
from gst.inference.compiled.orders import ORDERS
from gst.inference.compiled.stored import (
    CheckedFile,
    Content,
    pack_backbone,
    pack_own,
    read_backbone,
    read_own,
    write,
)
from gst.nn.own_model import call_model

PRECISIONS = ("float32", "bfloat16")


class Compiled(nn.Module, ABC):
    """``compiled()`` gives the logits of all nodes, in the order of the data.

    Attributes:
        layout: the name of the node order; ``trials`` has the CPU milliseconds of every order that was tried.
        permutation: ``permutation[i]`` is the node at position i.
        precision: of the features and of the rows that are summed; sums are always float32.
    """

    permutation: Tensor

    def __init__(self, permutation: Tensor, layout: str, precision: str = "float32") -> None:
        super().__init__()
        self.register_buffer("permutation", permutation)
        self.layout = layout
        self.precision = precision
        self.trials: dict[str, float] = {}
        self.eval()

    @torch.inference_mode()
    def forward(self) -> Tensor:
        out = self.ordered()
        if self.layout == "natural":
            return out
        return torch.empty_like(out).index_copy_(0, self.permutation, out)

    @abstractmethod
    def ordered(self) -> Tensor:
        """Logits in the order of ``permutation``."""

    @abstractmethod
    def without_edges(self) -> "Compiled":
        """The same computation on a graph without edges: what is left without the products with A."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes one file for :func:`gst.load_compiled`: of an own model the weights, not the code."""
        target = as_path("path", path)
        described = {"layout": self.layout, "precision": self.precision, "trials": self.trials}
        tensors, metadata = self._pack()
        write(target, {"permutation": self.permutation, **tensors}, {**described, **metadata})
        return target

    @abstractmethod
    def _pack(self) -> Content: ...


class CompiledBackbone(Compiled):
    """A backbone of described layers: int32 CSR, precomputed values of Â, fused kernels."""

    def __init__(self, permutation: Tensor, matrix: Rows, x: Operand, layers: nn.ModuleList, **options: str) -> None:
        super().__init__(permutation, **options)
        self.matrix = matrix
        self.x = x
        self.layers = layers

    def ordered(self) -> Tensor:
        hidden = self.x
        for layer in self.layers:
            hidden = layer(hidden, self.matrix)
        assert isinstance(hidden, Tensor)
        return hidden

    @property
    def nnz(self) -> int:
        return self.matrix.col.numel()

    def without_edges(self) -> "CompiledBackbone":
        layers = nn.ModuleList()
        for layer in self.layers:
            bare: Any = copy(layer)
            bare._buffers = {**layer._buffers, "values": bare.values[:0]}
            layers.append(bare)
        matrix = Rows(torch.zeros_like(self.matrix.crow), self.matrix.col[:0])
        return CompiledBackbone(self.permutation, matrix, self.x, layers, layout=self.layout, precision=self.precision)

    def _pack(self) -> Content:
        return pack_backbone(self.matrix, self.x, list(self.layers), self.precision)  # type: ignore[arg-type]


class CompiledModel(Compiled):
    """Any other model: called as it is, on the graph with its nodes and columns reordered."""

    def __init__(self, permutation: Tensor, graph: Data, model: nn.Module, **options: str) -> None:
        super().__init__(permutation, **options)
        self.graph = graph
        self.model = model.eval()

    def ordered(self) -> Tensor:
        return call_model(self.model, self.graph)

    def without_edges(self) -> "CompiledModel":
        bare = self.graph.edge_subgraph(torch.zeros(self.graph.num_edges, dtype=torch.bool))
        bare.num_nodes = self.graph.num_nodes
        return CompiledModel(self.permutation, bare, self.model, layout=self.layout)

    def _pack(self) -> Content:
        return pack_own(self.graph, self.model)


def load_compiled(path: str | PathLike[str], model: nn.Module | None = None) -> Compiled:
    """Reads a file of :meth:`Compiled.save`. It may come from an untrusted source: no code in it is run.

    ``model`` receives the weights of a file with an own model, which cannot be called without it.

    >>> import gst, pathlib, tempfile
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> compiled = gst.sparsify(data, "gst", sparsity=0.5, **few).compile()
    >>> path = compiled.save(pathlib.Path(tempfile.mkdtemp()) / "model.safetensors")
    >>> (gst.load_compiled(path)() == compiled()).all().item()
    True
    """
    file = CheckedFile(as_path("path", path))
    options: Any = {"layout": file.metadata.get("layout"), "precision": file.metadata.get("precision")}
    known = options["layout"] in ORDERS and options["precision"] in PRECISIONS
    file.check(known, "its layout or precision is unknown")
    permutation = file.permutation()
    trials: Any = file.metadata.get("trials")
    file.check(isinstance(trials, dict), "its trials are not a table")
    compiled: Compiled
    if file.is_backbone:
        if model is not None:
            raise InputError(f"{file.path} holds its whole network: call load_compiled(path) without a model")
        parts = read_backbone(file, permutation.numel(), options["precision"])
        compiled = CompiledBackbone(permutation, *parts, **options)
    else:
        if model is None:
            raise InputError(
                f"{file.path} holds the weights of an own model, not its code: call load_compiled(path, model=…)"
            )
        graph = read_own(file, permutation.numel(), model)
        compiled = CompiledModel(permutation, graph, model, **options)
    compiled.trials = trials
    return compiled
