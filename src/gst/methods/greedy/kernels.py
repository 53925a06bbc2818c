"""Trials of one edge in networks of linear aggregation: only the rows that the edge changes are recomputed.

A layer of linear aggregation computes, for every node i,

    out_i = s_i (U_i + q_i t_i P_i) + R_i + b,    U_i = Σ_j w_ij t_j P_j,    P = H·W, R = H·W_root

where s and t depend on d_i = base_i + Σ_j w_ij, the weighted in-degree of i:

    sum:        s = t = 1                       (GIN)
    mean:       s = 1/d, 0 where d = 0; t = 1   (GraphSAGE, Cluster-GCN)
    symmetric:  s = t = 1/√d                    (GCN)

and H is ReLU(out), or ReLU(LayerNorm(out)), of the layer before. W_root belongs to a skip connection or to the layer.

The outputs of all layers are stored. A trial follows the edge through its receptive field: every node whose message
t_j P_j changes pushes the difference to its receivers, so a receiver of high degree costs no more than any other.
Memory access dominates the time, so the only stored row fetched for a receiver is its own, and the rows of a trial
are contiguous.

Propagation is deferred at a sender of more than ``cap`` kept arcs. It pushes nothing; its effect on the divergence D
is estimated to first order, ⟨∂D/∂(t_j P_j), Δ(t_j P_j)⟩, until :func:`~gst.methods.greedy.refresh.refresh` propagates
all deferred differences at once, exactly, and recomputes the gradients. So the cost of a trial is bounded whatever the
degrees, and a trial that meets no such sender is exact.
"""

import numpy as np

from gst.methods.greedy.answers import expected_logit, node_loss, replace_probabilities
from gst.methods.greedy.arrays import MEAN, SUM, SYMMETRIC, Layers, Lists, State, Trial, inlined, kernel, macro
from gst.methods.greedy.norms import normalised


@inlined
def scales(norm: int, degree: float) -> tuple[float, float]:
    """s and t of a node of weighted in-degree d; a mean over nothing is zero."""
    if norm == SUM:
        return 1.0, 1.0
    if norm == MEAN:
        return (1.0 / degree if degree > 0 else 0.0), 1.0
    scale = 1.0 / np.sqrt(degree)
    return scale, scale


@inlined
def current_scales(node: int, layers: Layers, state: State) -> tuple[float, float]:
    """s and t of a node on the kept edges."""
    scale = state.scale[node]
    return scale, scale if layers.norm == SYMMETRIC else 1.0


@macro
def row_of(array: np.ndarray, layer: int, node: int, layers: Layers) -> np.ndarray:
    start = layers.row[layer] + node * layers.width[layer]
    return array[start : start + layers.width[layer]]


@macro
def answer_of(array: np.ndarray, layer: int, node: int, layers: Layers) -> np.ndarray:
    """The part of a row of a last layer that holds the C classes or labels."""
    start = layers.row[layer] + node * layers.width[layer]
    return array[start : start + layers.wanted.shape[2]]


@inlined
def _trial_degree(node: int, state: State, trial: Trial) -> float:
    """d of a node in the trial."""
    if node == trial.ends[0]:
        return trial.degree[0]
    return trial.degree[1] if node == trial.ends[1] else state.degree[node]


@inlined
def slot_of(layer: int, node: int, layers: Layers, trial: Trial) -> int:
    """The slot of a node in a layer; a node touched for the first time gets a new one with a row of zeros."""
    slot = trial.mark[node, layer] - trial.first[layer]
    if slot < 0:
        slot = trial.size[layer]
        trial.size[layer] += 1
        trial.mark[node, layer] = trial.first[layer] + slot
        trial.nodes[layer, slot] = node
        into = row_of(trial.out, layer, slot, layers)
        for c in range(into.size):
            into[c] = 0.0
    return slot


@inlined
def previous_slot(layer: int, node: int, layers: Layers, trial: Trial) -> int:
    """The slot of a node in the layer before, which is that of its P and R in this one; −1: they do not change."""
    return max(trial.mark[node, layer - 1] - trial.first[layer - 1], -1) if layers.inputs[layer] > 0 else -1


@macro
def trial_sent(layer: int, node: int, slot: int, layers: Layers, state: State, trial: Trial) -> np.ndarray:
    """P of a node in the trial; ``slot`` comes from :func:`previous_slot`."""
    return row_of(trial.sent if slot >= 0 else state.sent, layer, slot if slot >= 0 else node, layers)


@inlined
def _push_difference(
    layer: int, node: int, edge: int, lists: Lists, layers: Layers, state: State, trial: Trial
) -> float:
    """Pushes Δ(t P) of a node along its kept arcs, except those of ``edge``; returns 0.

    Above ``cap`` kept arcs, propagation is deferred: returns the first-order estimate of its effect on D instead.
    """
    t_old = current_scales(node, layers, state)[1]
    t_new = scales(layers.norm, _trial_degree(node, state, trial))[1]
    old = row_of(state.sent, layer, node, layers)
    new = trial_sent(layer, node, previous_slot(layer, node, layers, trial), layers, state, trial)
    if lists.num_kept[node] > layers.cap:
        gradient = row_of(state.gradient, layer, node, layers)
        estimate = 0.0
        for c in range(gradient.size):
            estimate += gradient[c] * (t_new * new[c] - t_old * old[c])
        return estimate
    difference = trial.scratch[: old.size]
    for c in range(difference.size):
        difference[c] = t_new * new[c] - t_old * old[c]
    start = lists.start[node]
    first_arc, second_arc = lists.position[2 * edge], lists.position[2 * edge + 1]
    for position in range(start, start + lists.num_kept[node]):
        if position in (first_arc, second_arc):
            continue
        weight = lists.weight[position]
        into = row_of(trial.out, layer, slot_of(layer, lists.target[position], layers, trial), layers)
        for c in range(into.size):
            into[c] += weight * difference[c]
    return 0.0


@inlined
def _push_arc(layer: int, arc: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """Adds what the tried arc itself carries: the new message if it is added, the old one, negated, if removed."""
    source, target = lists.ends[arc], lists.ends[arc ^ 1]
    if sign > 0:
        degree = _trial_degree(source, state, trial)
        sent = trial_sent(layer, source, previous_slot(layer, source, layers, trial), layers, state, trial)
    else:
        degree = state.degree[source]
        sent = row_of(state.sent, layer, source, layers)
    factor = sign * lists.weight[lists.position[arc]] * scales(layers.norm, degree)[1]
    into = row_of(trial.out, layer, slot_of(layer, target, layers, trial), layers)
    for c in range(into.size):
        into[c] += factor * sent[c]


@inlined
def _finish_output(layer: int, node: int, slot: int, layers: Layers, state: State, trial: Trial) -> None:
    """Turns ΔU, the difference of the incoming sum, into the output, in place."""
    out = row_of(trial.out, layer, slot, layers)
    old = row_of(state.out, layer, node, layers)
    s, t = current_scales(node, layers, state)
    sent_slot = previous_slot(layer, node, layers, trial)
    is_end = node == trial.ends[0] or node == trial.ends[1]
    if sent_slot < 0 and not is_end:
        for c in range(out.size):
            out[c] = old[c] + s * out[c]
        return
    sent = row_of(state.sent, layer, node, layers)
    sent_new = trial_sent(layer, node, sent_slot, layers, state, trial)
    self_weight = layers.self_weight[layer, node]
    if is_end:  # s changes too: out − R − b is rescaled
        s_new, t_new = scales(layers.norm, _trial_degree(node, state, trial))
        ratio = s_new / s if s > 0 else 0.0
        factor = self_weight * s_new
        bias = layers.bias[layer]
        root_old = row_of(state.root_term, layer, node, layers) if state.root_term.size > 0 else bias[:0]
        for c in range(out.size):
            fixed = bias[c] + (root_old[c] if root_old.size > 0 else 0.0)
            out[c] = fixed + ratio * (old[c] - fixed) + s_new * out[c] + factor * (t_new * sent_new[c] - t * sent[c])
    else:
        for c in range(out.size):
            out[c] = old[c] + s * (out[c] + self_weight * t * (sent_new[c] - sent[c]))
    if state.root_term.size > 0 and sent_slot >= 0:
        root = row_of(state.root_term, layer, node, layers)
        root_new = row_of(trial.root_term, layer, sent_slot, layers)
        for c in range(out.size):
            out[c] += root_new[c] - root[c]


@inlined
def transform(layer: int, node: int, weight: np.ndarray, layers: Layers, hidden: np.ndarray, into: np.ndarray) -> None:
    """ReLU(hidden)·W, written to the row of a node or slot in ``into``.

    Four partial sums keep the processor busy. Letting the compiler reorder the sum would be as fast, but it may choose
    another order wherever this is inlined, and a resumed search must reproduce every bit.
    """
    row = row_of(into, layer, node, layers)
    for c in range(row.size):
        start = layers.weight_at[layer] + c * hidden.size
        factors = weight[start : start + hidden.size]
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for k in range(hidden.size // 4):
            h = 4 * k
            one += max(hidden[h], 0.0) * factors[h]
            two += max(hidden[h + 1], 0.0) * factors[h + 1]
            three += max(hidden[h + 2], 0.0) * factors[h + 2]
            four += max(hidden[h + 3], 0.0) * factors[h + 3]
        for h in range(hidden.size // 4 * 4, hidden.size):
            one += max(hidden[h], 0.0) * factors[h]
        row[c] = (one + two) + (three + four)


@inlined
def begin_trial(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """Discards the last trial; sets the ends of the new one and their degrees."""
    for layer in range(layers.width.size):
        trial.first[layer] += trial.size[layer]
        trial.size[layer] = 0
    for side in range(2):
        arc = 2 * edge + side
        trial.ends[side] = -1
        if lists.position[arc] >= 0:
            trial.ends[side] = lists.ends[arc ^ 1]
            trial.degree[side] = state.degree[lists.ends[arc ^ 1]] + sign * lists.weight[lists.position[arc]]


@kernel
def change(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """Tries one edge, added (sign 1) or removed (−1): the change of D, summed over the networks.

    The changed rows stay in ``trial``, for :func:`apply`.
    """
    begin_trial(edge, sign, lists, layers, state, trial)
    delta = 0.0
    for layer in range(layers.width.size):
        network, number = layer // layers.depth, layer % layers.depth
        if number > 0:
            for k in range(trial.size[layer - 1]):
                node = trial.nodes[layer - 1, k]
                slot_of(layer, node, layers, trial)
                delta += _push_difference(layer, node, edge, lists, layers, state, trial)
        elif layers.norm == SYMMETRIC:  # the degree of an end scales what it sends
            for side in range(2):
                if trial.ends[side] >= 0:
                    delta += _push_difference(layer, trial.ends[side], edge, lists, layers, state, trial)
        for side in range(2):
            if trial.ends[side] >= 0:
                _push_arc(layer, 2 * edge + side, sign, lists, layers, state, trial)
        is_last = number + 1 == layers.depth
        for k in range(trial.size[layer]):  # all fetches from memory are in this short loop, so that they overlap
            node = trial.nodes[layer, k]
            _finish_output(layer, node, k, layers, state, trial)
            if is_last:
                trial.loss[network, k] = expected_logit(network, node, row_of(trial.out, layer, k, layers), layers)
                delta -= state.loss[network, node]
        for k in range(trial.size[layer]):
            out = row_of(trial.out, layer, k, layers)
            if is_last:
                expected = trial.loss[network, k]
                trial.loss[network, k] = node_loss(network, trial.nodes[layer, k], expected, out, layers)
                delta += trial.loss[network, k]
            else:
                hidden = normalised(layer, out, layers, trial)
                transform(layer + 1, k, layers.weight, layers, hidden, trial.sent)
                if state.root_term.size > 0:
                    transform(layer + 1, k, layers.root, layers, hidden, trial.root_term)
    return delta


@kernel
def apply(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Makes the last trial permanent.

    ``drift`` of each touched node grows by how far its answer moves, ½ Σ_c |Δ softmax|; that of the ends also by the
    relative change of d.
    """
    for layer in range(layers.width.size):
        network, is_last = layer // layers.depth, (layer + 1) % layers.depth == 0
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            if is_last:
                answer = answer_of(trial.out, layer, k, layers)
                drift[node] += replace_probabilities(answer, layers, state.probability[network, node], trial)
                state.loss[network, node] = trial.loss[network, k]
            else:
                copy_row(row_of(trial.sent, layer + 1, k, layers), row_of(state.sent, layer + 1, node, layers))
                if state.root_term.size > 0:
                    copy_row(
                        row_of(trial.root_term, layer + 1, k, layers), row_of(state.root_term, layer + 1, node, layers)
                    )
            copy_row(row_of(trial.out, layer, k, layers), row_of(state.out, layer, node, layers))
    for side in range(2):
        target, arc = trial.ends[side], 2 * edge + side
        if target >= 0:
            weight = lists.weight[lists.position[arc]]
            state.degree[target] = trial.degree[side]
            state.scale[target] = scales(layers.norm, trial.degree[side])[0]
            drift[target] += weight / state.degree[target] if state.degree[target] > 0 else 1.0
            move_arc(arc, sign, lists)


@inlined
def copy_row(row: np.ndarray, into: np.ndarray) -> None:
    for c in range(into.size):
        into[c] = row[c]


@inlined
def move_arc(arc: int, sign: float, lists: Lists) -> None:
    """Moves an arc into (sign 1) or out of (−1) the kept arcs of its source, by a swap at their border."""
    source = lists.ends[arc]
    if sign < 0:
        lists.num_kept[source] -= 1
    here, border = lists.position[arc], lists.start[source] + lists.num_kept[source]
    lists.position[lists.arc[border]], lists.position[arc] = here, border
    lists.arc[here], lists.arc[border] = lists.arc[border], arc
    lists.target[here], lists.target[border] = lists.target[border], lists.target[here]
    lists.weight[here], lists.weight[border] = lists.weight[border], lists.weight[here]
    if sign > 0:
        lists.num_kept[source] += 1
