"""The whole forward and backward pass on the kept edges: what trials left out is made good."""

import numpy as np

from gst.greedy.arrays import Layers, Lists, State, Trial, kernel
from gst.greedy.kernels import answer, output, row_of, scales, settle, transform


@kernel
def refresh(lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Puts ``state`` right from the features on, and finds the slopes ∂KL/∂(t P) of all layers."""
    for layer in range(layers.width.size):
        _forward(layer, lists, layers, state, trial, drift)
    for layer in range(layers.width.size - 1, -1, -1):
        _backward(layer, lists, layers, state, trial)


@kernel
def _forward(layer: int, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    nodes, network = lists.kept.size, layer // layers.depth
    at = layers.row[layer]
    state.total[at : at + nodes * layers.width[layer]] = 0.0
    for node in range(nodes):
        t, sent = scales(layers.norm, state.flow[node])[1], row_of(state.sent, layer, node, layers)
        for at in range(lists.start[node], lists.start[node] + lists.kept[node]):
            arc = lists.arc[at]
            into, weight = row_of(state.total, layer, lists.target[arc], layers), t * lists.weight[arc]
            for c in range(into.size):
                into[c] += weight * sent[c]
    for node in range(nodes):
        _evaluate(layer, node, layers, state, trial)
        if (layer + 1) % layers.depth:
            transform(layer + 1, node, layers.weight, layers, trial.out, state.sent)
            if state.extra.size > 0:
                transform(layer + 1, node, layers.root, layers, trial.out, state.extra)
        else:
            wanted, entropy = layers.wanted[network, node], layers.entropy[network, node]
            state.loss[network, node] = answer(wanted, entropy, trial.out, layers, trial.chance[network, node])
            drift[node] += settle(state.chance[network, node], trial.chance[network, node])


@kernel
def _evaluate(layer: int, node: int, layers: Layers, state: State, trial: Trial) -> None:
    """The output of a node into ``trial.out``."""
    total, sent = row_of(state.total, layer, node, layers), row_of(state.sent, layer, node, layers)
    output(layer, node, state.flow[node], layers, total, sent, trial.out)
    if state.extra.size > 0:
        extra = row_of(state.extra, layer, node, layers)
        for c in range(extra.size):
            trial.out[c] += extra[c]


@kernel
def _backward(layer: int, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """The slopes of a layer, and G = ∂KL/∂out of the layer before; G stands in the rows of ``trial.total``."""
    nodes, network = lists.kept.size, layer // layers.depth
    if (layer + 1) % layers.depth == 0:
        for node in range(nodes):
            slope = row_of(trial.total, layer, node, layers)
            for c in range(slope.size):
                wanted = layers.wanted[network, node, c]
                slope[c] = (state.chance[network, node, c] - wanted) / layers.temperature
    for node in range(nodes):
        slope = row_of(state.slope, layer, node, layers)
        for c in range(slope.size):
            slope[c] = 0.0
        for at in range(lists.start[node], lists.start[node] + lists.kept[node]):
            arc = lists.arc[at]
            target = lists.target[arc]
            back, weight = row_of(trial.total, layer, target, layers), lists.weight[arc]
            weight *= scales(layers.norm, state.flow[target])[0]
            for c in range(slope.size):
                slope[c] += weight * back[c]
        if layers.inputs[layer] == 0:
            continue
        _evaluate(layer - 1, node, layers, state, trial)
        s, t = scales(layers.norm, state.flow[node])
        own, back = s * t * layers.own[layer, node], row_of(trial.total, layer, node, layers)
        before = row_of(trial.total, layer - 1, node, layers)
        for h in range(before.size):
            before[h] = 0.0
            at = layers.weight_at[layer] + h * back.size
            if trial.out[h] > 0:
                for c in range(back.size):
                    before[h] += layers.weight[at + c] * (t * slope[c] + own * back[c])
                    if state.extra.size > 0:
                        before[h] += layers.root[at + c] * back[c]
