"""Trials of one edge in recognised models, the counterpart of :mod:`gst.methods.greedy.kernels`.

The touched nodes of level 1 are the ends of the edge, and their receivers if degrees scale what a node sends; each
further level adds the receivers of all touched nodes. Steps run level by level: local ones at every touched node, a sum
by the differences of what its touched neighbours send, attention anew from all incoming arcs. Nothing is estimated or
deferred: every trial is exact.
"""

import math

import numpy as np

from gst.methods.greedy.answers import expected_logit, node_loss, replace_probabilities
from gst.methods.greedy.arrays import Lists, inlined, kernel, macro
from gst.methods.greedy.kernels import copy_row, move_arc
from gst.methods.greedy.tape_layout import (
    ACTIVATE,
    ADD,
    AFFINE,
    ATTEND,
    DIAGONAL,
    FIRST,
    HEADS,
    INTO,
    KIND,
    LAYER_NORM,
    LEVEL,
    LINEAR,
    LOG_SOFTMAX,
    MAXIMUM,
    MULTIPLY,
    NAME,
    PARAMETERS,
    SCALE,
    SECOND,
    SUM,
    THIRD,
    UNIT,
    TapeLayers,
    TapeState,
    TapeTrial,
)

MEAN, SYMMETRIC = 1, 2
RELU, LEAKY, ELU, TANH, SIGMOID, GELU, SILU = 0, 1, 2, 3, 4, 5, 6


@macro
def _row(array: np.ndarray, network: int, index: int, register: int, layers: TapeLayers) -> np.ndarray:
    start = (network * layers.nodes + index) * layers.row + layers.at[register]
    return array[start : start + layers.width[register]]


@macro
def _read(
    register: int, network: int, node: int, slot: int, layers: TapeLayers, state: TapeState, trial: TapeTrial
) -> np.ndarray:
    """A register of a node in the trial; ``slot`` −1: the node is not touched."""
    changed = 0 <= slot < trial.touched[layers.level[register]]
    return _row(trial.rows if changed else state.rows, network, slot if changed else node, register, layers)


@inlined
def _slot(node: int, trial: TapeTrial) -> int:
    return max(trial.mark[node] - trial.first[0], -1)


@inlined
def _degree(node: int, state: TapeState, trial: TapeTrial) -> float:
    if node == trial.ends[0]:
        return trial.degree[0]
    return trial.degree[1] if node == trial.ends[1] else state.degree[node]


@inlined
def _inverse(norm: int, degree: float) -> float:
    """s of a node, and t if the norm is symmetric."""
    if degree <= 0.0:
        return 0.0
    return 1.0 / np.sqrt(degree) if norm == SYMMETRIC else 1.0 / degree


@inlined
def _touch(node: int, count: int, layers: TapeLayers, trial: TapeTrial) -> int:
    """Gives a node a slot, unless it has one; returns the number of slots."""
    if trial.mark[node] >= trial.first[0]:
        return count
    trial.mark[node] = trial.first[0] + count
    trial.nodes[layers.levels, count] = node
    return count + 1


@inlined
def _touch_receivers(begin: int, end: int, count: int, lists: Lists, layers: TapeLayers, trial: TapeTrial) -> int:
    for slot in range(begin, end):
        node = trial.nodes[layers.levels, slot]
        for position in range(lists.start[node], lists.start[node] + lists.num_kept[node]):
            count = _touch(lists.target[position], count, layers, trial)
    return count


@inlined
def _begin(edge: int, sign: float, lists: Lists, layers: TapeLayers, state: TapeState, trial: TapeTrial) -> None:
    """Discards the last trial; finds the ends of the new one and all nodes that it touches."""
    networks = layers.wanted.shape[0]
    trial.first[0] += trial.size[layers.levels]
    count = 0
    for side in range(2):
        arc = 2 * edge + side
        trial.ends[side] = -1
        if lists.position[arc] >= 0:
            trial.ends[side] = lists.ends[arc ^ 1]
            trial.degree[side] = state.degree[lists.ends[arc ^ 1]] + sign * lists.weight[lists.position[arc]]
            count = _touch(lists.ends[arc ^ 1], count, layers, trial)
    done = 0
    for level in range(1, layers.levels + 1):
        if level > 1 or layers.symmetric:
            end = count
            count = _touch_receivers(done, end, count, lists, layers, trial)
            done = end
        trial.touched[level] = count
        trial.size[level - 1] = count * networks
    trial.size[layers.levels] = count


@inlined
def _send(
    step: np.ndarray,
    network: int,
    node: int,
    edge: int,
    lists: Lists,
    layers: TapeLayers,
    state: TapeState,
    trial: TapeTrial,
) -> None:
    """Adds the change of what a node sends to the sums of its receivers, itself included."""
    symmetric, diagonal = step[NAME] == SYMMETRIC, step[DIAGONAL]
    own = layers.itself[diagonal, node]
    t_old, t_new = 1.0, 1.0
    if symmetric:
        t_old = _inverse(SYMMETRIC, state.degree[node] + own)
        t_new = _inverse(SYMMETRIC, _degree(node, state, trial) + own)
    slot = _slot(node, trial)
    old = _row(state.rows, network, node, step[FIRST], layers)
    new = _read(step[FIRST], network, node, slot, layers, state, trial)
    difference = trial.scratch[: old.size]
    for c in range(difference.size):
        difference[c] = t_new * new[c] - t_old * old[c]
    if own != 0.0:
        into = _row(trial.rows, network, slot, step[INTO], layers)
        for c in range(into.size):
            into[c] += own * difference[c]
    first_arc, second_arc = lists.position[2 * edge], lists.position[2 * edge + 1]
    for position in range(lists.start[node], lists.start[node] + lists.num_kept[node]):
        if position in (first_arc, second_arc):
            continue
        weight = lists.weight[position]
        into = _row(trial.rows, network, _slot(lists.target[position], trial), step[INTO], layers)
        for c in range(into.size):
            into[c] += weight * difference[c]


@inlined
def _sum(
    step: np.ndarray,
    network: int,
    edge: int,
    sign: float,
    lists: Lists,
    layers: TapeLayers,
    state: TapeState,
    trial: TapeTrial,
) -> None:
    for slot in range(trial.touched[step[LEVEL]]):
        node = trial.nodes[layers.levels, slot]
        copy_row(
            _row(state.rows, network, node, step[INTO], layers), _row(trial.rows, network, slot, step[INTO], layers)
        )
    changed = trial.touched[layers.level[step[FIRST]]]
    for slot in range(changed):
        _send(step, network, trial.nodes[layers.levels, slot], edge, lists, layers, state, trial)
    for side in range(2):
        target = trial.ends[side]
        if target < 0:
            continue
        if step[NAME] == SYMMETRIC and changed <= _slot(target, trial):
            _send(step, network, target, edge, lists, layers, state, trial)
        arc = 2 * edge + side
        source = lists.ends[arc]
        degree = state.degree[source]
        sent = _row(state.rows, network, source, step[FIRST], layers)
        if sign > 0:
            degree = _degree(source, state, trial)
            sent = _read(step[FIRST], network, source, _slot(source, trial), layers, state, trial)
        factor = sign * lists.weight[lists.position[arc]]
        if step[NAME] == SYMMETRIC:
            factor *= _inverse(SYMMETRIC, degree + layers.itself[step[DIAGONAL], source])
        into = _row(trial.rows, network, _slot(target, trial), step[INTO], layers)
        for c in range(into.size):
            into[c] += factor * sent[c]


@inlined
def _score(
    step: np.ndarray, numbers: np.ndarray, head: int, query: np.ndarray, key: np.ndarray, vector: np.ndarray
) -> float:
    """e_ij of one head."""
    if step[NAME] == 0:
        score = query[head] + key[head]
        return score if score > 0 else numbers[0] * score
    each = query.size // step[HEADS]
    total = 0.0
    for c in range(head * each, (head + 1) * each):
        if step[NAME] == 2:
            total += query[c] * key[c]
        else:
            inner = query[c] + key[c]
            total += vector[c] * (inner if inner > 0 else numbers[0] * inner)
    return total * numbers[1] if step[NAME] == 2 else total


@inlined
def _hear(
    step: np.ndarray,
    numbers: np.ndarray,
    weight: float,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    vector: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """Adds one neighbour; ``sums`` holds each head's largest logit so far and the total weight in units of its exp."""
    heads = step[HEADS]
    each = out.size // heads
    for head in range(heads):
        score, top = _score(step, numbers, head, query, key, vector), sums[head]
        share, shrink = weight, 1.0
        if sums[heads + head] == 0.0 or score > top:
            shrink = np.exp(top - score) if sums[heads + head] > 0.0 else 0.0
            sums[head] = score
        else:
            share = weight * np.exp(score - top)
        sums[heads + head] = shrink * sums[heads + head] + share
        for c in range(head * each, (head + 1) * each):
            out[c] = shrink * out[c] + share * value[c]


@inlined
def _attend(
    step: np.ndarray,
    numbers: np.ndarray,
    network: int,
    slot: int,
    edge: int,
    sign: float,
    layers: TapeLayers,
    state: TapeState,
    trial: TapeTrial,
) -> None:
    """The attention of one touched node, from all its incoming arcs."""
    node, heads, incoming = trial.nodes[layers.levels, slot], step[HEADS], layers.incoming
    query = _read(step[FIRST], network, node, slot, layers, state, trial)
    out = _row(trial.rows, network, slot, step[INTO], layers)
    sums = trial.scratch[: 2 * heads]
    sums[:] = 0.0
    out[:] = 0.0
    vector = layers.parameters[step[PARAMETERS] : step[PARAMETERS] + query.size]
    own = layers.itself[step[DIAGONAL], node]
    if own > 0.0:
        key = _read(step[SECOND], network, node, slot, layers, state, trial)
        value = _read(step[THIRD], network, node, slot, layers, state, trial)
        _hear(step, numbers, own, query, key, value, vector, sums, out)
    is_end = node == trial.ends[0] or node == trial.ends[1]
    start, num_kept = incoming.start[node], incoming.num_kept[node]
    for k in range(num_kept + 1 if is_end and sign > 0 else num_kept):
        position = start + k if k < num_kept else incoming.position[2 * edge + (0 if node == trial.ends[0] else 1)]
        if sign > 0 or incoming.arc[position] >> 1 != edge:
            source = incoming.target[position]
            other = _slot(source, trial)
            key = _read(step[SECOND], network, source, other, layers, state, trial)
            value = _read(step[THIRD], network, source, other, layers, state, trial)
            _hear(step, numbers, incoming.weight[position], query, key, value, vector, sums, out)
    each = out.size // heads
    for head in range(heads):
        total = sums[heads + head]
        for c in range(head * each, (head + 1) * each):
            out[c] = out[c] / total if total > 0.0 else 0.0


@inlined
def _activated(name: int, x: float, number: float) -> float:
    if name == RELU:
        return max(x, 0.0)
    if name == LEAKY:
        return x if x > 0 else number * x
    if name == ELU:
        return x if x > 0 else number * np.expm1(x)
    if name == TANH:
        return np.tanh(x)
    if name == SIGMOID:
        return 1.0 / (1.0 + np.exp(-x))
    if name == GELU:
        return 0.5 * x * (1.0 + math.erf(x * 0.7071067811865476))
    if name == SILU:
        return x / (1.0 + np.exp(-x))
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@inlined
def _multiply(row: np.ndarray, weight: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    """row · W + b, with four partial sums, in a fixed order."""
    for c in range(out.size):
        factors = weight[c * row.size : (c + 1) * row.size]
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for k in range(row.size // 4):
            h = 4 * k
            one += row[h] * factors[h]
            two += row[h + 1] * factors[h + 1]
            three += row[h + 2] * factors[h + 2]
            four += row[h + 3] * factors[h + 3]
        for h in range(row.size // 4 * 4, row.size):
            one += row[h] * factors[h]
        out[c] = (one + two) + (three + four) + bias[c]


@inlined
def _of_one(
    kind: int, step: np.ndarray, numbers: np.ndarray, row: np.ndarray, out: np.ndarray, parameters: np.ndarray
) -> None:
    """A local step that reads one register."""
    width = out.size
    if kind == LINEAR:
        _multiply(row, parameters, parameters[width * row.size :], out)
    elif kind == AFFINE:
        for c in range(width):
            out[c] = row[c] * parameters[c] + parameters[width + c]
    elif kind == ACTIVATE:
        for c in range(width):
            out[c] = _activated(step[NAME], row[c], numbers[0])
    elif kind == LAYER_NORM:
        mean, square = 0.0, 0.0
        for c in range(width):
            mean += row[c] / width
        for c in range(width):
            square += (row[c] - mean) ** 2 / width
        scale = 1.0 / np.sqrt(square + numbers[0])
        for c in range(width):
            out[c] = (row[c] - mean) * scale * parameters[c] + parameters[width + c]
    elif kind == UNIT:
        square = 0.0
        for c in range(width):
            square += row[c] ** 2
        scale = 1.0 / max(np.sqrt(square), 1e-12)
        for c in range(width):
            out[c] = row[c] * scale
    elif kind == LOG_SOFTMAX:
        top, total = row[0], 0.0
        for c in range(1, width):
            top = max(top, row[c])
        for c in range(width):
            total += np.exp(row[c] - top)
        for c in range(width):
            out[c] = row[c] - top - np.log(total)
    else:  # a slice
        for c in range(width):
            out[c] = row[int(numbers[0]) + c]


@inlined
def _of_two(kind: int, numbers: np.ndarray, row: np.ndarray, other: np.ndarray, out: np.ndarray) -> None:
    """A local step that reads two registers."""
    if kind == ADD:
        for c in range(out.size):
            out[c] = numbers[0] * row[c] + numbers[1] * other[c]
    elif kind == MULTIPLY:
        for c in range(out.size):
            out[c] = row[c] * other[c]
    elif kind == MAXIMUM:
        for c in range(out.size):
            out[c] = max(row[c], other[c])
    else:
        copy_row(row, out[: row.size])
        copy_row(other, out[row.size :])


@inlined
def _run(
    number: int,
    network: int,
    edge: int,
    sign: float,
    lists: Lists,
    layers: TapeLayers,
    state: TapeState,
    trial: TapeTrial,
) -> None:
    """One step of one network, at all touched nodes."""
    step, numbers = layers.steps[number], layers.numbers[number]
    kind = step[KIND]
    if kind == SUM:
        _sum(step, network, edge, sign, lists, layers, state, trial)
        return
    for slot in range(trial.touched[step[LEVEL]]):
        if kind == ATTEND:
            _attend(step, numbers, network, slot, edge, sign, layers, state, trial)
            continue
        node = trial.nodes[layers.levels, slot]
        row = _read(step[FIRST], network, node, slot, layers, state, trial)
        out = _row(trial.rows, network, slot, step[INTO], layers)
        if kind == SCALE:
            scale = _inverse(step[NAME], _degree(node, state, trial) + layers.itself[step[DIAGONAL], node])
            for c in range(out.size):
                out[c] = scale * row[c]
        elif step[SECOND] >= 0:
            other = _read(step[SECOND], network, node, slot, layers, state, trial)
            _of_two(kind, numbers, row, other, out)
        else:
            _of_one(kind, step, numbers, row, out, layers.parameters[step[PARAMETERS] :])


@kernel
def change_tape(edge: int, sign: float, lists: Lists, layers: TapeLayers, state: TapeState, trial: TapeTrial) -> float:
    """Tries one edge; see :func:`~gst.methods.greedy.kernels.change`."""
    _begin(edge, sign, lists, layers, state, trial)
    delta = 0.0
    for network in range(layers.wanted.shape[0]):
        for number in range(layers.steps.shape[0]):
            _run(number, network, edge, sign, lists, layers, state, trial)
        for slot in range(trial.touched[layers.levels]):
            node, answer = trial.nodes[layers.levels, slot], _row(trial.rows, network, slot, layers.output, layers)
            expected = expected_logit(network, node, answer, layers)  # type: ignore[arg-type]
            trial.loss[network, slot] = node_loss(network, node, expected, answer, layers)  # type: ignore[arg-type]
            delta += trial.loss[network, slot] - state.loss[network, node]
    return delta


@kernel
def apply_tape(
    edge: int, sign: float, lists: Lists, layers: TapeLayers, state: TapeState, trial: TapeTrial, drift: np.ndarray
) -> None:
    """Makes the last trial permanent; see :func:`~gst.methods.greedy.kernels.apply`."""
    for network in range(layers.wanted.shape[0]):
        level = 1
        for slot in range(trial.touched[layers.levels]):
            while slot >= trial.touched[level]:
                level += 1
            node = trial.nodes[layers.levels, slot]
            new, old = (network * layers.nodes + slot) * layers.row, (network * layers.nodes + node) * layers.row
            for c in range(layers.begin[level], layers.row):
                state.rows[old + c] = trial.rows[new + c]
            answer = _row(trial.rows, network, slot, layers.output, layers)
            moved = replace_probabilities(answer, layers, state.probability[network, node], trial)  # type: ignore[arg-type]
            drift[node] += moved
            state.loss[network, node] = trial.loss[network, slot]
    for side in range(2):
        target, arc = trial.ends[side], 2 * edge + side
        if target >= 0:
            weight = lists.weight[lists.position[arc]]
            state.degree[target] = trial.degree[side]
            drift[target] += weight / state.degree[target] if state.degree[target] > 0 else 1.0
            move_arc(arc, sign, lists)
            move_arc(arc, sign, layers.incoming)


@kernel
def refresh_tape(lists: Lists, layers: TapeLayers, state: TapeState, trial: TapeTrial, drift: np.ndarray) -> None:
    """Does nothing: no propagation is deferred."""
