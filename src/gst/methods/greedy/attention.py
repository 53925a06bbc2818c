"""What one edge more or less does to the answers of attention networks; the like of :mod:`gst.methods.greedy.kernels`.

A layer of attention computes, for every node i and each of its heads,

    out_i = Σ_j w_ij exp(e_ij) P_j / Σ_j w_ij exp(e_ij) + b,    e_ij = LeakyReLU(τ_i + σ_j),    P = H·W

where i is its own neighbour with w_ii = 1. The scalars σ = P·a_s and τ = P·a_t are columns of P, for W is prolonged by
W·a_s and W·a_t. So a row of P is ``[P | σ | τ]`` and a row of outputs ``[out | log Σ_j w_ij exp(e_ij) | room]``.

A node whose own row stays as it is has the same τ: what its neighbours send else is pushed to it as a difference, in
units of its sum. A node whose own row changes attends anew to all that it hears: its row is summed afresh, and so is
one that loses most of its sum, which a difference would not tell to rounding.
"""

import numpy as np

from gst.methods.greedy.answers import hoped, loss_of
from gst.methods.greedy.arrays import Layers, Lists, State, Trial, kernel, lean, macro
from gst.methods.greedy.kernels import answer_of, apply, begin, move, row_of, sent_by, slot_before, slot_of

LEAST, MOST = 0.5, 1e100  # of a sum, in units of what it was, that a difference may leave


@lean
def _leaky(score: float) -> float:
    return score if score > 0 else 0.2 * score


@lean
def _push(
    weight: float, sent: np.ndarray, own: np.ndarray, old: np.ndarray, into: np.ndarray, heads: int, each: int
) -> None:
    """Adds what one arc brings to a receiver of row ``own`` and output ``old``."""
    width = heads * each
    for h in range(heads):
        share = weight * np.exp(_leaky(own[width + heads + h] + sent[width + h]) - old[width + h])
        into[width + h] += share
        for c in range(h * each, (h + 1) * each):
            into[c] += share * sent[c]


@macro
def _send(
    layer: int, node: int, slot: int, edge: int, lists: Lists, layers: Layers, state: State, trial: Trial
) -> None:
    """Pushes the difference in what a node sends along its kept arcs to those whose rows are not summed afresh."""
    was, now = row_of(state.sent, layer, node, layers), row_of(trial.sent, layer, slot, layers)
    count, first = layers.heads.number[layer], lists.start[node]
    each = was.size // count - 2
    for at in range(first, first + lists.kept[node]):
        target = lists.target[at]
        if lists.arc[at] >> 1 == edge or slot_before(layer, target, layers, trial) >= 0:
            continue
        into = row_of(trial.out, layer, slot_of(layer, target, layers, trial), layers)
        own, old = row_of(state.sent, layer, target, layers), row_of(state.out, layer, target, layers)
        _push(lists.weight[at], now, own, old, into, count, each)
        _push(-lists.weight[at], was, own, old, into, count, each)


@macro
def _switch(layer: int, arc: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """What the arc itself, come or gone, carries into a first layer; in later ones, its target's row is new."""
    source, target = lists.ends[arc], lists.ends[arc ^ 1]
    into = row_of(trial.out, layer, slot_of(layer, target, layers, trial), layers)
    own, old = row_of(state.sent, layer, target, layers), row_of(state.out, layer, target, layers)
    sent, count = row_of(state.sent, layer, source, layers), layers.heads.number[layer]
    _push(sign * lists.weight[lists.place[arc]], sent, own, old, into, count, own.size // count - 2)


@lean
def _hear(weight: float, sent: np.ndarray, own: np.ndarray, out: np.ndarray, heads: int, each: int) -> None:
    """Adds one neighbour to the sums, in units of the largest exp(e_ij) so far."""
    width = heads * each
    for h in range(heads):
        score, top = _leaky(own[width + heads + h] + sent[width + h]), out[width + heads + h]
        less = np.exp(-abs(score - top))
        share, shrink = (weight, less) if score > top else (weight * less, 1.0)
        out[width + heads + h] = max(score, top)
        out[width + h] = shrink * out[width + h] + share
        for c in range(h * each, (h + 1) * each):
            out[c] = shrink * out[c] + share * sent[c]


@macro
def _sum_afresh(
    layer: int, node: int, slot: int, edge: int, sign: float, layers: Layers, state: State, trial: Trial
) -> None:
    """The output of a node from all that it hears in the trial."""
    out, before = row_of(trial.out, layer, slot, layers), slot_before(layer, node, layers, trial)
    own = sent_by(layer, node, before, layers, state, trial)
    heard, count = layers.heads.heard, layers.heads.number[layer]
    each = out.size // count - 2
    width = count * each
    for c in range(width):
        out[c] = own[c]
    for h in range(count):
        out[width + h] = 1.0
        out[width + count + h] = _leaky(own[width + h] + own[width + count + h])
    first, kept = heard.start[node], heard.kept[node]
    comes = sign > 0 and (node == trial.ends[0] or node == trial.ends[1])
    for k in range(kept + 1 if comes else kept):
        at = first + k if k < kept else heard.place[2 * edge + (0 if node == trial.ends[0] else 1)]
        if sign > 0 or heard.arc[at] >> 1 != edge:
            source = heard.target[at]
            before = slot_before(layer, source, layers, trial)
            _hear(heard.weight[at], sent_by(layer, source, before, layers, state, trial), own, out, count, each)
    for h in range(count):
        for c in range(h * each, (h + 1) * each):
            out[c] = out[c] / out[width + h] + layers.bias[layer, c]
        out[width + h] = out[width + count + h] + np.log(out[width + h])


@macro
def _output(
    layer: int, node: int, slot: int, edge: int, sign: float, layers: Layers, state: State, trial: Trial
) -> None:
    """Turns what comes in besides into the output."""
    out, old = row_of(trial.out, layer, slot, layers), row_of(state.out, layer, node, layers)
    count = layers.heads.number[layer]
    each = out.size // count - 2
    width, told = count * each, slot_before(layer, node, layers, trial) < 0
    for h in range(count):
        told = told and LEAST < 1.0 + out[width + h] < MOST
    if not told:
        _sum_afresh(layer, node, slot, edge, sign, layers, state, trial)
        return
    for h in range(count):
        total = 1.0 + out[width + h]
        for c in range(h * each, (h + 1) * each):
            bias = layers.bias[layer, c]
            out[c] = (old[c] - bias + out[c]) / total + bias
        out[width + h] = old[width + h] + np.log(total)


@macro
def _transform(layer: int, slot: int, layers: Layers, hidden: np.ndarray, trial: Trial) -> None:
    """ELU(hidden)·W into the row of a slot."""
    active = trial.step[: layers.inputs[layer]]
    for h in range(active.size):
        active[h] = hidden[h] if hidden[h] > 0 else np.expm1(hidden[h])
    row = row_of(trial.sent, layer, slot, layers)
    for c in range(row.size):
        at, total = layers.weight_at[layer] + c * active.size, 0.0
        for h in range(active.size):
            total += active[h] * layers.weight[at + h]
        row[c] = total


@kernel
def attend(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """D with this edge added (sign 1) or removed (−1) less D now, sum over networks; details stay in ``trial``."""
    begin(edge, sign, lists, layers, state, trial)
    delta = 0.0
    for layer in range(layers.width.size):
        network, number = layer // layers.depth, layer % layers.depth
        if number > 0:
            for k in range(trial.size[layer - 1]):
                node = trial.nodes[layer - 1, k]
                slot_of(layer, node, layers, trial)
                _send(layer, node, k, edge, lists, layers, state, trial)
        else:
            for side in range(2):
                if trial.ends[side] >= 0:
                    _switch(layer, 2 * edge + side, sign, lists, layers, state, trial)
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            _output(layer, node, k, edge, sign, layers, state, trial)
            if number + 1 < layers.depth:
                _transform(layer + 1, k, layers, row_of(trial.out, layer, k, layers), trial)
            else:
                answer = answer_of(trial.out, layer, k, layers)
                hope = hoped(network, node, answer, layers)
                trial.loss[network, k] = loss_of(network, node, hope, answer, layers)
                delta += trial.loss[network, k] - state.loss[network, node]
    return delta


@kernel
def adopt(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Makes the change that was tried last real; see :func:`~gst.methods.greedy.kernels.apply`."""
    apply(edge, sign, lists, layers, state, trial, drift)
    for side in range(2):
        if trial.ends[side] >= 0:
            move(2 * edge + side, sign, layers.heads.heard)


@kernel
def stay(lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """No refresh: trials leave nothing out that it could make good."""
