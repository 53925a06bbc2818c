"""A user's trained model as it is: called on whole graphs, unwrapped and fed in the form that it takes."""

from copy import copy, deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAE

from gst.base.errors import InputError
from gst.graph.adjacency_input import adjacency_like, restricted
from gst.graph.edgeset import EdgeSet
from gst.nn.network import OwnNetwork
from gst.nn.own_input import graph_for
from gst.nn.own_model import call_model, check_model, undisturbed


class TrainedNetwork(OwnNetwork):
    """A trained model on one graph. Edges are removed by leaving them out, so any way of reading them will do.

    Args:
        model: the user's; a copy is kept.
        data: the graph, its edges in ``edge_index``.
        output: which part of a tuple, list or dict holds the answers.
        device: where to compute.

    Attributes:
        whole: the copy of the model.
        module: the part of it that is called: without the wrapper of ``torch.compile``, Lightning or ``GAE``.
    """

    def __init__(self, model: nn.Module, data: Data, output: int | str | None, device: torch.device) -> None:
        self.whole = copied(model).to(device)
        self.module = unwrapped(self.whole)
        self.output = 0 if output is None and type(self.whole).__name__ in ("VGAE", "ARGVA") else output
        self.data = graph_for(self.module, data.to(str(device)))
        self.pads = False  # whether the graph gets two more nodes, whose answers are left out
        self.unit: Tensor | None = None
        self.reason = ""  # why it is not recognised, once that is known
        self._last: tuple[EdgeSet, Data] | None = None
        self._check()

    def _check(self) -> None:
        """Refuses a model that cannot be judged by its answers on fewer edges."""
        name = type(self.module).__name__
        for layer in self.module.modules():
            if getattr(layer, "cached", False) is True:
                raise InputError(
                    f"{type(layer).__name__} caches the graph that it sees first; build it with cached=False"
                )
        try:
            with undisturbed(self.module), torch.no_grad():
                self.call(self.data)
        except InputError:
            if self.data.get("edge_attr") is None:
                raise
            self.data = copy(self.data)  # PyG's models hand on edge_attr to layers that were not built for it
            del self.data.edge_attr
        none = restricted(self.data, torch.zeros(0, dtype=torch.long, device=self.data.edge_index.device))
        with undisturbed(self.module), torch.no_grad():
            first, second = self.call(self.data), self.call(self.data)
        try:
            with undisturbed(self.module), torch.no_grad():
                without = self.call(none)
        except InputError:  # PyG's median fails if the first nodes have no edges
            self.pads = True
            with undisturbed(self.module), torch.no_grad():
                without = self.call(none)
        if not bool(first.isfinite().all()):
            raise InputError(f"the answers of {name} are not finite on all edges: train it first")
        if not torch.allclose(first, second, rtol=1e-3, atol=1e-3 * float(first.abs().max())):
            raise InputError(f"{name} answers differently each time in evaluation mode: take out what is random")
        if torch.equal(first, without):
            raise InputError(f"the output of {name} does not change when edges are removed; does it keep a cache?")
        self.outputs = first.shape[1]

    def call(self, graph: Data) -> Tensor:
        """The answers on a graph, [N, outputs]."""
        name, nodes = type(self.module).__name__, int(graph.num_nodes)
        if self.pads:
            graph = padded(graph)
        answer: Any = call_model(self.module, graph)
        if isinstance(answer, tuple | list | dict):
            if self.output is None:
                raise InputError(f"{name} returns a {type(answer).__name__}: say which part with output=0")
            try:
                answer = answer[self.output]  # type: ignore[call-overload, index]
            except (KeyError, IndexError, TypeError):
                raise InputError(f"{name} returns no output {self.output!r} but {len(answer)} others") from None
        if isinstance(answer, Tensor) and answer.dim() == 1:
            answer = answer.unsqueeze(1)
        if not isinstance(answer, Tensor) or not answer.is_floating_point() or answer.dim() != 2:
            what = f"{answer.dtype} {list(answer.shape)}" if isinstance(answer, Tensor) else type(answer).__name__
            raise InputError(f"{name} must return floats, one row per node, not {what}")
        if answer.shape[0] != graph.num_nodes:
            raise InputError(f"{name} returns {answer.shape[0]} rows, not one for each of the {graph.num_nodes} nodes")
        answer = answer[answer.shape[0] - nodes :]
        return answer if self.unit is None else answer / self.unit

    def logits(self, edges: EdgeSet, edge_values: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        if edge_values is not None:
            answers = super().logits(edges, edge_values)
            return answers if nodes is None else answers[nodes]
        if self._last is None or self._last[0] is not edges:
            self._last = edges, restricted(self.data, edges.columns)
        answers = self.call(self._last[1])
        return answers if nodes is None else answers[nodes]

    def in_units(self, unit: Tensor | None) -> "TrainedNetwork":
        """The same model, its outputs divided by these units (None: as they are)."""
        scaled = copy(self)
        scaled.unit = unit
        return scaled

    def has_slopes(self) -> bool:
        """Whether the gradient in a removed edge says what its return would change."""
        if "adj_t" in self.data or self.output is not None:
            return False
        try:
            check_model(self.module, self.data)
        except InputError:
            return False
        return True


def padded(graph: Data) -> Data:
    """The graph with two more nodes before all others, like the first of them and joined with each other only."""
    more = copy(graph)
    for name, value in graph.to_dict().items():
        if not isinstance(value, Tensor) or name in ("edge_index", "adj_t"):
            continue
        if graph.is_node_attr(name):
            dense = value if value.layout == torch.strided else value.to_dense()
            more[name] = torch.cat([dense[:1], dense[:1], dense])
        elif graph.is_edge_attr(name):
            more[name] = torch.cat([value.new_ones(2, *value.shape[1:]), value])
    more.num_nodes = int(graph.num_nodes) + 2
    more.edge_index = torch.cat([graph.edge_index.new_tensor([[0, 1], [1, 0]]), graph.edge_index + 2], dim=1)
    if "adj_t" in graph:
        more.adj_t = adjacency_like(graph.adj_t, more)
    return more


def copied(model: nn.Module) -> nn.Module:
    """A copy; one line where that is impossible."""
    model = getattr(model, "_orig_mod", model)  # of torch.compile
    trainer = vars(model).get("_trainer")  # of Lightning, which cannot be copied
    try:
        if trainer is not None:
            model._trainer = None  # type: ignore[assignment]
        return deepcopy(model)
    except Exception as error:
        raise InputError(
            f"{type(model).__name__} cannot be copied ({type(error).__name__}): give its inner nn.Module"
        ) from None
    finally:
        if trainer is not None:
            model._trainer = trainer


def unwrapped(model: nn.Module) -> nn.Module:
    """The module to call: of a ``GAE`` its encoder; of a module without a ``forward`` the only one inside it."""
    model = getattr(model, "_orig_mod", model)
    if isinstance(model, GAE):
        return unwrapped(model.encoder)
    if type(model).__name__ in ("DataParallel", "DistributedDataParallel") and isinstance(model.module, nn.Module):
        return unwrapped(model.module)
    if type(model).forward is nn.Module.forward or _is_lightning_without_forward(model):
        inside = [
            part for part in model.children() if type(part).forward is not nn.Module.forward and _has_weights(part)
        ]
        if len(inside) == 1:
            return unwrapped(inside[0])
        raise InputError(f"{type(model).__name__} has no forward: give the nn.Module inside it that answers")
    return model


def _has_weights(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _is_lightning_without_forward(model: nn.Module) -> bool:
    return any(cls.__name__ == "LightningModule" for cls in type(model).__mro__) and (
        type(model).forward.__qualname__.split(".")[0] == "LightningModule"
    )
