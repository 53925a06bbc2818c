"""From a model of PyG's layers to a native network: the same answers without PyG, in a form that kernels can read."""

from contextlib import ExitStack
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import JumpingKnowledge, MessagePassing

from gst.base.errors import InputError
from gst.base.randomness import generator
from gst.graph.edgeset import EdgeSet
from gst.nn.convolutions import lowered
from gst.nn.features import Features, as_features, rows
from gst.nn.own_input import graph_for
from gst.nn.own_model import call_model, undisturbed
from gst.nn.recorder import NotNativeError, Recorder
from gst.nn.simplify import simplified
from gst.nn.tape import Tape

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

    def within(self, edges: EdgeSet, nodes: Tensor, ids: Tensor) -> "TapeNetwork":
        steps = tuple(
            replace(step, tensors=(step.tensors[0][nodes],)) if step.kind == "constant" else step
            for step in self.tape.steps
        )
        loops = None if self._loops is None else self._loops[nodes]
        return TapeNetwork(self.module, replace(self.tape, steps=steps), rows(self.x, nodes), loops)


def native(model: nn.Module, data: Data) -> TapeNetwork | None:
    """The network that ``model`` is on ``data``, without PyG; None if it is not recognised.

    Recognised are models that consist of PyG's convolutions (those of :mod:`gst.nn.convolutions`) and functions of
    single nodes: linear layers, norms with stored statistics, activations, residuals, JumpingKnowledge. The answers are
    compared with the model's own, on all edges and on a random half of them.

    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> native(GCN(3, 8, num_layers=2, out_channels=2, norm="batch"), data).tape.depth
    2
    """
    try:
        graph = graph_for(model, data)
        with undisturbed(model), torch.no_grad():
            tape = record(model, graph)
            loops = None if tape.weighted or "edge_weight" not in graph else _counted_loops(graph)
            sparse = all(s.kind == "linear" for s in tape.steps if 0 in s.sources)
            x = as_features(graph.x, graph.x.dtype) if sparse else graph.x.to_dense()
            network = TapeNetwork(model, tape, x, loops)
            half = torch.rand(graph.edge_index.shape[1], generator=generator(graph.edge_index.device)) < 0.5
            for columns in (torch.arange(half.numel()), half.nonzero().flatten()):
                if not _agrees(network, graph.edge_subgraph(columns.to(graph.edge_index.device))):
                    return None
    except (NotNativeError, InputError):
        return None
    return network


def record(model: nn.Module, graph: Data) -> Tape:
    """What ``model`` computes on ``graph``; raises ``NotNativeError`` where a step has no description."""
    edges = EdgeSet.from_edge_index(graph.edge_index, int(graph.num_nodes), graph.get("edge_weight"))
    recorder = Recorder(graph, edges)
    with ExitStack() as stack:
        for layer in model.modules():
            if isinstance(layer, MessagePassing | JumpingKnowledge):
                stack.callback(vars(layer).pop, "forward", None)
                layer.forward = lowered(recorder, layer)  # type: ignore[method-assign]
        with recorder:
            output = call_model(model, graph)
    if not recorder.is_tracked(output):
        raise NotNativeError("does not return one row of numbers per node")
    return simplified(recorder.steps, recorder.register(output), bool(recorder.weighted))


def _counted_loops(graph: Data) -> Tensor:
    """[N] the self-loops of each node, by column; raises for several columns of one arc, which would count, too."""
    source, target = graph.edge_index
    if torch.unique(source * graph.num_nodes + target).numel() < source.numel():
        raise NotNativeError("reads no edge_weight, and some edges have several columns")
    return torch.bincount(source[source == target], minlength=graph.num_nodes).float()


def _agrees(network: TapeNetwork, graph: Data) -> bool:
    expected = call_model(network.module, graph)
    edges = EdgeSet.from_edge_index(graph.edge_index, int(graph.num_nodes), graph.get("edge_weight"))
    output = network.logits(edges)
    gap = (output - expected.reshape(output.shape)).abs().max() / expected.abs().max().clamp(min=1e-9)
    return bool(gap <= TOLERANCE)
