"""Answers by node of any other model: the module itself, called on the part of the graph that it depends on."""

from copy import copy, deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.inference.serving.arrays import Rows
from gst.inference.serving.engine import Engine, Ids, Reads, as_ids, out_of_range
from gst.inference.serving.field import receptive_field
from gst.inference.serving.rows import fixed
from gst.inference.serving.stored import pack_module, write
from gst.nn.own_input import graph_for
from gst.nn.own_model import TOLERANCE, call_model
from gst.sparse.layouts import is_sparse, rows_of, stored_values

SAMPLE = 16  # nodes that are answered both ways when an engine is made


class ModuleEngine(Engine):
    """Runs a module on the receptive field: as many arcs away as it passes messages, and one more for degrees.

    Whether that gives what the whole graph gives is tried on some nodes when the engine is made. Where it does not
    (a model that looks at all nodes at once), every call passes the whole graph, and ``hops`` is None.
    """

    native = False

    def __init__(self, model: nn.Module, graph: Data) -> None:
        self.model = deepcopy(model).cpu().eval()
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.graph = graph_for(self.model, graph.cpu() if graph.is_cuda else graph)
        self.num_nodes = int(graph.num_nodes)
        self.inputs = int(graph.x.shape[1])
        self.hops: int | None = None
        self._prepare()

    @property
    def edges(self) -> EdgeSet:
        """The edges of the graph, numbered."""
        return EdgeSet.from_edge_index(self.graph.edge_index, self.num_nodes, self.graph.get("edge_weight"))

    def _prepare(self) -> None:
        """Sorts the columns by target, and tries whether answers from a part of the graph are right."""
        target = self.graph.edge_index[1]
        self._columns = torch.sort(target, stable=True).indices
        counts = torch.bincount(target, minlength=self.num_nodes)
        start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        self._rows: Rows = fixed(start.numpy(), self.graph.edge_index[0, self._columns].int().numpy())
        self.hops = count_hops(self.model, self.graph)
        if not self._local_answers_hold():
            self.hops = None

    @torch.inference_mode()
    def __call__(self, nodes: Ids, x: Any = None) -> Tensor:
        ids = as_ids(nodes)
        given = None if x is None else torch.from_numpy(self.given(ids, x))
        self._check(ids)
        if ids.size == 0:
            ids, given = np.zeros(1, np.int64), None
            return self(ids)[:0]
        if self.hops is None:
            return self._call(self.graph, torch.from_numpy(ids), given)
        field, position = self._field(ids)
        return self._call(self._part(*field), torch.from_numpy(position), given)

    def reads(self, nodes: Ids) -> Reads:
        ids = as_ids(nodes)
        self._check(ids)
        if self.hops is None:
            num_nodes, arcs = self.num_nodes, self.graph.num_edges
        else:
            (order, rows), _ = self._field(ids)
            num_nodes, arcs = order.size, int(self._rows.size[rows].sum())
        stored = stored_values(self.graph.x)
        per_node = stored.numel() * stored.element_size() / self.num_nodes
        return Reads(num_nodes, arcs, round(num_nodes * per_node) + 16 * arcs)

    def save(self, path: str | PathLike[str]) -> Path:
        target = as_path("path", path)
        write(target, *pack_module(self.graph, self.model))
        return target

    def _check(self, ids: np.ndarray) -> None:
        wrong = ids[(ids < 0) | (ids >= self.num_nodes)]
        if wrong.size:
            raise out_of_range(int(wrong[0]), self.num_nodes)

    def _field(self, ids: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """The nodes read, those among them whose arcs are read, and the positions of ``ids``."""
        assert self.hops is not None
        mark = np.full(self.num_nodes, -1, np.int32)
        position, order, sizes, *_ = receptive_field(ids, self._rows, self.hops + 1, mark)
        return (order, order[: sizes[self.hops]]), position

    def _part(self, order: np.ndarray, rows: np.ndarray) -> Data:
        """The nodes in this order and all columns into the first of them."""
        nodes, size = torch.from_numpy(order), self._rows.size[rows]
        offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        columns = self._columns[torch.from_numpy(np.repeat(self._rows.start[rows], size) + offset)]
        number = torch.empty(self.num_nodes, dtype=torch.long)
        number[nodes] = torch.arange(nodes.numel())
        part = copy(self.graph)
        for name, value in self.graph.to_dict().items():
            if name == "edge_index":
                part.edge_index = number[value[:, columns]]
            elif isinstance(value, Tensor) and self.graph.is_edge_attr(name):
                part[name] = value[columns]
            elif isinstance(value, Tensor) and self.graph.is_node_attr(name):
                part[name] = rows_of(value, nodes)
        part.num_nodes = nodes.numel()
        return part

    def _call(self, graph: Data, position: Tensor, given: Tensor | None) -> Tensor:
        if given is not None:
            graph = copy(graph)
            x = graph.x.to_dense() if is_sparse(graph.x) else graph.x.clone()
            x[position] = given.to(x.dtype)
            graph.x = x
        return call_model(self.model, graph)[position]

    @torch.inference_mode()
    def _local_answers_hold(self) -> bool:
        ids = np.unique(np.linspace(0, self.num_nodes - 1, SAMPLE).astype(np.int64))
        whole = call_model(self.model, self.graph)
        if not isinstance(whole, Tensor) or whole.shape[:1] != (self.num_nodes,):
            raise InputError(f"{type(self.model).__name__} does not give one row per node: there is nothing to answer")
        try:
            part = self(ids)
        except (RuntimeError, IndexError, InputError):  # a model with a parameter per node, for instance
            return False
        return torch.allclose(part, whole[ids], rtol=TOLERANCE, atol=TOLERANCE * float(whole.abs().max()))


@torch.inference_mode()
def count_hops(model: nn.Module, graph: Data) -> int:
    """How many times a pass sends messages along the arcs: a layer may do so several times."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
    handles = [layer.register_propagate_forward_pre_hook(count) for layer in layers]
    try:
        call_model(model, graph)
    finally:
        for handle in handles:
            handle.remove()
    return calls
