"""What one edge more or less does to the answers of a network, recomputed only where it does something.

A layer of linear aggregation computes, for every node i,

    out_i = s_i (Σ_j w_ij t_j P_j + q_i t_i P_i) + R_i + b,    P = H·W, R = H·W_root

where s and t depend on d_i = base_i + Σ_j w_ij, the weight that flows into i:

    sum:        s = t = 1            (GIN)
    mean:       s = 1/d, t = 1       (GraphSAGE)
    symmetric:  s = t = 1/√d         (GCN)

The sums U_i = Σ_j w_ij t_j P_j of all layers are kept. What an edge changes is pushed, as a difference, from the nodes
that send something else to those that receive it, so a receiver of high degree costs no more than any other.

Everything per layer and node lies in one flat array, row (l, i) at ``row[l] + i·width[l]``: one compiled kernel serves
any depth.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

SUM, MEAN, SYMMETRIC = 0, 1, 2

# Nothing here allocates, so nothing needs counting of references, which would take most of the time.
OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
kernel = njit(**OPTIONS)
macro = njit(inline="always", **OPTIONS)  # for what returns a view


class Lists(NamedTuple):
    """The arcs by source. The kept ones of each source come first, so that walking them costs their number only."""

    start: np.ndarray  # [N + 1]
    arc: np.ndarray  # [A] arc ids, permuted within each source
    place: np.ndarray  # [A] where an arc stands in it
    kept: np.ndarray  # [N] how many arcs of each source are kept
    source: np.ndarray  # [A]
    target: np.ndarray  # [A]
    weight: np.ndarray  # [A]
    edge: np.ndarray  # [A]
    edge_arcs: np.ndarray  # [E, 2] the arcs of each edge; −1 for the second of a directed one


class Layers(NamedTuple):
    """The network and the answers it should give; constant."""

    norm: int
    width: np.ndarray  # [L] outputs of each layer
    row: np.ndarray  # [L] where a layer's rows begin in the arrays of State
    inputs: np.ndarray  # [L] inputs of each layer; 0 for the first, whose products are made once
    weight_at: np.ndarray  # [L] where W begins in weight
    weight: np.ndarray  # flat, each W row by row
    root: np.ndarray  # W_root like weight, or empty
    bias: np.ndarray  # [L, widest]
    own: np.ndarray  # q, [L, N]
    wanted: np.ndarray  # softmax(Z^A / T), [N, C]
    entropy: np.ndarray  # of what is wanted, [N]
    temperature: float


class State(NamedTuple):
    """What the network holds on the kept edges."""

    flow: np.ndarray  # d, [N]
    sent: np.ndarray  # P of all layers
    extra: np.ndarray  # R of all layers, or empty
    total: np.ndarray  # U of all layers
    chance: np.ndarray  # softmax(Z / T), [N, C]
    loss: np.ndarray  # KL of each node, [N]


class Trial(NamedTuple):
    """Room for what would be different: rows of State, valid where ``mark`` shows the current tick."""

    flow: np.ndarray
    sent: np.ndarray
    extra: np.ndarray
    total: np.ndarray
    chance: np.ndarray
    loss: np.ndarray
    out: np.ndarray  # [widest] one node's output of a layer
    mark: np.ndarray  # [L, N] tick at which a layer's output was last touched
    nodes: np.ndarray  # [L, N] the nodes touched …
    size: np.ndarray  # [L] … and their number
    tick: np.ndarray  # [1]


@kernel
def _scales(norm: int, flow: float) -> tuple[float, float]:
    """s and t; a mean over nothing is zero."""
    if norm == SUM:
        return 1.0, 1.0
    if norm == MEAN:
        return (1.0 / flow if flow > 0 else 0.0), 1.0
    scale = 1.0 / np.sqrt(flow)
    return scale, scale


@macro
def _row(array: np.ndarray, layer: int, node: int, layers: Layers) -> np.ndarray:
    at = layers.row[layer] + node * layers.width[layer]
    return array[at : at + layers.width[layer]]


@kernel
def _touch(layer: int, node: int, layers: Layers, state: State, trial: Trial) -> None:
    if trial.mark[layer, node] == trial.tick[0]:
        return
    trial.mark[layer, node] = trial.tick[0]
    trial.nodes[layer, trial.size[layer]] = node
    trial.size[layer] += 1
    _copy(trial.total, state.total, layer, node, layers)


@kernel
def _changed(layer: int, node: int, trial: Trial) -> bool:
    """Whether what goes into a layer at a node differs; the features never do."""
    return layer > 0 and trial.mark[layer - 1, node] == trial.tick[0]


@macro
def _sent(layer: int, node: int, layers: Layers, state: State, trial: Trial) -> np.ndarray:
    """What a node would send."""
    return _row(trial.sent if _changed(layer, node, trial) else state.sent, layer, node, layers)


@kernel
def _send(layer: int, node: int, edge: int, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """Pushes the difference in what a node sends along its kept arcs, those of ``edge`` excepted."""
    first = lists.start[node]
    before, after = _scales(layers.norm, state.flow[node])[1], _scales(layers.norm, trial.flow[node])[1]
    old, new = _row(state.sent, layer, node, layers), _sent(layer, node, layers, state, trial)
    for at in range(first, first + lists.kept[node]):
        arc = lists.arc[at]
        if lists.edge[arc] == edge:
            continue
        weight = lists.weight[arc]
        _touch(layer, lists.target[arc], layers, state, trial)
        into = _row(trial.total, layer, lists.target[arc], layers)
        for c in range(into.size):
            into[c] += weight * (after * new[c] - before * old[c])


@kernel
def _switch(layer: int, arc: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """What the arc itself, come or gone, carries."""
    source, target = lists.source[arc], lists.target[arc]
    _touch(layer, target, layers, state, trial)
    if sign > 0:
        flow, sent = trial.flow[source], _sent(layer, source, layers, state, trial)
    else:
        flow, sent = state.flow[source], _row(state.sent, layer, source, layers)
    factor = sign * lists.weight[arc] * _scales(layers.norm, flow)[1]
    into = _row(trial.total, layer, target, layers)
    for c in range(into.size):
        into[c] += factor * sent[c]


@kernel
def _output(layer: int, node: int, layers: Layers, state: State, trial: Trial) -> None:
    s, t = _scales(layers.norm, trial.flow[node])
    own, bias = layers.own[layer, node] * t, layers.bias[layer]
    total, sent = _row(trial.total, layer, node, layers), _sent(layer, node, layers, state, trial)
    for c in range(total.size):
        trial.out[c] = s * (total[c] + own * sent[c]) + bias[c]
    if layers.root.size > 0:
        extra = _row(trial.extra if _changed(layer, node, trial) else state.extra, layer, node, layers)
        for c in range(total.size):
            trial.out[c] += extra[c]


@kernel
def _transform(layer: int, node: int, weight: np.ndarray, layers: Layers, hidden: np.ndarray, into: np.ndarray) -> None:
    """ReLU(hidden)·W into the row of a node."""
    row = _row(into, layer, node, layers)
    for c in range(row.size):
        row[c] = 0.0
    for h in range(layers.inputs[layer]):
        value, at = hidden[h], layers.weight_at[layer] + h * row.size
        if value > 0:
            factors = weight[at : at + row.size]
            for c in range(row.size):
                row[c] += value * factors[c]


@kernel
def _answer(node: int, layers: Layers, trial: Trial) -> None:
    """softmax(out / T) and its KL from what is wanted."""
    wanted, chance, out = layers.wanted[node], trial.chance[node], trial.out
    top, total, inner = out[0], 0.0, 0.0
    for c in range(1, chance.size):
        top = max(top, out[c])
    for c in range(chance.size):
        scaled = (out[c] - top) / layers.temperature
        chance[c] = np.exp(scaled)
        total += chance[c]
        inner += wanted[c] * scaled
    for c in range(chance.size):
        chance[c] /= total
    trial.loss[node] = np.log(total) - inner - layers.entropy[node]


@kernel
def change(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """KL of the network with this edge added (sign 1) or removed (−1), less KL now; the details stay in ``trial``."""
    trial.tick[0] += 1
    for layer in range(layers.width.size):
        trial.size[layer] = 0
    arcs, depth = lists.edge_arcs[edge], layers.width.size
    for side in range(2):
        arc = arcs[side]
        if arc >= 0:
            trial.flow[lists.target[arc]] = state.flow[lists.target[arc]] + sign * lists.weight[arc]
    delta = 0.0
    for layer in range(depth):
        if layer > 0:
            for k in range(trial.size[layer - 1]):
                _touch(layer, trial.nodes[layer - 1, k], layers, state, trial)
                _send(layer, trial.nodes[layer - 1, k], edge, lists, layers, state, trial)
        for side in range(2):
            arc = arcs[side]
            if arc >= 0:
                if layer == 0 and layers.norm == SYMMETRIC:  # its degree scales what the target sends
                    _send(layer, lists.target[arc], edge, lists, layers, state, trial)
                _switch(layer, arc, sign, lists, layers, state, trial)
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            _output(layer, node, layers, state, trial)
            if layer + 1 < depth:
                _transform(layer + 1, node, layers.weight, layers, trial.out, trial.sent)
                if layers.root.size > 0:
                    _transform(layer + 1, node, layers.root, layers, trial.out, trial.extra)
            else:
                _answer(node, layers, trial)
                delta += trial.loss[node] - state.loss[node]
    for side in range(2):
        arc = arcs[side]
        if arc >= 0:
            trial.flow[lists.target[arc]] = state.flow[lists.target[arc]]
    return delta


@kernel
def apply(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Makes a change real; ``drift`` grows by how far the answer of each node moves, ½ Σ_c |Δ softmax|."""
    change(edge, sign, lists, layers, state, trial)
    last = layers.width.size - 1
    for layer in range(last + 1):
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            _copy(state.total, trial.total, layer, node, layers)
            if layer < last:
                _copy(state.sent, trial.sent, layer + 1, node, layers)
                if layers.root.size > 0:
                    _copy(state.extra, trial.extra, layer + 1, node, layers)
    for k in range(trial.size[last]):
        node = trial.nodes[last, k]
        state.loss[node] = trial.loss[node]
        for c in range(layers.wanted.shape[1]):
            drift[node] += abs(trial.chance[node, c] - state.chance[node, c]) / 2
            state.chance[node, c] = trial.chance[node, c]
    for side in range(2):
        arc = lists.edge_arcs[edge, side]
        if arc >= 0:
            target = lists.target[arc]
            state.flow[target] += sign * lists.weight[arc]
            trial.flow[target] = state.flow[target]
            drift[target] += lists.weight[arc] / state.flow[target] if state.flow[target] > 0 else 1.0


@kernel
def _copy(into: np.ndarray, new: np.ndarray, layer: int, node: int, layers: Layers) -> None:
    to, source = _row(into, layer, node, layers), _row(new, layer, node, layers)
    for c in range(to.size):
        to[c] = source[c]


@kernel
def move(edge: int, sign: float, lists: Lists) -> None:
    """Swaps the arcs of an edge across the border between the kept arcs of their source and the others."""
    for side in range(2):
        arc = lists.edge_arcs[edge, side]
        if arc < 0:
            continue
        source = lists.source[arc]
        if sign < 0:
            lists.kept[source] -= 1
        here, border = lists.place[arc], lists.start[source] + lists.kept[source]
        other = lists.arc[border]
        lists.arc[here], lists.arc[border] = other, arc
        lists.place[other], lists.place[arc] = here, border
        if sign > 0:
            lists.kept[source] += 1
