"""A model and a graph bound together for inference, nodes in the order that the machine likes best."""

import time
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.graph.edgeset import EdgeSet
from gst.inference.compiled.layers import KNOWN, Operand, Rows, as_operand, compile_layer, entry_values
from gst.inference.compiled.orders import ORDERS
from gst.nn.backbones import Backbone
from gst.nn.features import Features, as_features
from gst.nn.own_input import graph_for
from gst.nn.own_model import TOLERANCE, call_model
from gst.sparse.layouts import rows_of

PRECISIONS = ("float32", "bfloat16")
MANY = 20_000_000  # edges above which "auto" does not try METIS: it would take minutes
GAIN = 0.97  # share of the natural order's time that another one must stay below to be worth it


class Compiled(nn.Module):
    """``compiled()`` gives the logits of all nodes, in the order of the data.

    Attributes:
        layout: the order in use; ``trials`` has the processor's milliseconds in every order that was tried.
        permutation: ``permutation[i]`` is the node that stands at place i.
        precision: of the features and of what rows are summed from; sums are always float32.
    """

    permutation: Tensor

    def __init__(self, permutation: Tensor, layout: str, precision: str = "float32") -> None:
        super().__init__()
        self.register_buffer("permutation", permutation)
        self.layout, self.precision = layout, precision
        self.trials: dict[str, float] = {}
        self.eval()

    @torch.inference_mode()
    def forward(self) -> Tensor:
        out = self.ordered()
        if self.layout == "natural":
            return out
        return torch.empty_like(out).index_copy_(0, self.permutation, out)

    def ordered(self) -> Tensor:
        """Logits in the order of ``permutation``."""
        raise NotImplementedError

    def without_edges(self) -> "Compiled":
        """The same work without the products with A: what is left when all edges are gone."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes one file, which :func:`gst.load_compiled` reads."""
        from gst.inference.compiled.stored import save_compiled  # noqa: PLC0415 - it needs these classes

        return save_compiled(self, path)


class CompiledBackbone(Compiled):
    """One of gst's own networks: int32 CSR, values of Â at hand, fused kernels."""

    def __init__(self, permutation: Tensor, matrix: Rows, x: Operand, layers: nn.ModuleList, **words: str) -> None:
        super().__init__(permutation, **words)
        self.matrix, self.x, self.layers = matrix, x, layers

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


class CompiledModel(Compiled):
    """A user's own model: called as it is, on the graph with its nodes and columns in order."""

    def __init__(self, permutation: Tensor, graph: Data, model: nn.Module, **words: str) -> None:
        super().__init__(permutation, **words)
        self.graph, self.model = graph, model.eval()

    def ordered(self) -> Tensor:
        return call_model(self.model, self.graph)

    def without_edges(self) -> "CompiledModel":
        bare = self.graph.edge_subgraph(torch.zeros(self.graph.num_edges, dtype=torch.bool))
        bare.num_nodes = self.graph.num_nodes
        return CompiledModel(self.permutation, bare, self.model, layout=self.layout)


def compile_model(
    model: nn.Module,
    graph: Data,
    layout: str = "auto",
    features: str = "float32",
    *,
    edges: EdgeSet | None = None,
    x: Features | None = None,
) -> Compiled:
    """Binds ``model`` to ``graph`` for inference.

    Args:
        model: trained; a backbone of gst, or an own module of PyG layers.
        graph: the sparse graph (or any other) with its features.
        layout: ``"natural"``, ``"degree"``, ``"rcm"``, ``"metis"``, or ``"auto"``: the fastest of them, by measurement.
        features: ``"float32"``, or ``"bfloat16"``: the features and what rows are summed from are rounded to 8
            significant bits, each by at most 1 part in 256; sums stay in float32.
        edges: those of ``graph``, where they are at hand.
        x: likewise the features of ``graph`` in float32, in their layout.
    """
    layout = resolve_name("layout", layout, ("auto", *ORDERS))
    features = resolve_name("precision", features, PRECISIONS)
    edges = edges or EdgeSet.from_edge_index(graph.edge_index.cpu(), int(graph.num_nodes), graph.get("edge_weight"))
    native = isinstance(model, Backbone) and all(isinstance(layer, KNOWN) for layer in model.layers)
    native = native and all(p.dtype == torch.float32 for p in model.parameters())
    if native:
        if x is None or features != "float32":
            x = _rounded(as_features(graph.x.cpu()), features)
        build = _backbone(model, x, edges, features)  # type: ignore[arg-type]
    elif features == "float32":
        build = _own_model(model, graph.cpu() if graph.is_cuda else graph)
    else:
        raise InputError(
            f"features={features!r} is for gst's own backbones in float32: an own model takes what it takes"
        )
    width = max([graph.x.shape[1] if not native else 0, *(p.shape[-1] for p in model.parameters() if p.dim() > 1)])
    if layout != "auto":
        return build(layout, ORDERS[layout](edges, width))
    tried = {name: order for name, order in ORDERS.items() if _worth_a_try(name, edges)}
    return _fastest(build, tried, edges, width)


Build = Callable[[str, Tensor], Compiled]


def _worth_a_try(name: str, edges: EdgeSet) -> bool:
    return name != "natural" and 0 < edges.num_edges <= (MANY if name == "metis" else edges.num_edges)


def _fastest(build: Build, orders: dict[str, Callable[[EdgeSet, int], Tensor]], edges: EdgeSet, width: int) -> Compiled:
    """Every order against the best so far, in turns; the earlier one stays unless the other is clearly faster."""
    best = build("natural", ORDERS["natural"](edges, width))
    trials = {"natural": _least_ms(best)[0]}
    for name, order in orders.items():
        try:
            one = build(name, order(edges, width))
        except _OrderMattersError:
            continue
        before, trials[name] = _least_ms(best, one)
        if trials[name] < GAIN * before:
            best = one
    best.trials = {name: round(ms, 3) for name, ms in trials.items()}
    return best


def _least_ms(*programs: Compiled, repeats: int = 5) -> list[float]:
    """The processor's least time for a pass of each, in turns: what else the machine does only ever adds."""
    least = [float("inf")] * len(programs)
    for round_number in range(repeats + 1):
        for i, program in enumerate(programs):
            start = time.process_time()
            program()
            if round_number > 0:  # the first warms caches
                least[i] = min(least[i], 1000 * (time.process_time() - start))
    return least


def _rounded(x: Features, precision: str) -> Features:
    if precision != "bfloat16":
        return x
    return x.bfloat16().float() if isinstance(x, Tensor) else replace(x, values=x.values.bfloat16().float())


def _backbone(model: Backbone, x: Features, edges: EdgeSet, precision: str) -> Build:
    """Values of Â are computed once, whatever the order."""
    adjacency, narrow = edges.adjacency, precision == "bfloat16"
    if adjacency.pattern.nnz >= 2**31:
        raise InputError(f"the graph has {adjacency.pattern.nnz} entries: int32 CSR holds fewer than 2³¹")
    with torch.no_grad():
        values = [entry_values(layer, adjacency) for layer in model.layers]
    for i in range(1, len(values)):  # one copy where all layers have the same
        values[i] = next((other for other in values[:i] if torch.equal(other, values[i])), values[i])
    crow, col = adjacency.pattern.crow.int(), adjacency.pattern.col.int()
    features = as_operand(x)
    dense, last = isinstance(features, Tensor), len(values) - 1

    def build(name: str, permutation: Tensor) -> Compiled:
        rows, moved = Rows(crow, col), {id(value): value for value in values}
        if name != "natural":
            rows, entries = rows.select(permutation, inverse(permutation), edges.num_nodes)
            moved = {key: value[entries] for key, value in moved.items()}
        operand, layers = features if name == "natural" else features[permutation], nn.ModuleList()
        for i, (layer, value) in enumerate(zip(model.layers, values, strict=True)):
            into, norm = (edges.num_nodes, i > 0 or dense), model.norms[i] if i < len(model.norms) else None
            layers.append(compile_layer(layer, norm, moved[id(value)], col.numel(), into, i == last, narrow))  # type: ignore[arg-type]
        if narrow and isinstance(operand, Tensor) and only_summed(layers[0]):
            operand = operand.bfloat16()
        return CompiledBackbone(permutation, rows, operand, layers, layout=name, precision=precision)

    return build


def only_summed(layer: nn.Module) -> bool:
    """Whether a layer reads its features only to sum rows of them."""
    return bool(getattr(layer, "sum_first", False)) and layer.root is None


class _OrderMattersError(InputError):
    pass


def _own_model(model: nn.Module, graph: Data) -> Build:
    module = deepcopy(model).cpu().eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    graph = graph_for(module, graph)
    natural = CompiledModel(torch.arange(int(graph.num_nodes)), graph, module, layout="natural")

    def build(name: str, permutation: Tensor) -> Compiled:
        if name == "natural":
            return natural
        found = CompiledModel(permutation, reordered(graph, permutation), module, layout=name)
        before, after = natural(), found()
        if not torch.allclose(before, after, rtol=TOLERANCE, atol=TOLERANCE * float(before.abs().max())):
            raise _OrderMattersError(
                f"{type(model).__name__} gives other answers when its nodes are in another order: only natural is right"
            )
        return found

    return build


def reordered(graph: Data, permutation: Tensor) -> Data:
    """The same graph with its nodes in this order, its columns sorted by target, then source."""
    source, target = inverse(permutation)[graph.edge_index]
    columns = torch.sort(target * graph.num_nodes + source, stable=True).indices
    found = copy(graph)
    for name, value in graph.to_dict().items():
        if name == "edge_index":
            found[name] = torch.stack([source, target])[:, columns]
        elif isinstance(value, Tensor) and graph.is_edge_attr(name):
            found[name] = value[columns]
        elif isinstance(value, Tensor) and graph.is_node_attr(name):
            found[name] = rows_of(value, permutation)
    return found


def inverse(permutation: Tensor) -> Tensor:
    """The place of every node."""
    return torch.empty_like(permutation).index_copy_(0, permutation, torch.arange(permutation.numel()))
