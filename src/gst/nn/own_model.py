"""Gated edges for any model built of PyG ``MessagePassing`` layers.

Inside ``with gated(model, data, values)`` column e of ``data.edge_index`` counts with value v_e ≥ 0. Value 0 deletes
the column, up to rounding, but it keeps a gradient; value 2 counts it twice. Sums are Σ v_e·message_e, means
Σ v_e·message_e / Σ v_e, attention is v_e·exp(s_e) / Σ v_k·exp(s_k) with logits s, degrees are Σ v_e, in GCN too.

A node that lost all its columns aggregates zero. Where a formula would then divide by zero it divides by one, so the
gradient of a removed column is what its return with value 1 would add. Self-loops of the data always count with value
1: they are not edges to remove. Whether this holds for a model is not assumed: :func:`check_model` measures it.
"""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from types import FunctionType, SimpleNamespace
from typing import Any, ClassVar

import torch
import torch_geometric.utils
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MeanAggregation, MessagePassing, Sequential, SumAggregation
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops, add_self_loops, degree, scatter, softmax
from torch_geometric.utils.num_nodes import maybe_num_nodes

from gst.base.errors import InputError
from gst.base.randomness import redirect_torch_random, seeded
from gst.graph.adjacency_input import adjacency_like

TOLERANCE = 1e-4  # of check_model: float32 sums depend on their order
LARGE = 20_000  # columns that check_model uses at most
_PATCHING = threading.RLock()


def call_model(model: nn.Module, data: Data) -> Tensor:
    """Calls ``model`` with the attributes of ``data`` that its ``forward`` names: ``x``, ``edge_index``, ``batch``, …

    A ``forward`` whose only required parameter is named data, batch or graph, or annotated ``Data``, gets ``data``.
    """
    parameters = list(inspect.signature(model.forward).parameters.values())
    if isinstance(model, Sequential):  # its forward may be (*args, **kwargs)
        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in model.signature.param_dict]
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(required) == 1:
        annotation = getattr(required[0].annotation, "__name__", str(required[0].annotation))
        if required[0].name in ("data", "batch", "graph") or annotation.split(".")[-1] in ("Data", "Batch"):
            with redirect_torch_random():
                return model(data)
    known = {"num_nodes": data.num_nodes, **data.to_dict()}
    if "adj_t" not in known and any(p.name == "adj_t" for p in required) and "edge_index" in known:
        known["adj_t"] = adjacency_like(None, data)
    for name in (p.name for p in required if p.name not in known):
        raise InputError(f"{type(model).__name__}.forward needs {name!r}, but data has only {', '.join(sorted(known))}")
    with redirect_torch_random():
        return model(**{p.name: known[p.name] for p in parameters if p.name in known})


@contextmanager
def gated(model: nn.Module, data: Data, values: Tensor) -> Iterator[None]:
    """Inside, a plain call of ``model`` on ``data`` sees column e of ``data.edge_index`` with value ``values[e]``.

    Works by hooks on the layers and by replacing four functions of PyG in the modules that define the layers; all is
    restored on exit. Must not be nested on one model. Threads enter one at a time, because they share PyG's modules;
    the calls of other threads to PyG are not gated.
    """
    with hooked(model, Gate(model, data, values)):
        yield


@contextmanager
def hooked(model: nn.Module, gate: "Gate") -> Iterator[None]:
    """Inside, the layers of ``model`` ask ``gate`` what their columns count."""
    layers = layers_of(model)
    replacements = {id(f): getattr(gate, f.__name__) for f in gate.replaced}
    with _PATCHING, ExitStack() as stack:
        for module in dict.fromkeys([model, *layers]):
            stack.callback(module.register_forward_pre_hook(gate.enter, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(gate.leave, always_call=True).remove)
        for layer in layers:
            stack.callback(layer.register_propagate_forward_pre_hook(gate.on_propagate).remove)
            stack.callback(layer.register_message_forward_hook(gate.on_message).remove)
            if isinstance(layer.aggr_module, MeanAggregation):
                stack.callback(layer.register_aggregate_forward_hook(gate.on_mean).remove)
        classes = {cls for module in model.modules() for cls in type(module).__mro__}
        functions = [f for cls in classes for f in vars(cls).values() if isinstance(f, FunctionType)]
        for namespace in [vars(torch_geometric.utils), *{id(f.__globals__): f.__globals__ for f in functions}.values()]:
            for name, value in [item for item in namespace.items() if id(item[1]) in replacements]:
                stack.callback(namespace.__setitem__, name, value)
                namespace[name] = replacements[id(value)]
        yield


class Gate:
    """The values of one :func:`gated` call, and the active calls: of the model and, inside it, of a layer."""

    replaced: ClassVar[tuple[Callable[..., Any], ...]] = (softmax, degree, gcn_norm, add_self_loops)

    def __init__(self, model: nn.Module, data: Data, values: Tensor) -> None:
        self.columns, self.nodes = _columns(data), int(data.num_nodes or 0)
        if values.shape != self.columns.shape[1:] or not values.is_floating_point():
            raise InputError(f"values must be {self.columns.shape[1]} floats, not {values.dtype} {list(values.shape)}")
        self.loops = self.columns[0] == self.columns[1]
        dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), values.dtype)
        self.values = values.to(dtype).masked_fill(self.loops, 1.0)
        self._watch(model)

    def _watch(self, model: nn.Module) -> None:
        self.frames: list[SimpleNamespace] = []
        self.thread = threading.get_ident()
        signatures = {layer: inspect.signature(layer.forward) for layer in layers_of(model)}
        self.weighted = {m: s for m, s in signatures.items() if {"edge_index", "edge_weight"} <= set(s.parameters)}

    @property
    def active(self) -> bool:
        """Whether the gated call is under way, in the thread that made it."""
        return bool(self.frames) and threading.get_ident() == self.thread

    @cached_property
    def rewritten(self) -> list[tuple[Tensor, Tensor]]:
        """Columns and values as layers rewrite them: without the data's self-loops, with one added for every node."""
        plain, edges = [(self.columns, self.values)], ~self.loops
        plain += [] if edges.all() else [(self.columns[:, edges], self.values[edges])]
        loops = torch.arange(self.nodes, device=self.columns.device).expand(2, -1)
        return plain + [(torch.cat([c, loops], 1), torch.cat([v, v.new_ones(self.nodes)])) for c, v in plain]

    def match(self, index: Any, caller: nn.Module | None = None) -> Any:
        """The values for an ``edge_index`` or one row of it, compared by content: sizes may agree by chance."""
        if self.active and isinstance(index, Tensor) and index.layout == torch.strided:
            for columns, values in self.rewritten:
                candidates = (columns, columns.flip(0)) if index.dim() == 2 else columns
                if index.shape[-1] == columns.shape[1] and any(torch.equal(index, c) for c in candidates):
                    return values
        if caller is not None:
            raise InputError(
                f"{type(caller).__name__} must take data.edge_index as it is; change edges before the call"
            )
        return None

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        # weighted: the gate enters by the edge_weight of this layer or, in the model around, by that of each layer;
        # attended: it enters by coefficients computed in this call; gate: the values of the current messages
        weighted = module in self.weighted or not isinstance(module, MessagePassing)
        self.frames.append(SimpleNamespace(module=module, weighted=weighted, attended=False, gate=None))
        if module not in self.weighted:
            return None
        bound = self.weighted[module].bind(*args, **kwargs)
        gate, weight = self.match(bound.arguments["edge_index"], module), bound.arguments.get("edge_weight")
        bound.arguments["edge_weight"] = _finite(gate.clone() if weight is None else weight * _along(gate, weight, 0))
        return bound.args, bound.kwargs

    def leave(self, *_: Any) -> None:
        self.frames.pop()

    def on_propagate(self, layer: MessagePassing, inputs: Any) -> None:
        self.frames[-1].gate = self.match(inputs[0], layer)

    def on_message(self, layer: MessagePassing, _: Any, message: Tensor) -> Tensor | None:
        frame = self.frames[-1]
        return None if frame.weighted or frame.attended else message * _along(frame.gate, message, layer.node_dim)

    def on_mean(self, layer: MessagePassing, inputs: Any, mean: Tensor) -> Tensor:
        """From Σ v·message / count to Σ v·message / Σ v, node by node: no second pass over the messages."""
        factor = _recount(self.frames[-1].gate, inputs[0]["index"], mean.shape[layer.node_dim])
        return mean * _along(factor, mean, layer.node_dim)

    def softmax(self, src: Tensor, index: Any = None, ptr: Any = None, num_nodes: Any = None, dim: int = 0) -> Tensor:
        gate = self.match(index)
        if gate is None:
            return softmax(src, index, ptr, num_nodes, dim)
        gate, nodes = _along(gate, src, dim), maybe_num_nodes(index, num_nodes)
        # the largest remaining logit: a removed column must not push the others into underflow …
        left = src.detach().masked_fill(gate == 0, -torch.inf)
        top = scatter(left, index, dim, nodes, "max").index_select(dim, index)
        weight = (src - torch.where(top == -torch.inf, src.detach(), top)).clamp(max=60).exp()  # … nor overflow
        total = scatter(gate * weight, index, dim, nodes).index_select(dim, index)
        self.frames[-1].attended = True
        return (weight if self.frames[-1].weighted else gate * weight) / torch.where(total > 0, total, 1.0)

    def degree(self, index: Tensor, num_nodes: int | None = None, dtype: torch.dtype | None = None) -> Tensor:
        gate, dtype = self.match(index), dtype or torch.get_default_dtype()
        if gate is None or not dtype.is_floating_point:
            return degree(index, num_nodes, dtype)
        return _finite(scatter(gate.to(dtype), index, 0, maybe_num_nodes(index, num_nodes)))

    def gcn_norm(self, *args: Any, **kwargs: Any) -> Any:
        """D^-½ A D^-½ with D from the gated values; where D = 0, PyG has 0 for 1/√D and autograd NaN for its gradient.

        The removed columns of such a node use D = 1 instead: their value is 0, so only their gradient changes.
        """
        call = inspect.signature(gcn_norm).bind(*args, **kwargs)
        call.apply_defaults()
        edge_index, weight, nodes, improved, loops, flow, dtype = call.args
        if self.match(edge_index) is None:
            return gcn_norm(*args, **kwargs)
        frame, nodes = self.frames[-1], maybe_num_nodes(edge_index, nodes)
        weight = torch.ones(edge_index.shape[1], dtype=dtype, device=edge_index.device) if weight is None else weight
        if loops:
            edge_index, weight = add_remaining_self_loops(edge_index, weight, 2.0 if improved else 1.0, nodes)
        gate, in_layer = self.match(edge_index, frame.module), isinstance(frame.module, MessagePassing)
        value = weight if in_layer and frame.weighted else weight * gate
        row, col = edge_index if flow == "source_to_target" else edge_index.flip(0)
        total = scatter(value, col, 0, nodes)
        scale = torch.where(total > 0, total, 1.0).rsqrt()
        remaining, removed = scale * (total > 0), scale * (degree(col, nodes) > 0)
        factor = torch.where(gate == 0, removed[row] * removed[col], remaining[row] * remaining[col])
        frame.attended = in_layer
        return edge_index, factor * (value if in_layer else weight)

    def add_self_loops(
        self, edge_index: Tensor, edge_attr: Any = None, fill_value: Any = None, num_nodes: Any = None
    ) -> Any:
        """GAT gives a new self-loop the mean attribute of the columns into its node: here, the gated mean."""
        gate = self.match(edge_index)
        if gate is None or edge_attr is None or not isinstance(fill_value, str):
            return add_self_loops(edge_index, edge_attr, fill_value, num_nodes)
        looped, attr = add_self_loops(edge_index, edge_attr * _along(gate, edge_attr, 0), fill_value, num_nodes)
        attr = attr[len(edge_attr) :]
        if fill_value == "mean":
            attr = attr * _along(_recount(gate, edge_index[1], len(attr)), attr, 0)
        return looped, torch.cat([edge_attr, attr])


def check_model(model: nn.Module, data: Data) -> int:
    """The number of outputs per node; raises, with the reason, for a model whose edges cannot be gated.

    What the layers do not show is measured, in evaluation mode and on a part of ``data`` if that is large: the model
    with random values 0, 1, 2 must equal the model on the graph with 0, 1, 2 copies of each column, and removed columns
    must have finite gradients, not all zero. The model and the state of the random generators are not changed.
    """
    name, layers = type(model).__name__, layers_of(model)
    kinds = ", ".join(sorted({type(layer).__name__ for layer in layers}))
    if not layers:
        raise InputError(
            f"{name} has no MessagePassing layer, hence no edges to gate; build it from PyG's convolutions"
        )
    for layer in layers:
        if getattr(layer, "cached", False):
            raise InputError(f"{type(layer).__name__} caches the graph that it sees first; build it with cached=False")
        if not isinstance(layer.aggr_module, SumAggregation | MeanAggregation | None):
            raise InputError(f"{type(layer).__name__} has aggr={layer.aggr!r}; only 'sum' and 'mean' can be gated")
    part, copied, values = _trial(data)
    with undisturbed(model):
        with torch.no_grad():
            ungated, expected = call_model(model, part), call_model(model, copied)
        with torch.enable_grad(), gated(model, part, values):
            output = call_model(model, part)
    shape = list(output.shape) if isinstance(output, Tensor) and output.is_floating_point() else type(output).__name__
    if len(shape) != 2 or shape[0] != part.num_nodes or output.shape[1] < 2:
        raise InputError(f"{name} must return float scores of shape [{part.num_nodes}, C], C ≥ 2 classes, not {shape}")
    if torch.equal(ungated, expected):
        raise InputError(f"the output of {name} does not change when edges are removed; does it keep a cache?")
    gap = float((output.detach() - expected).abs().max() / expected.abs().max().clamp(min=1))
    if not gap <= TOLERANCE:  # also refuses NaN
        raise InputError(
            f"{name} ({kinds}): values 0, 1, 2 are not the same as 0, 1, 2 copies of an edge (difference {gap:.2g}); "
            "gst follows edge_weight, aggr='sum' or 'mean', and PyG's softmax, degree and gcn_norm: use these"
        )
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(0)).to(output)
    grad = torch.autograd.grad(output, values, weights, allow_unused=True)[0] if output.requires_grad else None
    if grad is None or not grad.isfinite().all() or not grad[values == 0].any():
        raise InputError(f"in {name} ({kinds}) removed edges have no finite, non-zero gradient to bring them back")
    return int(output.shape[1])


def _trial(data: Data) -> tuple[Data, Data, Tensor]:
    """A part of ``data``, the same with 0, 1 or 2 copies of each column, and these numbers as values."""
    _, target = _columns(data)
    if len(target) > LARGE:  # the columns into the hubs: whole, overlapping neighbourhoods
        data = data.edge_subgraph(degree(target, data.num_nodes)[target].topk(LARGE).indices)
    source, target = _columns(data)
    edges = (source != target).nonzero()[:, 0]
    if len(edges) == 0:
        raise InputError("data has no edges apart from self-loops, so there is nothing to gate")
    copies = torch.ones_like(target)
    copies[edges] = torch.randint(3, (len(edges),), generator=torch.Generator().manual_seed(0)).to(target.device)
    rarest = target[edges[degree(target[edges])[target[edges]].argmin()]]
    copies[edges[target[edges] == rarest]] = 0  # at least one node loses all its columns
    copied = data.edge_subgraph(torch.arange(len(copies), device=copies.device).repeat_interleave(copies))
    copied.num_nodes = data.num_nodes
    return data, copied, copies.to(torch.get_default_dtype()).requires_grad_()


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and a fixed seed inside, all restored on exit; any error of the model becomes an InputError."""
    flags = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with seeded(0):
            model.eval()
            yield
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__} {' '.join(str(error).split())}"  # on one line
        raise InputError(f"{type(model).__name__} fails on this data: {reason}") from error
    finally:
        for module, training in flags:
            module.training = training
        for buffer, before in buffers:
            buffer.data.copy_(before)


def layers_of(model: nn.Module) -> list[MessagePassing]:
    return [module for module in model.modules() if isinstance(module, MessagePassing)]


def _columns(data: Data) -> Tensor:
    if type(data.edge_index) is not Tensor or data.edge_index.dim() != 2 or data.edge_index.shape[0] != 2:
        raise InputError("data.edge_index must be a plain tensor of shape [2, columns], not a sparse adjacency")
    return data.edge_index


def _along(values: Tensor, like: Tensor, dim: int) -> Tensor:
    return values.view([-1 if d == dim % like.dim() else 1 for d in range(like.dim())])


def _recount(gate: Tensor, index: Tensor, nodes: int) -> Tensor:
    """Per node the factor count / Σ v, which turns a mean over all columns into the gated mean."""
    total = scatter(gate, index, 0, nodes)
    return degree(index, nodes, gate.dtype) / torch.where(total > 0, total, 1.0)


def _finite(value: Tensor) -> Tensor:
    """``value`` with gradient 0 wherever it is 0 and a layer's formula, such as 1/√degree, gives no finite gradient."""
    if value.requires_grad:
        zero = value.detach() == 0
        value.register_hook(lambda grad: torch.where(zero & ~grad.isfinite(), 0.0, grad))
    return value
