"""Trials of one edge in attention networks, the counterpart of :mod:`gst.methods.greedy.kernels`.

A layer of attention computes, for every node i and each of its heads,

    out_i = Σ_j w_ij exp(e_ij) P_j / Σ_j w_ij exp(e_ij) + b,    e_ij = LeakyReLU(τ_i + σ_j),    P = H·W

where i is its own neighbour with w_ii = 1. The scalars σ = P·a_s and τ = P·a_t are further columns of P, since W is
extended by W·a_s and W·a_t: a row of P is ``[P | σ | τ]`` and a row of outputs is
``[out | log Σ_j w_ij exp(e_ij) | scratch]``.

A receiver whose own row of P is unchanged keeps its τ: the differences of its neighbours' messages are pushed to it, in
units of its old sum Σ_j w_ij exp(e_ij). A receiver whose own row changes has new scores for all its neighbours and is
recomputed from all of them; so is one that loses most of its sum, where a difference would cancel to rounding error.
Nothing is estimated or deferred: every trial is exact, and at a hub it costs the number of its kept arcs.
"""

import numpy as np

from gst.methods.greedy.answers import expected_logit, node_loss
from gst.methods.greedy.arrays import Layers, Lists, State, Trial, inlined, kernel, macro
from gst.methods.greedy.kernels import (
    answer_of,
    apply,
    begin_trial,
    move_arc,
    previous_slot,
    row_of,
    slot_of,
    trial_sent,
)

MIN_RATIO, MAX_RATIO = 0.5, 1e100  # of the new sum to the old one, between which differences are accurate


@inlined
def _leaky(score: float) -> float:
    return score if score > 0 else 0.2 * score


@inlined
def _add_message(
    weight: float, sent: np.ndarray, receiver: np.ndarray, old: np.ndarray, into: np.ndarray, heads: int, each: int
) -> None:
    """Adds the message of one arc to the difference of a node with P = ``receiver`` and output ``old``."""
    width = heads * each
    for h in range(heads):
        share = weight * np.exp(_leaky(receiver[width + heads + h] + sent[width + h]) - old[width + h])
        into[width + h] += share
        for c in range(h * each, (h + 1) * each):
            into[c] += share * sent[c]


@macro
def _push_difference(
    layer: int, node: int, slot: int, edge: int, lists: Lists, layers: Layers, state: State, trial: Trial
) -> None:
    """Pushes the change of a node's message along its kept arcs to all receivers that are not recomputed anyway."""
    sent_old = row_of(state.sent, layer, node, layers)
    sent_new = row_of(trial.sent, layer, slot, layers)
    heads = layers.heads.num_heads[layer]
    each = sent_old.size // heads - 2
    start = lists.start[node]
    for position in range(start, start + lists.num_kept[node]):
        target = lists.target[position]
        if lists.arc[position] >> 1 == edge or previous_slot(layer, target, layers, trial) >= 0:
            continue
        into = row_of(trial.out, layer, slot_of(layer, target, layers, trial), layers)
        receiver = row_of(state.sent, layer, target, layers)
        old = row_of(state.out, layer, target, layers)
        _add_message(lists.weight[position], sent_new, receiver, old, into, heads, each)
        _add_message(-lists.weight[position], sent_old, receiver, old, into, heads, each)


@macro
def _push_arc(layer: int, arc: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """Adds what the tried arc carries into a first layer; in later ones its target is recomputed."""
    source, target = lists.ends[arc], lists.ends[arc ^ 1]
    into = row_of(trial.out, layer, slot_of(layer, target, layers, trial), layers)
    receiver = row_of(state.sent, layer, target, layers)
    old = row_of(state.out, layer, target, layers)
    sent = row_of(state.sent, layer, source, layers)
    heads = layers.heads.num_heads[layer]
    each = receiver.size // heads - 2
    _add_message(sign * lists.weight[lists.position[arc]], sent, receiver, old, into, heads, each)


@inlined
def _accumulate(weight: float, sent: np.ndarray, receiver: np.ndarray, out: np.ndarray, heads: int, each: int) -> None:
    """Adds one neighbour to the sums of a node, in units of the largest exp(e_ij) so far."""
    width = heads * each
    for h in range(heads):
        score = _leaky(receiver[width + heads + h] + sent[width + h])
        top = out[width + heads + h]
        ratio = np.exp(-abs(score - top))
        share, shrink = (weight, ratio) if score > top else (weight * ratio, 1.0)
        out[width + heads + h] = max(score, top)
        out[width + h] = shrink * out[width + h] + share
        for c in range(h * each, (h + 1) * each):
            out[c] = shrink * out[c] + share * sent[c]


@macro
def _recompute(
    layer: int, node: int, slot: int, edge: int, sign: float, layers: Layers, state: State, trial: Trial
) -> None:
    """The output of a node in the trial, from itself and all its incoming arcs."""
    out = row_of(trial.out, layer, slot, layers)
    receiver = trial_sent(layer, node, previous_slot(layer, node, layers, trial), layers, state, trial)
    incoming, heads = layers.heads.incoming, layers.heads.num_heads[layer]
    each = out.size // heads - 2
    width = heads * each
    for c in range(width):
        out[c] = receiver[c]
    for h in range(heads):
        out[width + h] = 1.0
        out[width + heads + h] = _leaky(receiver[width + h] + receiver[width + heads + h])
    start, num_kept = incoming.start[node], incoming.num_kept[node]
    gains_arc = sign > 0 and (node == trial.ends[0] or node == trial.ends[1])
    for k in range(num_kept + 1 if gains_arc else num_kept):
        position = start + k if k < num_kept else incoming.position[2 * edge + (0 if node == trial.ends[0] else 1)]
        if sign > 0 or incoming.arc[position] >> 1 != edge:
            source = incoming.target[position]
            sent = trial_sent(layer, source, previous_slot(layer, source, layers, trial), layers, state, trial)
            _accumulate(incoming.weight[position], sent, receiver, out, heads, each)
    for h in range(heads):
        for c in range(h * each, (h + 1) * each):
            out[c] = out[c] / out[width + h] + layers.bias[layer, c]
        out[width + h] = out[width + heads + h] + np.log(out[width + h])


@macro
def _finish_output(
    layer: int, node: int, slot: int, edge: int, sign: float, layers: Layers, state: State, trial: Trial
) -> None:
    """Turns the differences pushed to a node into its output, or recomputes it where they do not suffice."""
    out = row_of(trial.out, layer, slot, layers)
    old = row_of(state.out, layer, node, layers)
    heads = layers.heads.num_heads[layer]
    each = out.size // heads - 2
    width = heads * each
    accurate = previous_slot(layer, node, layers, trial) < 0
    for h in range(heads):
        accurate = accurate and MIN_RATIO < 1.0 + out[width + h] < MAX_RATIO
    if not accurate:
        _recompute(layer, node, slot, edge, sign, layers, state, trial)
        return
    for h in range(heads):
        total = 1.0 + out[width + h]
        for c in range(h * each, (h + 1) * each):
            bias = layers.bias[layer, c]
            out[c] = (old[c] - bias + out[c]) / total + bias
        out[width + h] = old[width + h] + np.log(total)


@macro
def _transform(layer: int, slot: int, layers: Layers, hidden: np.ndarray, trial: Trial) -> None:
    """ELU(hidden)·W, written to the row of a slot."""
    active = trial.scratch[: layers.inputs[layer]]
    for h in range(active.size):
        active[h] = hidden[h] if hidden[h] > 0 else np.expm1(hidden[h])
    row = row_of(trial.sent, layer, slot, layers)
    for c in range(row.size):
        start, total = layers.weight_at[layer] + c * active.size, 0.0
        for h in range(active.size):
            total += active[h] * layers.weight[start + h]
        row[c] = total


@kernel
def change_attention(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """Tries one edge; see :func:`~gst.methods.greedy.kernels.change`."""
    begin_trial(edge, sign, lists, layers, state, trial)
    delta = 0.0
    for layer in range(layers.width.size):
        network, number = layer // layers.depth, layer % layers.depth
        if number > 0:
            for k in range(trial.size[layer - 1]):
                node = trial.nodes[layer - 1, k]
                slot_of(layer, node, layers, trial)
                _push_difference(layer, node, k, edge, lists, layers, state, trial)
        else:
            for side in range(2):
                if trial.ends[side] >= 0:
                    _push_arc(layer, 2 * edge + side, sign, lists, layers, state, trial)
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            _finish_output(layer, node, k, edge, sign, layers, state, trial)
            if number + 1 < layers.depth:
                _transform(layer + 1, k, layers, row_of(trial.out, layer, k, layers), trial)
            else:
                answer = answer_of(trial.out, layer, k, layers)
                expected = expected_logit(network, node, answer, layers)
                trial.loss[network, k] = node_loss(network, node, expected, answer, layers)
                delta += trial.loss[network, k] - state.loss[network, node]
    return delta


@kernel
def apply_attention(
    edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray
) -> None:
    """Makes the last trial permanent; see :func:`~gst.methods.greedy.kernels.apply`."""
    apply(edge, sign, lists, layers, state, trial, drift)
    for side in range(2):
        if trial.ends[side] >= 0:
            move_arc(2 * edge + side, sign, layers.heads.incoming)


@kernel
def refresh_attention(lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Does nothing: no propagation is deferred."""
