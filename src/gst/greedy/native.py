"""The native networks as the kernels want them: plain arrays, on a graph without edges."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from gst.graph import EdgeSet
from gst.greedy.kernels import MEAN, SUM, SYMMETRIC, Layers, Lists, State, Trial
from gst.greedy.search import Incidence, Model
from gst.nn.backbones import Backbone
from gst.nn.features import Features, SparseFeatures, linear
from gst.nn.layers import GCNLayer, GINLayer
from gst.nn.network import NativeNetwork, Network


@dataclass(frozen=True)
class Linear:
    """A layer out_i = s_i (Σ_j w_ij t_j P_j + q_i t_i P_i) + R_i + b; see :mod:`gst.greedy.kernels`."""

    norm: int
    weight: Tensor  # W
    bias: Tensor
    base: Tensor  # [N] what flows into a node without edges
    own: Tensor  # q, [N]
    root: Tensor | None = None  # W_root


def _gcn(layer: GCNLayer, loops: Tensor) -> Linear:
    diagonal = torch.where(loops > 0, loops, 1.0)
    return Linear(SYMMETRIC, layer.weight, layer.bias, diagonal, diagonal)


def _gin(layer: GINLayer, loops: Tensor) -> Linear:
    return Linear(SUM, layer.weight, layer.bias, torch.zeros_like(loops), loops + 1 + layer.eps)


LINEAR: dict[type[nn.Module], Callable[..., Linear]] = {GCNLayer: _gcn, GINLayer: _gin}


def is_linear(network: Network) -> bool:
    """Whether the kernels know all layers of a network."""
    return (
        isinstance(network, NativeNetwork)
        and network.module.activation is torch.relu
        and all(type(layer) in LINEAR for layer in network.module.layers)
    )


def as_lists(edges: EdgeSet) -> tuple[Lists, Incidence]:
    """The arcs and edges of each node, none of them kept yet."""
    source, target = (row.cpu().numpy().copy() for row in edges.arcs)
    edge, arcs = edges.arc_edge.cpu().numpy(), edges.arcs.shape[1]
    order = np.argsort(source, kind="stable")
    place = np.empty(arcs, np.int64)
    place[order] = np.arange(arcs)
    edge_arcs = np.full((edges.num_edges, 2), -1, np.int64)
    edge_arcs[:, : 1 if edges.directed else 2] = np.argsort(edge, kind="stable").reshape(edges.num_edges, -1)
    weight = np.ones(arcs) if edges.arc_weight is None else _float64(edges.arc_weight)
    start, kept = _starts(source, edges.num_nodes), np.zeros(edges.num_nodes, np.int64)
    lists = Lists(start, order, place, kept, source, target, weight, edge, edge_arcs)
    ends = edges.pairs.flatten().cpu().numpy()
    return lists, Incidence(_starts(ends, edges.num_nodes), np.argsort(ends, kind="stable") % edges.num_edges)


def as_model(network: NativeNetwork, edges: EdgeSet, wanted: Tensor, temperature: float) -> Model:
    """The network on the nodes of ``edges`` without any edge, and the logits that it should give."""
    module: Backbone = network.module
    loops = edges.loops.double()
    stack = [LINEAR[type(layer)](layer, loops) for layer in module.layers]
    width = np.array([layer.weight.shape[1] for layer in stack])
    inputs = np.array([0] + [layer.weight.shape[0] for layer in stack[1:]])
    bias = np.zeros((len(stack), width.max()))
    for layer, values in zip(stack, bias, strict=True):
        values[: layer.bias.numel()] = _float64(layer.bias)
    target = (wanted.double() / temperature).log_softmax(-1)
    layers = Layers(
        norm=stack[0].norm,
        width=width,
        row=_before(width * edges.num_nodes),
        inputs=inputs,
        weight_at=_before(inputs * width),
        weight=_flat([layer.weight for layer in stack[1:]]),
        root=_flat([layer.root for layer in stack[1:] if layer.root is not None]),
        bias=bias,
        own=np.stack([_float64(layer.own) for layer in stack]),
        wanted=_float64(target.exp()),
        entropy=_float64(-(target.exp() * target).nan_to_num(0.0).sum(-1)),
        temperature=temperature,
    )
    state = _without_edges(stack, network.x, target, temperature)
    trial = Trial(
        **{name: array.copy() for name, array in state._asdict().items()},
        out=np.zeros(width.max()),
        mark=np.zeros((width.size, edges.num_nodes), np.int64),
        nodes=np.zeros((width.size, edges.num_nodes), np.int64),
        size=np.zeros(width.size, np.int64),
        tick=np.zeros(1, np.int64),
    )
    return layers, state, trial


@torch.no_grad()
def _without_edges(stack: list[Linear], x: Features, target: Tensor, temperature: float) -> State:
    hidden: Features = SparseFeatures(x.pattern, x.values.double()) if isinstance(x, SparseFeatures) else x.double()
    sent: list[Tensor] = []
    extra: list[Tensor] = []
    for layer in stack:
        s, t = _scales(layer.norm, layer.base)
        sent.append(linear(hidden, layer.weight.double()))
        logits = (s * t * layer.own).unsqueeze(1) * sent[-1] + layer.bias
        if layer.root is not None:
            extra.append(linear(hidden, layer.root.double()))
            logits = logits + extra[-1]
        hidden = torch.relu(logits)
    found = (logits / temperature).log_softmax(-1)
    loss = torch.nn.functional.kl_div(found, target, reduction="none", log_target=True).sum(-1)
    flow, total = _float64(stack[0].base).copy(), np.zeros(sum(part.numel() for part in sent))
    return State(flow, _flat(sent), _flat(extra), total, _float64(found.exp()), _float64(loss))


def _scales(norm: int, flow: Tensor) -> tuple[Tensor, Tensor]:
    one = torch.ones_like(flow)
    if norm == MEAN:
        return torch.where(flow > 0, 1 / flow, 0.0), one
    return (flow.rsqrt(), flow.rsqrt()) if norm == SYMMETRIC else (one, one)


def _float64(values: Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.detach().cpu().double().numpy())


def _flat(parts: list[Tensor]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(_float64(part).ravel() for part in parts)])


def _before(sizes: np.ndarray) -> np.ndarray:
    """Where each part begins."""
    return np.cumsum(sizes) - sizes


def _starts(keys: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))])
