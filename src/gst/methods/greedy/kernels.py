"""What one edge more or less does to the answers of networks, recomputed only where it does something.

A layer of linear aggregation computes, for every node i,

    out_i = s_i (U_i + q_i t_i P_i) + R_i + b,    U_i = Σ_j w_ij t_j P_j,    P = H·W, R = H·W_root

where s and t depend on d_i = base_i + Σ_j w_ij, the weight that flows into i:

    sum:        s = t = 1                       (GIN)
    mean:       s = 1/d, 0 where d = 0; t = 1   (GraphSAGE, Cluster-GCN)
    symmetric:  s = t = 1/√d                    (GCN)

and H is ReLU(out), or ReLU(LayerNorm(out)), of the layer before. W_root is that of a skip connection, or of the layer.

The outputs of all layers are kept. What an edge changes is pushed, as a difference, from the nodes that send something
else to those that receive it, so a receiver of high degree costs no more than any other. Time goes into fetching rows
from memory: a receiver's own output is all that is fetched, and what is computed lies close together.

A sender of more than ``cap`` kept arcs does not push. What its news would do to the answers is estimated to first
order, ⟨∂D/∂(t_j P_j), Δ(t_j P_j)⟩, and :func:`~gst.methods.greedy.refresh.refresh` spreads the news of all such nodes at once,
exactly, and finds the slopes anew. So the cost of a trial is bounded, whatever the degrees.
"""

import numpy as np

from gst.methods.greedy.answers import hoped, loss_of, moved
from gst.methods.greedy.arrays import MEAN, SUM, SYMMETRIC, Layers, Lists, State, Trial, kernel, lean, macro
from gst.methods.greedy.norms import read_of


@lean
def scales(norm: int, flow: float) -> tuple[float, float]:
    """s and t; a mean over nothing is zero."""
    if norm == SUM:
        return 1.0, 1.0
    if norm == MEAN:
        return (1.0 / flow if flow > 0 else 0.0), 1.0
    scale = 1.0 / np.sqrt(flow)
    return scale, scale


@lean
def scales_of(node: int, layers: Layers, state: State) -> tuple[float, float]:
    """s and t of a node as it is."""
    scale = state.scale[node]
    return scale, scale if layers.norm == SYMMETRIC else 1.0


@macro
def row_of(array: np.ndarray, layer: int, node: int, layers: Layers) -> np.ndarray:
    at = layers.row[layer] + node * layers.width[layer]
    return array[at : at + layers.width[layer]]


@macro
def answer_of(array: np.ndarray, layer: int, node: int, layers: Layers) -> np.ndarray:
    """What a row of a last layer has for the C classes or labels."""
    at = layers.row[layer] + node * layers.width[layer]
    return array[at : at + layers.wanted.shape[2]]


@lean
def _flow(node: int, state: State, trial: Trial) -> float:
    """d of a node in the trial."""
    if node == trial.ends[0]:
        return trial.flow[0]
    return trial.flow[1] if node == trial.ends[1] else state.flow[node]


@lean
def slot_of(layer: int, node: int, layers: Layers, trial: Trial) -> int:
    """Where a node that is touched stands; the first time, nothing has come in yet."""
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


@lean
def slot_before(layer: int, node: int, layers: Layers, trial: Trial) -> int:
    """The slot of a node in the layer before, where what it puts into this one is; −1: it is as it was."""
    return max(trial.mark[node, layer - 1] - trial.first[layer - 1], -1) if layers.inputs[layer] > 0 else -1


@macro
def sent_by(layer: int, node: int, slot: int, layers: Layers, state: State, trial: Trial) -> np.ndarray:
    """What a node would send."""
    return row_of(trial.sent if slot >= 0 else state.sent, layer, slot if slot >= 0 else node, layers)


@lean
def _send(layer: int, node: int, edge: int, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """Pushes the difference in what a node sends along its kept arcs, those of ``edge`` excepted.

    Where there are too many, nothing is pushed; gives the change of the divergence D that was not followed up.
    """
    before, after = scales_of(node, layers, state)[1], scales(layers.norm, _flow(node, state, trial))[1]
    slot = slot_before(layer, node, layers, trial)
    old, new = row_of(state.sent, layer, node, layers), sent_by(layer, node, slot, layers, state, trial)
    if lists.kept[node] > layers.cap:
        slope, missed = row_of(state.slope, layer, node, layers), 0.0
        for c in range(slope.size):
            missed += slope[c] * (after * new[c] - before * old[c])
        return missed
    step = trial.step[: old.size]
    for c in range(step.size):
        step[c] = after * new[c] - before * old[c]
    first, out, back = lists.start[node], lists.place[2 * edge], lists.place[2 * edge + 1]
    for at in range(first, first + lists.kept[node]):
        if at in (out, back):
            continue
        weight, into = (
            lists.weight[at],
            row_of(trial.out, layer, slot_of(layer, lists.target[at], layers, trial), layers),
        )
        for c in range(into.size):
            into[c] += weight * step[c]
    return 0.0


@lean
def _switch(layer: int, arc: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """What the arc itself, come or gone, carries."""
    source, target = lists.ends[arc], lists.ends[arc ^ 1]
    if sign > 0:
        flow = _flow(source, state, trial)
        sent = sent_by(layer, source, slot_before(layer, source, layers, trial), layers, state, trial)
    else:
        flow, sent = state.flow[source], row_of(state.sent, layer, source, layers)
    factor = sign * lists.weight[lists.place[arc]] * scales(layers.norm, flow)[1]
    into = row_of(trial.out, layer, slot_of(layer, target, layers, trial), layers)
    for c in range(into.size):
        into[c] += factor * sent[c]


@lean
def _output(layer: int, node: int, slot: int, layers: Layers, state: State, trial: Trial) -> None:
    """Turns what comes in besides, ΔU, into the output."""
    out, old = row_of(trial.out, layer, slot, layers), row_of(state.out, layer, node, layers)
    s, t = scales_of(node, layers, state)
    before = slot_before(layer, node, layers, trial)
    end = node == trial.ends[0] or node == trial.ends[1]
    if before < 0 and not end:
        for c in range(out.size):
            out[c] = old[c] + s * out[c]
        return
    sent, new = row_of(state.sent, layer, node, layers), sent_by(layer, node, before, layers, state, trial)
    own = layers.own[layer, node]
    if end:
        s_new, t_new = scales(layers.norm, _flow(node, state, trial))
        ratio, shift = (s_new / s if s > 0 else 0.0), own * s_new
        bias = layers.bias[layer]
        rest = row_of(state.extra, layer, node, layers) if state.extra.size > 0 else bias[:0]
        for c in range(out.size):
            fixed = bias[c] + (rest[c] if rest.size > 0 else 0.0)
            out[c] = fixed + ratio * (old[c] - fixed) + s_new * out[c] + shift * (t_new * new[c] - t * sent[c])
    else:
        for c in range(out.size):
            out[c] = old[c] + s * (out[c] + own * t * (new[c] - sent[c]))
    if state.extra.size > 0 and before >= 0:
        was, extra = row_of(state.extra, layer, node, layers), row_of(trial.extra, layer, before, layers)
        for c in range(out.size):
            out[c] += extra[c] - was[c]


@lean
def transform(layer: int, node: int, weight: np.ndarray, layers: Layers, hidden: np.ndarray, into: np.ndarray) -> None:
    """ReLU(hidden)·W into the row of a node or slot.

    Four sums at a time keep the processor busy. To let the compiler order sums as it likes would do so too, but it may
    do it otherwise in each place it inlines this to, and a search that goes on must find the same bits.
    """
    row = row_of(into, layer, node, layers)
    for c in range(row.size):
        at = layers.weight_at[layer] + c * hidden.size
        factors = weight[at : at + hidden.size]
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


@lean
def begin(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """Forgets the last trial; the ends of the new one."""
    for layer in range(layers.width.size):
        trial.first[layer] += trial.size[layer]
        trial.size[layer] = 0
    for side in range(2):
        arc = 2 * edge + side
        trial.ends[side] = -1
        if lists.place[arc] >= 0:
            trial.ends[side] = lists.ends[arc ^ 1]
            trial.flow[side] = state.flow[lists.ends[arc ^ 1]] + sign * lists.weight[lists.place[arc]]


@kernel
def change(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """D with this edge added (sign 1) or removed (−1) less D now, sum over networks; details stay in ``trial``."""
    begin(edge, sign, lists, layers, state, trial)
    delta = 0.0
    for layer in range(layers.width.size):
        network, number = layer // layers.depth, layer % layers.depth
        if number > 0:
            for k in range(trial.size[layer - 1]):
                node = trial.nodes[layer - 1, k]
                slot_of(layer, node, layers, trial)
                delta += _send(layer, node, edge, lists, layers, state, trial)
        elif layers.norm == SYMMETRIC:  # its degree scales what an end sends
            for side in range(2):
                if trial.ends[side] >= 0:
                    delta += _send(layer, trial.ends[side], edge, lists, layers, state, trial)
        for side in range(2):
            if trial.ends[side] >= 0:
                _switch(layer, 2 * edge + side, sign, lists, layers, state, trial)
        last = number + 1 == layers.depth
        for k in range(trial.size[layer]):  # all that must be fetched, in a loop so short that fetches overlap
            node = trial.nodes[layer, k]
            _output(layer, node, k, layers, state, trial)
            if last:
                trial.loss[network, k] = hoped(network, node, row_of(trial.out, layer, k, layers), layers)
                delta -= state.loss[network, node]
        for k in range(trial.size[layer]):
            out = row_of(trial.out, layer, k, layers)
            if last:
                trial.loss[network, k] = loss_of(network, trial.nodes[layer, k], trial.loss[network, k], out, layers)
                delta += trial.loss[network, k]
            else:
                read = read_of(layer, out, layers, trial)
                transform(layer + 1, k, layers.weight, layers, read, trial.sent)
                if state.extra.size > 0:
                    transform(layer + 1, k, layers.root, layers, read, trial.extra)
    return delta


@kernel
def apply(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Makes the change that was tried last real.

    ``drift`` grows by how far the answer of each node moves, ½ Σ_c |Δ softmax|.
    """
    for layer in range(layers.width.size):
        network, last = layer // layers.depth, (layer + 1) % layers.depth == 0
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            if last:
                answer = answer_of(trial.out, layer, k, layers)
                drift[node] += moved(answer, layers, state.chance[network, node], trial)
                state.loss[network, node] = trial.loss[network, k]
            else:
                copy(row_of(trial.sent, layer + 1, k, layers), row_of(state.sent, layer + 1, node, layers))
                if state.extra.size > 0:
                    copy(row_of(trial.extra, layer + 1, k, layers), row_of(state.extra, layer + 1, node, layers))
            copy(row_of(trial.out, layer, k, layers), row_of(state.out, layer, node, layers))
    for side in range(2):
        target, arc = trial.ends[side], 2 * edge + side
        if target >= 0:
            weight = lists.weight[lists.place[arc]]
            state.flow[target] = trial.flow[side]
            state.scale[target] = scales(layers.norm, trial.flow[side])[0]
            drift[target] += weight / state.flow[target] if state.flow[target] > 0 else 1.0
            move(arc, sign, lists)


@lean
def copy(row: np.ndarray, into: np.ndarray) -> None:
    for c in range(into.size):
        into[c] = row[c]


@lean
def move(arc: int, sign: float, lists: Lists) -> None:
    """Swaps an arc across the border between the kept arcs of its source and the others."""
    source = lists.ends[arc]
    if sign < 0:
        lists.kept[source] -= 1
    here, border = lists.place[arc], lists.start[source] + lists.kept[source]
    lists.place[lists.arc[border]], lists.place[arc] = here, border
    lists.arc[here], lists.arc[border] = lists.arc[border], arc
    lists.target[here], lists.target[border] = lists.target[border], lists.target[here]
    lists.weight[here], lists.weight[border] = lists.weight[border], lists.weight[here]
    if sign > 0:
        lists.kept[source] += 1
