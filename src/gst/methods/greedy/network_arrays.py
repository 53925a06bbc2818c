"""Backbones as plain arrays for the kernels, on a graph without edges."""

import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.arrays import MEAN, SUM, SYMMETRIC, Heads, Layers, Lists, State, Trial
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.walk import Incidence, Model
from gst.nn.backbones import Backbone
from gst.nn.features import Features, linear
from gst.nn.layers import Layer
from gst.nn.network import NativeNetwork, Network
from gst.nn.recognise import TapeNetwork

CAP = 32  # kept arcs above which the propagation of a node is deferred to the next refresh
NORMS = {"sum": SUM, "mean": MEAN, "symmetric": SYMMETRIC}


@dataclass(frozen=True)
class Formula:
    """A layer out_i = s_i (Σ_j w_ij t_j P_j + q_i t_i P_i) + R_i + b; see :mod:`gst.methods.greedy.kernels`.

    With heads, a mean weighted by attention, with its scores in further columns of P; see
    :mod:`gst.methods.greedy.attention`.
    """

    norm: int
    weight: Tensor  # W
    bias: Tensor
    base: Tensor  # [N] weighted in-degree of a node without edges
    self_weight: Tensor  # q, [N]
    root: Tensor | None = None  # W_root
    heads: int = 0

    @classmethod
    def of(cls, layer: Layer, loops: Tensor) -> "Formula":
        diagonal = layer.diagonal(loops)
        if layer.attention is None:
            base = torch.zeros_like(loops) if layer.norm == "sum" else diagonal
            return cls(NORMS[layer.norm], layer.weight, layer.bias, base, diagonal, layer.root)
        heads, bias, weight = layer.attention[0].shape[0], layer.bias.double(), layer.weight.double()
        scores = [(weight.view(weight.shape[0], heads, -1) * vector.double()).sum(-1) for vector in layer.attention]
        bias = torch.cat([bias, bias.new_zeros(2 * heads)])
        return cls(MEAN, torch.cat([weight, *scores], dim=1), bias, diagonal, diagonal, heads=heads)

    @property
    def outputs(self) -> int:
        return self.weight.shape[1] - 2 * self.heads


def all_known(networks: Sequence[Network]) -> bool:
    """Whether the kernels cover the networks: described layers of one class, with ReLU, or ELU after attention.

    In-degrees are stored once for all layers, so the diagonal must be the same for all, except for sums, which do not
    depend on them. Attention is covered without skip connections and normalisation only. Of recognised models, those
    that differ in nothing but their features.
    """
    tapes = [network for network in networks if isinstance(network, TapeNetwork)]
    if tapes:
        return len(tapes) == len(networks) and all(network.tape is tapes[0].tape for network in tapes)
    modules = [network.module for network in networks if isinstance(network, NativeNetwork)]
    if len(modules) < len(networks) or not all(module.described for module in modules):
        return False
    kinds = {
        (type(layer), module.activation, layer.root is not None, bool(module.norms))
        for module in modules
        for layer in module.stack
    }
    if len(kinds) != 1:
        return False
    layer = modules[0].stack[0]
    _, activation, *extras = kinds.pop()
    if layer.attention is not None:
        return activation is functional.elu and not any(extras)
    return activation is torch.relu and (layer.fixed_diagonal or layer.norm == "sum")


def as_lists(edges: EdgeSet) -> tuple[Lists, Incidence]:
    """The arcs and the edges of each node; no arc is kept yet."""
    ends = edges.pairs.flatten().cpu().numpy()
    incidence = Incidence(_starts(ends, edges.num_nodes), np.argsort(ends, kind="stable") % edges.num_edges)
    return _lists(edges, *edges.arcs.cpu().numpy()), incidence


def _lists(edges: EdgeSet, source: np.ndarray, target: np.ndarray) -> Lists:
    sides = 1 if edges.directed else 2
    first = np.argsort(edges.arc_edge.cpu().numpy(), kind="stable").reshape(edges.num_edges, sides)
    number = np.empty(source.size, np.int64)  # 2e + side
    number[first] = 2 * np.arange(edges.num_edges)[:, None] + np.arange(sides)
    order = np.argsort(source, kind="stable")
    position = np.full(2 * edges.num_edges, -1)
    position[number[order]] = np.arange(source.size)
    weight = np.ones(source.size) if edges.arc_weight is None else _float64(edges.arc_weight)
    return Lists(
        start=_starts(source, edges.num_nodes),
        num_kept=np.zeros(edges.num_nodes, np.int64),
        arc=number[order],
        target=target[order],
        weight=weight[order],
        position=position,
        ends=np.stack([source[first[:, 0]], target[first[:, 0]]], axis=1).ravel(),
    )


@torch.no_grad()
def as_model(
    networks: Sequence[NativeNetwork], edges: EdgeSet, wanted: list[Tensor], target: Target, cap: int = CAP
) -> Model:
    """The arrays of networks that :func:`all_known` accepts, on the nodes of ``edges`` but without any edge.

    ``wanted``: the logits that each network should give. ``cap`` does not apply to attention, whose trials are always
    exact.
    """
    loops = edges.loops.double()
    stack = [Formula.of(layer, loops) for network in networks for layer in network.module.stack]
    depth, count = len(networks[0].module.layers), edges.num_nodes
    width = np.array([layer.weight.shape[1] for layer in stack])
    heads = np.array([layer.heads for layer in stack])
    inputs = np.array([layer.weight.shape[0] if i % depth else 0 for i, layer in enumerate(stack)])
    later = [layer for i, layer in enumerate(stack) if i % depth]
    bias = np.zeros((len(stack), width.max()))
    for layer, values in zip(stack, bias, strict=True):
        values[: layer.bias.numel()] = _float64(layer.bias)
    layers = Layers(
        norm=stack[0].norm,
        depth=depth,
        cap=sys.maxsize if heads.any() else cap,
        width=width,
        row=_before(width * count),
        inputs=inputs,
        weight_at=_before(inputs * width),
        weight=_flat([layer.weight.T for layer in later]),
        root=_flat([layer.root.T for layer in later if layer.root is not None]),
        bias=bias,
        norms=_norms([network.module for network in networks], depth, int(width.max())),
        self_weight=np.stack([_float64(layer.self_weight) for layer in stack]),
        wanted=np.stack([_float64(target.probabilities(logits.double())) for logits in wanted]),
        temperature=target.temperature,
        multilabel=target.multilabel,
        squares=target.squares,
        damped=target.damped,
        entropy=np.stack([_float64(target.entropy(logits.double())) for logits in wanted]),
        heads=Heads(heads, _lists(edges, *edges.arcs.flip(0).cpu().numpy())) if heads.any() else None,
    )
    sent, root_term, out = _without_edges(stack, networks, depth)
    answers = [z[:, : wanted[0].shape[1]] for z in out[depth - 1 :: depth]]
    loss = np.stack([_float64(target.loss(w.double(), z)) for w, z in zip(wanted, answers, strict=True)])
    state = State(
        degree=_float64(stack[0].base).copy(),
        scale=_float64(_scales(stack[0].norm, stack[0].base)[0]).copy(),
        sent=_flat(sent),
        root_term=_flat(root_term),
        out=_flat(out),
        gradient=np.zeros(int((width * count).sum())),
        probability=np.stack([_float64(target.probabilities(logits)) for logits in answers]),
        loss=loss if target.damped else loss + layers.entropy,
        refreshed=np.zeros(1, bool),
    )
    trial = Trial(
        ends=np.full(2, -1),
        degree=np.zeros(2),
        sent=np.zeros_like(state.sent),
        root_term=np.zeros_like(state.root_term),
        out=np.zeros_like(state.out),
        loss=np.zeros_like(state.loss),
        scratch=np.zeros(2 * width.max()),
        normed=np.zeros(width.max()),
        mark=np.full((count, width.size), -1),
        first=np.zeros(width.size, np.int64),
        nodes=np.zeros((width.size, count), np.int64),
        size=np.zeros(width.size, np.int64),
    )
    return layers, state, trial


def _without_edges(
    stack: list[Formula], networks: Sequence[NativeNetwork], depth: int
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """P, R and outputs of all layers."""
    sent: list[Tensor] = []
    root_term: list[Tensor] = []
    outputs: list[Tensor] = []
    for first, network in zip(range(0, len(stack), depth), networks, strict=True):
        hidden: Features = network.x
        norms = [*network.module.norms, *[None] * depth]
        for layer, norm in zip(stack[first : first + depth], norms, strict=False):
            s, t = _scales(layer.norm, layer.base)
            sent.append(_product(hidden, layer.weight))
            out = (s * t * layer.self_weight).unsqueeze(1) * sent[-1] + layer.bias
            if layer.root is not None:
                root_term.append(_product(hidden, layer.root))
                out = out + root_term[-1]
            hidden = torch.relu(out if norm is None else deepcopy(norm).double()(out))
            if layer.heads:
                values, source, target = out.split([layer.outputs, layer.heads, layer.heads], dim=1)
                out = torch.cat([values, functional.leaky_relu(source + target, 0.2), target], dim=1)
                hidden = functional.elu(values)
            outputs.append(out)
    return sent, root_term, outputs


def _norms(modules: list[Backbone], depth: int, widest: int) -> np.ndarray:
    """γ and β of the LayerNorm after each layer, zeros after a last one; empty without LayerNorm."""
    norms = np.zeros((depth * len(modules) if any(module.norms for module in modules) else 0, 2, widest))
    for k, module in enumerate(modules):
        for i, norm in enumerate(module.norms):
            for row, parameter in enumerate(norm.parameters()):
                norms[k * depth + i, row, : parameter.numel()] = _float64(parameter)
    return norms


def _product(x: Features, weight: Tensor) -> Tensor:
    """H·W in double precision, but computed in that of H: a copy of the features in double would be large."""
    dtype = x.dtype if isinstance(x, Tensor) else x.values.dtype
    return linear(x, weight.to(dtype)).double()


def _scales(norm: int, degree: Tensor) -> tuple[Tensor, Tensor]:
    one = torch.ones_like(degree)
    if norm == MEAN:
        return torch.where(degree > 0, 1 / degree, 0.0), one
    return (degree.rsqrt(), degree.rsqrt()) if norm == SYMMETRIC else (one, one)


def _float64(values: Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.detach().cpu().double().numpy())


def _flat(parts: list[Tensor]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(_float64(part).ravel() for part in parts)])


def _before(sizes: np.ndarray) -> np.ndarray:
    """Where parts of these sizes start."""
    return np.cumsum(sizes) - sizes


def _starts(keys: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))])
