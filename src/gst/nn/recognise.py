"""From a model of PyG's layers to a native network: the same answers without PyG, in a form that kernels can read."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import JumpingKnowledge, MessagePassing

from gst.base.errors import InputError
from gst.base.randomness import generator
from gst.graph.adjacency_input import restricted
from gst.graph.edgeset import EdgeSet
from gst.nn.convolutions import lowered
from gst.nn.features import Features, as_features, rows
from gst.nn.own_input import graph_for
from gst.nn.own_model import call_model, undisturbed
from gst.nn.recorder import NotNativeError, Recorder
from gst.nn.simplify import simplified
from gst.nn.tape import Step, Tape

TOLERANCE = 1e-4  # of the largest answer, by which recognised answers may differ


class TapeNetwork:
    """A user's model as a tape on one graph: a :class:`~gst.nn.network.Network` for searching and serving.

    Attributes:
        module: the model that was recognised.
        tape: what it computes.
        x: the features.
    """

    def __init__(self, module: nn.Module, tape: Tape, x: Features, loops: Tensor | None = None) -> None:
        self.module, self.tape, self.x = module, tape, x
        self._loops = loops  # self-loops counted by column, if the data has weights that the model does not read

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        output = self.tape.run(self.x, self.counted(edges), edge_values)
        return output if nodes is None else output[nodes]

    def counted(self, edges: EdgeSet) -> EdgeSet:
        """The edges with the weights that the model gives them."""
        return edges if self._loops is None else replace(edges, weights=None, loops=self._loops)

    def in_units(self, unit: Tensor | None) -> "TapeNetwork":
        """The same network, its outputs divided by these units (None: as they are)."""
        if unit is None:
            return self
        last = Step("affine", (len(self.tape.steps) - 1,), self.tape.outputs, (1 / unit, torch.zeros_like(unit)))
        return TapeNetwork(self.module, replace(self.tape, steps=(*self.tape.steps, last)), self.x, self._loops)

    def on(self, x: Features) -> "TapeNetwork":
        """The same network on other features."""
        return TapeNetwork(self.module, self.tape, x, self._loops)

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> "TapeNetwork":
        steps = tuple(
            replace(step, tensors=(step.tensors[0][nodes],)) if step.kind == "constant" else step
            for step in self.tape.steps
        )
        loops = None if self._loops is None else self._loops[nodes]
        return TapeNetwork(self.module, replace(self.tape, steps=steps), rows(self.x, nodes), loops)


def native(model: nn.Module, data: Data, output: int | str | None = None) -> TapeNetwork | None:
    """The network that ``model`` is on ``data``, without PyG; None if it is not recognised.

    Recognised are models that consist of PyG's convolutions (those of :mod:`gst.nn.convolutions`) and functions of
    single nodes: linear layers, norms with stored statistics, activations, residuals, JumpingKnowledge. The answers are
    compared with the model's own, on all edges and on a random half of them. ``output``: which part of a tuple, list or
    dict holds the answers.

    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> native(GCN(3, 8, num_layers=2, out_channels=2, norm="batch"), data).tape.depth
    2
    """
    try:
        return recognised(model, data, output)
    except InputError:
        return None


def recognised(model: nn.Module, data: Data, output: int | str | None = None) -> TapeNetwork:
    """The same as :func:`native`; raises, with the reason, if the model is not recognised."""
    graph = graph_for(model, data)
    with undisturbed(model), torch.no_grad():
        tape = record(model, graph, output)
        loops = None if tape.weighted or "edge_weight" not in graph else _counted_loops(graph)
        only_products = all(s.kind == "linear" for s in tape.steps if 0 in s.sources)
        x = as_features(graph.x, graph.x.dtype) if only_products else graph.x.to_dense()
        network = TapeNetwork(model, tape, x, loops)
        columns = torch.arange(graph.edge_index.shape[1], device=graph.edge_index.device)
        half = columns[torch.rand(columns.numel(), generator=generator(columns.device)) < 0.5]
        if not _agrees(network, output, graph) or not _agrees(network, output, restricted(graph, half)):
            raise NotNativeError("answers otherwise than its layers say")
    return network


def record(model: nn.Module, graph: Data, output: int | str | None = None) -> Tape:
    """What ``model`` computes on ``graph``; raises ``NotNativeError`` where a step has no description."""
    if graph.get("x") is None:
        raise NotNativeError("reads no x")
    edges = EdgeSet.from_edge_index(graph.edge_index, int(graph.num_nodes), graph.get("edge_weight"))
    recorder = Recorder(graph, edges)
    with ExitStack() as stack:
        for layer in model.modules():
            if isinstance(layer, MessagePassing | JumpingKnowledge):
                stack.callback(vars(layer).pop, "forward", None)
                layer.forward = lowered(recorder, layer)  # type: ignore[method-assign]
        with recorder:
            answer = _part(call_model(model, graph), output)
    if not recorder.is_tracked(answer):
        raise NotNativeError("does not return one row of numbers per node")
    return simplified(recorder.steps, recorder.register(answer), bool(recorder.weighted))


def _part(answer: Any, output: int | str | None) -> Tensor:
    return answer if output is None else answer[output]


def _counted_loops(graph: Data) -> Tensor:
    """[N] the self-loops of each node, by column; raises for several columns of one arc, which would count, too."""
    source, target = graph.edge_index
    if torch.unique(source * graph.num_nodes + target).numel() < source.numel():
        raise NotNativeError("reads no edge_weight, and some edges have several columns")
    return torch.bincount(source[source == target], minlength=graph.num_nodes).float()


def _agrees(network: TapeNetwork, answer: int | str | None, graph: Data) -> bool:
    expected = _part(call_model(network.module, graph), answer)
    edges = EdgeSet.from_edge_index(graph.edge_index, int(graph.num_nodes), graph.get("edge_weight"))
    output = network.logits(edges)
    gap = (output - expected.reshape(output.shape)).abs().max() / expected.abs().max().clamp(min=1e-9)
    return bool(gap <= TOLERANCE)
