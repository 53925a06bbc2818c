"""The native networks as the kernels want them: plain arrays, on a graph without edges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from gst.graph import EdgeSet
from gst.greedy.arrays import MEAN, SUM, SYMMETRIC, Layers, Lists, State, Trial
from gst.greedy.search import Incidence, Model
from gst.greedy.target import Target
from gst.nn.features import Features, SparseFeatures, linear
from gst.nn.layers import ClusterGCNLayer, GCNLayer, GINLayer, SAGELayer
from gst.nn.network import NativeNetwork, Network

CAP = 32  # kept arcs above which the news of a node wait for the next refresh


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


def _sage(layer: SAGELayer, loops: Tensor) -> Linear:
    return Linear(MEAN, layer.weight, layer.bias, loops, loops, layer.root)


def _cluster_gcn(layer: ClusterGCNLayer, loops: Tensor) -> Linear:
    one = torch.ones_like(loops)
    return Linear(MEAN, layer.weight, layer.bias, one, one, layer.root)


LINEAR: dict[type[nn.Module], Callable[..., Linear]] = {
    GCNLayer: _gcn,
    GINLayer: _gin,
    SAGELayer: _sage,
    ClusterGCNLayer: _cluster_gcn,
}


def all_linear(networks: Sequence[Network]) -> bool:
    """Whether the kernels know all layers of all networks."""
    return all(
        isinstance(network, NativeNetwork)
        and network.module.activation is torch.relu
        and all(type(layer) in LINEAR for layer in network.module.layers)
        for network in networks
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


@torch.no_grad()
def as_model(
    networks: Sequence[NativeNetwork], edges: EdgeSet, wanted: list[Tensor], target: Target, cap: int = CAP
) -> Model:
    """Networks of one kind on the nodes of ``edges`` without any edge, and the logits that each should give."""
    loops = edges.loops.double()
    stack = [LINEAR[type(layer)](layer, loops) for network in networks for layer in network.module.layers]
    depth, count = len(networks[0].module.layers), edges.num_nodes
    width = np.array([layer.weight.shape[1] for layer in stack])
    inputs = np.array([layer.weight.shape[0] if i % depth else 0 for i, layer in enumerate(stack)])
    later = [layer for i, layer in enumerate(stack) if i % depth]
    bias = np.zeros((len(stack), width.max()))
    for layer, values in zip(stack, bias, strict=True):
        values[: layer.bias.numel()] = _float64(layer.bias)
    chances = [target.chance(logits.double()) for logits in wanted]
    layers = Layers(
        norm=stack[0].norm,
        depth=depth,
        cap=cap,
        width=width,
        row=_before(width * count),
        inputs=inputs,
        weight_at=_before(inputs * width),
        weight=_flat([layer.weight for layer in later]),
        root=_flat([layer.root for layer in later if layer.root is not None]),
        bias=bias,
        own=np.stack([_float64(layer.own) for layer in stack]),
        wanted=np.stack([_float64(chance) for chance in chances]),
        entropy=np.stack([_float64(target.entropy(logits.double())) for logits in wanted]),
        temperature=target.temperature,
        labels=target.labels,
    )
    sent, extra, logits = _without_edges(stack, [network.x for network in networks], depth)
    state = State(
        flow=_float64(stack[0].base).copy(),
        sent=_flat(sent),
        extra=_flat(extra),
        total=np.zeros(int((width * count).sum())),
        slope=np.zeros(int((width * count).sum())),
        chance=np.stack([_float64(target.chance(found)) for found in logits]),
        loss=np.stack([_float64(target.loss(w.double(), z)) for w, z in zip(wanted, logits, strict=True)]),
    )
    trial = Trial(
        **{name: array.copy() for name, array in state._asdict().items() if name != "slope"},
        out=np.zeros(width.max()),
        mark=np.zeros((width.size, count), np.int64),
        nodes=np.zeros((width.size, count), np.int64),
        size=np.zeros(width.size, np.int64),
        tick=np.zeros(1, np.int64),
    )
    return layers, state, trial


def _without_edges(
    stack: list[Linear], features: list[Features], depth: int
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """P and R of all layers and the logits of all networks."""
    sent: list[Tensor] = []
    extra: list[Tensor] = []
    answers: list[Tensor] = []
    for first, x in zip(range(0, len(stack), depth), features, strict=True):
        hidden: Features = SparseFeatures(x.pattern, x.values.double()) if isinstance(x, SparseFeatures) else x.double()
        for layer in stack[first : first + depth]:
            s, t = _scales(layer.norm, layer.base)
            sent.append(linear(hidden, layer.weight.double()))
            out = (s * t * layer.own).unsqueeze(1) * sent[-1] + layer.bias
            if layer.root is not None:
                extra.append(linear(hidden, layer.root.double()))
                out = out + extra[-1]
            hidden = torch.relu(out)
        answers.append(out)
    return sent, extra, answers


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
