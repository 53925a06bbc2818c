"""Compiling a model: its layers in the form of the kernels, and the node order that is fastest."""

import time
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.graph.edgeset import EdgeSet
from gst.inference.compiled.layers import Rows, as_operand, compile_layer
from gst.inference.compiled.model import PRECISIONS, Compiled, CompiledBackbone, CompiledModel
from gst.inference.compiled.orders import ORDERS
from gst.nn.backbones import Backbone
from gst.nn.features import Features, as_features
from gst.nn.own_input import graph_for
from gst.nn.own_model import TOLERANCE
from gst.sparse.layouts import rows_of

MANY = 20_000_000  # edges above which "auto" does not try METIS: it would take minutes
GAIN = 0.97  # another order than the natural one must take less than this share of its time

Build = Callable[[str, Tensor], Compiled]  # from the name of an order and its permutation


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
        features: ``"float32"``, or ``"bfloat16"``: the features and the rows that are summed are rounded to 8
            significant bits, each by at most 1 part in 256; sums stay in float32.
        edges: the edges of ``graph``, if already made.
        x: the features of ``graph`` in float32, if already converted.
    """
    layout = resolve_name("layout", layout, ("auto", *ORDERS))
    features = resolve_name("precision", features, PRECISIONS)
    edges = edges or EdgeSet.from_edge_index(graph.edge_index.cpu(), int(graph.num_nodes), graph.get("edge_weight"))
    width = max([0, *(p.shape[-1] for p in model.parameters() if p.dim() > 1)])
    if isinstance(model, Backbone) and _has_kernels(model):
        if x is None or features != "float32":
            x = _rounded(as_features(graph.x.cpu()), features)
        build = _build_backbone(model, x, edges, features)
    elif features == "float32":
        build = _build_own(model, graph.cpu() if graph.is_cuda else graph)
        width = max(width, graph.x.shape[1])
    else:
        raise InputError(f"features={features!r} is for the backbones of gst in float32: an own model needs float32")
    if layout != "auto":
        return build(layout, ORDERS[layout](edges, width))
    tried = {name: order for name, order in ORDERS.items() if _worth_a_try(name, edges)}
    return _fastest(build, tried, edges, width)


def _has_kernels(model: Backbone) -> bool:
    """Whether the kernels cover a backbone: described layers in float32, with ReLU, or ELU after attention."""
    return (
        model.described
        and all(parameter.dtype == torch.float32 for parameter in model.parameters())
        and all(model.activation is (functional.elu if layer.attention else torch.relu) for layer in model.stack)
    )


def _worth_a_try(name: str, edges: EdgeSet) -> bool:
    return name != "natural" and 0 < edges.num_edges <= (MANY if name == "metis" else edges.num_edges)


def _fastest(build: Build, orders: dict[str, Callable[[EdgeSet, int], Tensor]], edges: EdgeSet, width: int) -> Compiled:
    """Compares every order with the best so far, in turns; a new one must be clearly faster."""
    best = build("natural", ORDERS["natural"](edges, width))
    trials = {"natural": _least_ms(best)[0]}
    for name, order in orders.items():
        try:
            candidate = build(name, order(edges, width))
        except _OrderMattersError:
            continue
        before, trials[name] = _least_ms(best, candidate)
        if trials[name] < GAIN * before:
            best = candidate
    best.trials = {name: round(ms, 3) for name, ms in trials.items()}
    return best


def _least_ms(*programs: Compiled, repeats: int = 5) -> list[float]:
    """The least CPU time of a pass of each, in turns: other load of the machine can only add to it."""
    least = [float("inf")] * len(programs)
    for round_number in range(repeats + 1):
        for i, program in enumerate(programs):
            start = time.process_time()
            program()
            if round_number > 0:  # the first one warms the caches
                least[i] = min(least[i], 1000 * (time.process_time() - start))
    return least


def _rounded(x: Features, precision: str) -> Features:
    if precision != "bfloat16":
        return x
    return x.bfloat16().float() if isinstance(x, Tensor) else replace(x, values=x.values.bfloat16().float())


def _build_backbone(model: Backbone, x: Features, edges: EdgeSet, precision: str) -> Build:
    """The values of Â are computed once for all orders."""
    adjacency, narrow = edges.adjacency, precision == "bfloat16"
    if adjacency.pattern.nnz >= 2**31:
        raise InputError(f"the graph has {adjacency.pattern.nnz} entries: int32 CSR holds fewer than 2³¹")
    block = adjacency.blocks(1)[0]
    with torch.no_grad():
        values = [layer.entry_values(block, None) for layer in model.stack]
    for i in range(1, len(values)):  # layers with equal values share one copy
        values[i] = next((other for other in values[:i] if torch.equal(other, values[i])), values[i])
    natural = Rows(adjacency.pattern.crow.int(), adjacency.pattern.col.int())
    features = as_operand(x)
    dense = isinstance(features, Tensor)
    norms = [*model.norms, *[None] * len(values)]

    def build(name: str, permutation: Tensor) -> Compiled:
        rows, operand = natural, features
        by_id = {id(value): value for value in values}
        if name != "natural":
            rows, entries = natural.select(permutation, inverse(permutation), edges.num_nodes)
            operand = features[permutation]
            by_id = {key: value[entries] for key, value in by_id.items()}
        layers = []
        for i, (layer, value, norm) in enumerate(zip(model.stack, values, norms, strict=False)):
            flags = {"dense": i > 0 or dense, "last": i == len(values) - 1, "narrow": narrow}
            layers.append(compile_layer(layer, by_id[id(value)], norm, edges.num_nodes, **flags))  # type: ignore[arg-type]
        if narrow and isinstance(operand, Tensor) and layers[0].only_sums:
            operand = operand.bfloat16()
        return CompiledBackbone(permutation, rows, operand, nn.ModuleList(layers), layout=name, precision=precision)

    return build


class _OrderMattersError(InputError):
    pass


def _build_own(model: nn.Module, graph: Data) -> Build:
    module = deepcopy(model).cpu().eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    graph = graph_for(module, graph)
    natural = CompiledModel(torch.arange(int(graph.num_nodes)), graph, module, layout="natural")

    def build(name: str, permutation: Tensor) -> Compiled:
        if name == "natural":
            return natural
        candidate = CompiledModel(permutation, reordered(graph, permutation), module, layout=name)
        before, after = natural(), candidate()
        if not torch.allclose(before, after, rtol=TOLERANCE, atol=TOLERANCE * float(before.abs().max())):
            raise _OrderMattersError(
                f"{type(model).__name__} gives other answers when its nodes are reordered: take layout natural"
            )
        return candidate

    return build


def reordered(graph: Data, permutation: Tensor) -> Data:
    """The same graph with its nodes in this order and its columns sorted by target, then source."""
    source, target = inverse(permutation)[graph.edge_index]
    columns = torch.sort(target * graph.num_nodes + source, stable=True).indices
    result = copy(graph)
    for name, value in graph.to_dict().items():
        if name == "edge_index":
            result[name] = torch.stack([source, target])[:, columns]
        elif isinstance(value, Tensor) and graph.is_edge_attr(name):
            result[name] = value[columns]
        elif isinstance(value, Tensor) and graph.is_node_attr(name):
            result[name] = rows_of(value, permutation)
    return result


def inverse(permutation: Tensor) -> Tensor:
    """The position of every node."""
    return torch.empty_like(permutation).index_copy_(0, permutation, torch.arange(permutation.numel()))
