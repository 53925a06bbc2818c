"""The whole forward and backward pass on the kept edges: what trials left out is made good."""

import numpy as np

from gst.methods.greedy.answers import hoped, loss_of, moved, slope_of
from gst.methods.greedy.arrays import Layers, Lists, State, Trial, kernel, lean
from gst.methods.greedy.kernels import copy, row_of, scales_of, transform
from gst.methods.greedy.norms import read_of, through_norm


@kernel
def refresh(lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Puts ``state`` right from the features on, and finds the slopes ∂D/∂(t P) of all layers."""
    for layer in range(layers.width.size):
        _forward(layer, lists, layers, state, trial, drift)
    state.settled[0] = True
    for layer in range(layers.width.size - 1, -1, -1):
        _backward(layer, lists, layers, state, trial)


@kernel
def _forward(layer: int, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """The sums U, and then the outputs, stand in the rows of ``trial.out``, by node."""
    nodes, network = lists.kept.size, layer // layers.depth
    at = layers.row[layer]
    trial.out[at : at + nodes * layers.width[layer]] = 0.0
    for node in range(nodes):
        t, sent = scales_of(node, layers, state)[1], row_of(state.sent, layer, node, layers)
        for at in range(lists.start[node], lists.start[node] + lists.kept[node]):
            into, weight = row_of(trial.out, layer, lists.target[at], layers), t * lists.weight[at]
            for c in range(into.size):
                into[c] += weight * sent[c]
    for node in range(nodes):
        out, bias = row_of(trial.out, layer, node, layers), layers.bias[layer]
        s, t = scales_of(node, layers, state)
        own, sent = layers.own[layer, node] * t, row_of(state.sent, layer, node, layers)
        for c in range(out.size):
            out[c] = s * (out[c] + own * sent[c]) + bias[c]
        if state.extra.size > 0:
            extra = row_of(state.extra, layer, node, layers)
            for c in range(out.size):
                out[c] += extra[c]
        old = row_of(state.out, layer, node, layers)
        same = True
        for c in range(out.size):
            same &= out[c] == old[c]
        if same and state.settled[0]:  # and so is what follows from it
            continue
        if (layer + 1) % layers.depth:
            read = read_of(layer, out, layers, trial)
            transform(layer + 1, node, layers.weight, layers, read, state.sent)
            if state.extra.size > 0:
                transform(layer + 1, node, layers.root, layers, read, state.extra)
        else:
            state.loss[network, node] = loss_of(network, node, hoped(network, node, out, layers), out, layers)
            drift[node] += moved(out, layers, state.chance[network, node], trial)
        copy(out, old)


@kernel
def _backward(layer: int, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """The slopes of a layer, and G = ∂D/∂out of the layer before; G stands in the rows of ``trial.out``."""
    nodes, network = lists.kept.size, layer // layers.depth
    if (layer + 1) % layers.depth == 0:
        for node in range(nodes):
            slope_of(network, node, layers, state, row_of(trial.out, layer, node, layers))
    first = layers.inputs[layer] == 0
    heard = -1 if first or layers.inputs[layer - 1] > 0 else _mark_heard(layer - 1, lists, layers, trial)
    for node in range(nodes):
        if not _busy(node, lists, layers) and (first or (heard >= 0 and trial.mark[node, layer - 1] != heard)):
            continue  # nobody asks for its slope
        slope = row_of(state.slope, layer, node, layers)
        for c in range(slope.size):
            slope[c] = 0.0
        for at in range(lists.start[node], lists.start[node] + lists.kept[node]):
            target = lists.target[at]
            back, weight = row_of(trial.out, layer, target, layers), lists.weight[at]
            weight *= state.scale[target]
            for c in range(slope.size):
                slope[c] += weight * back[c]
        if first:
            continue
        s, t = scales_of(node, layers, state)
        own, back = s * t * layers.own[layer, node], row_of(trial.out, layer, node, layers)
        hidden, before = row_of(state.out, layer - 1, node, layers), row_of(trial.out, layer - 1, node, layers)
        for h in range(before.size):
            before[h] = 0.0
        for c in range(back.size):
            at, carried = layers.weight_at[layer] + c * before.size, t * slope[c] + own * back[c]
            weights = layers.weight[at : at + before.size]
            for h in range(before.size):
                before[h] += weights[h] * carried
            if state.extra.size > 0:
                roots = layers.root[at : at + before.size]
                for h in range(before.size):
                    before[h] += roots[h] * back[c]
        if layers.norms.size > 0:
            through_norm(layer - 1, hidden, before, layers)
        else:
            for h in range(before.size):
                before[h] = before[h] if hidden[h] > 0 else 0.0


@lean
def _busy(node: int, lists: Lists, layers: Layers) -> bool:
    """Whether a node may come to keep more than ``cap`` arcs: slopes are for such nodes."""
    return lists.start[node + 1] - lists.start[node] > layers.cap


@lean
def _mark_heard(layer: int, lists: Lists, layers: Layers, trial: Trial) -> int:
    """Marks, in a first layer, all that hear a busy node: nobody else's G is asked for. A mark of this time alone."""
    heard = trial.first[layer] + trial.size[layer]
    trial.size[layer] += 1  # the next trial begins above it
    for node in range(lists.kept.size):
        if _busy(node, lists, layers):
            for at in range(lists.start[node], lists.start[node] + lists.kept[node]):
                trial.mark[lists.target[at], layer] = heard
    return heard
