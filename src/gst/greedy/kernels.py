"""What one edge more or less does to the answers of networks, recomputed only where it does something.

A layer of linear aggregation computes, for every node i,

    out_i = s_i (Σ_j w_ij t_j P_j + q_i t_i P_i) + R_i + b,    P = H·W, R = H·W_root

where s and t depend on d_i = base_i + Σ_j w_ij, the weight that flows into i:

    sum:        s = t = 1                       (GIN)
    mean:       s = 1/d, 0 where d = 0; t = 1   (GraphSAGE, Cluster-GCN)
    symmetric:  s = t = 1/√d                    (GCN)

The sums U_i = Σ_j w_ij t_j P_j of all layers are kept. What an edge changes is pushed, as a difference, from the nodes
that send something else to those that receive it, so a receiver of high degree costs no more than any other.

A sender of more than ``cap`` kept arcs does not push. What its news would do to the answers is estimated to first
order, ⟨∂KL/∂(t_j P_j), Δ(t_j P_j)⟩, and :func:`~gst.greedy.refresh.refresh` spreads the news of all such nodes at once,
exactly, and finds the slopes anew. So the cost of a trial is bounded, whatever the degrees.
"""

import numpy as np

from gst.greedy.arrays import MEAN, SUM, SYMMETRIC, Layers, Lists, State, Trial, kernel, macro


@kernel
def scales(norm: int, flow: float) -> tuple[float, float]:
    """s and t; a mean over nothing is zero."""
    if norm == SUM:
        return 1.0, 1.0
    if norm == MEAN:
        return (1.0 / flow if flow > 0 else 0.0), 1.0
    scale = 1.0 / np.sqrt(flow)
    return scale, scale


@macro
def row_of(array: np.ndarray, layer: int, node: int, layers: Layers) -> np.ndarray:
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
def _changed(layer: int, node: int, layers: Layers, trial: Trial) -> bool:
    """Whether what goes into a layer at a node differs; the features never do."""
    return layers.inputs[layer] > 0 and trial.mark[layer - 1, node] == trial.tick[0]


@macro
def _sent(layer: int, node: int, layers: Layers, state: State, trial: Trial) -> np.ndarray:
    """What a node would send."""
    return row_of(trial.sent if _changed(layer, node, layers, trial) else state.sent, layer, node, layers)


@kernel
def _send(layer: int, node: int, edge: int, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """Pushes the difference in what a node sends along its kept arcs, those of ``edge`` excepted.

    Where there are too many, nothing is pushed; gives the change of KL that was not followed up.
    """
    first = lists.start[node]
    before, after = scales(layers.norm, state.flow[node])[1], scales(layers.norm, trial.flow[node])[1]
    old, new = row_of(state.sent, layer, node, layers), _sent(layer, node, layers, state, trial)
    if lists.kept[node] > layers.cap:
        slope, missed = row_of(state.slope, layer, node, layers), 0.0
        for c in range(slope.size):
            missed += slope[c] * (after * new[c] - before * old[c])
        return missed
    for at in range(first, first + lists.kept[node]):
        arc = lists.arc[at]
        if lists.edge[arc] == edge:
            continue
        weight = lists.weight[arc]
        _touch(layer, lists.target[arc], layers, state, trial)
        into = row_of(trial.total, layer, lists.target[arc], layers)
        for c in range(into.size):
            into[c] += weight * (after * new[c] - before * old[c])
    return 0.0


@kernel
def _switch(layer: int, arc: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """What the arc itself, come or gone, carries."""
    source, target = lists.source[arc], lists.target[arc]
    _touch(layer, target, layers, state, trial)
    if sign > 0:
        flow, sent = trial.flow[source], _sent(layer, source, layers, state, trial)
    else:
        flow, sent = state.flow[source], row_of(state.sent, layer, source, layers)
    factor = sign * lists.weight[arc] * scales(layers.norm, flow)[1]
    into = row_of(trial.total, layer, target, layers)
    for c in range(into.size):
        into[c] += factor * sent[c]


@kernel
def output(
    layer: int, node: int, flow: float, layers: Layers, total: np.ndarray, sent: np.ndarray, out: np.ndarray
) -> None:
    """out_i without R."""
    s, t = scales(layers.norm, flow)
    own, bias = layers.own[layer, node] * t, layers.bias[layer]
    for c in range(total.size):
        out[c] = s * (total[c] + own * sent[c]) + bias[c]


@kernel
def transform(layer: int, node: int, weight: np.ndarray, layers: Layers, hidden: np.ndarray, into: np.ndarray) -> None:
    """ReLU(hidden)·W into the row of a node."""
    row = row_of(into, layer, node, layers)
    for c in range(row.size):
        row[c] = 0.0
    for h in range(layers.inputs[layer]):
        value, at = hidden[h], layers.weight_at[layer] + h * row.size
        if value > 0:
            factors = weight[at : at + row.size]
            for c in range(row.size):
                row[c] += value * factors[c]


@kernel
def answer(wanted: np.ndarray, entropy: float, out: np.ndarray, layers: Layers, chance: np.ndarray) -> float:
    """softmax(out / T) into ``chance``; its KL from what is wanted. Of labels, the sum over their two outcomes."""
    if layers.labels:
        loss = 0.0
        for c in range(chance.size):
            scaled = out[c] / layers.temperature
            small = np.exp(-abs(scaled))
            chance[c] = 1 / (1 + small) if scaled > 0 else small / (1 + small)
            loss += max(scaled, 0.0) - wanted[c] * scaled + np.log1p(small)
        return loss - entropy
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
    return np.log(total) - inner - entropy


@kernel
def change(edge: int, sign: float, lists: Lists, layers: Layers, state: State, trial: Trial) -> float:
    """KL with this edge added (sign 1) or removed (−1) less KL now, sum over networks; details stay in ``trial``."""
    trial.tick[0] += 1
    trial.size[:] = 0
    arcs = lists.edge_arcs[edge]
    for side in range(2):
        arc = arcs[side]
        if arc >= 0:
            trial.flow[lists.target[arc]] = state.flow[lists.target[arc]] + sign * lists.weight[arc]
    delta = 0.0
    for layer in range(layers.width.size):
        network, number = layer // layers.depth, layer % layers.depth
        if number > 0:
            for k in range(trial.size[layer - 1]):
                _touch(layer, trial.nodes[layer - 1, k], layers, state, trial)
                delta += _send(layer, trial.nodes[layer - 1, k], edge, lists, layers, state, trial)
        for side in range(2):
            arc = arcs[side]
            if arc >= 0:
                if number == 0 and layers.norm == SYMMETRIC:  # its degree scales what the target sends
                    delta += _send(layer, lists.target[arc], edge, lists, layers, state, trial)
                _switch(layer, arc, sign, lists, layers, state, trial)
        for k in range(trial.size[layer]):
            node = trial.nodes[layer, k]
            total, sent = row_of(trial.total, layer, node, layers), _sent(layer, node, layers, state, trial)
            output(layer, node, trial.flow[node], layers, total, sent, trial.out)
            if state.extra.size > 0:
                changed = _changed(layer, node, layers, trial)
                extra = row_of(trial.extra if changed else state.extra, layer, node, layers)
                for c in range(extra.size):
                    trial.out[c] += extra[c]
            if number + 1 < layers.depth:
                transform(layer + 1, node, layers.weight, layers, trial.out, trial.sent)
                if state.extra.size > 0:
                    transform(layer + 1, node, layers.root, layers, trial.out, trial.extra)
            else:
                wanted, entropy = layers.wanted[network, node], layers.entropy[network, node]
                loss = answer(wanted, entropy, trial.out, layers, trial.chance[network, node])
                trial.loss[network, node] = loss
                delta += loss - state.loss[network, node]
    for side in range(2):
        arc = arcs[side]
        if arc >= 0:
            trial.flow[lists.target[arc]] = state.flow[lists.target[arc]]
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
            _copy(state.total, trial.total, layer, node, layers)
            if last:
                state.loss[network, node] = trial.loss[network, node]
                drift[node] += settle(state.chance[network, node], trial.chance[network, node])
            else:
                _copy(state.sent, trial.sent, layer + 1, node, layers)
                if state.extra.size > 0:
                    _copy(state.extra, trial.extra, layer + 1, node, layers)
    for side in range(2):
        arc = lists.edge_arcs[edge, side]
        if arc >= 0:
            target = lists.target[arc]
            state.flow[target] += sign * lists.weight[arc]
            trial.flow[target] = state.flow[target]
            drift[target] += lists.weight[arc] / state.flow[target] if state.flow[target] > 0 else 1.0
    _move(edge, sign, lists)


@kernel
def settle(chance: np.ndarray, new: np.ndarray) -> float:
    moved = 0.0
    for c in range(chance.size):
        moved += abs(new[c] - chance[c]) / 2
        chance[c] = new[c]
    return moved


@kernel
def _copy(into: np.ndarray, new: np.ndarray, layer: int, node: int, layers: Layers) -> None:
    to, source = row_of(into, layer, node, layers), row_of(new, layer, node, layers)
    for c in range(to.size):
        to[c] = source[c]


@kernel
def _move(edge: int, sign: float, lists: Lists) -> None:
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
