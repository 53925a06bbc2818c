"""The refresh: a full forward and backward pass on the kept edges, which propagates all that trials deferred.

The forward pass recomputes every output from the features on. The backward pass recomputes the gradients by which
trials estimate deferred propagation (notation of :mod:`gst.methods.greedy.kernels`, G = ∂D/∂out of a layer):

    ∂D/∂(t_j P_j) = Σ_i w_ij s_i G_i
    G of the layer before = [W (t_j ∂D/∂(t_j P_j) + s_j t_j q_j G_j) + W_root G_j], back through the activation

It needs them only at nodes of more than ``cap`` arcs, and leaves the others out where nothing else depends on them.
"""

import numpy as np

from gst.methods.greedy.answers import expected_logit, loss_gradient, node_loss, replace_probabilities
from gst.methods.greedy.arrays import Layers, Lists, State, Trial, inlined, kernel
from gst.methods.greedy.kernels import copy_row, current_scales, row_of, transform
from gst.methods.greedy.norms import norm_backward, normalised


@kernel
def refresh(lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """Recomputes ``state`` on the kept edges; ``drift`` of a node grows by how far its answer moves."""
    for layer in range(layers.width.size):
        _forward(layer, lists, layers, state, trial, drift)
    state.refreshed[0] = True
    for layer in range(layers.width.size - 1, -1, -1):
        _backward(layer, lists, layers, state, trial)


@kernel
def _forward(layer: int, lists: Lists, layers: Layers, state: State, trial: Trial, drift: np.ndarray) -> None:
    """One layer forward. Rows of ``trial.out``, here by node, hold first the sums U, then the outputs."""
    nodes, network = lists.num_kept.size, layer // layers.depth
    start = layers.row[layer]
    trial.out[start : start + nodes * layers.width[layer]] = 0.0
    for node in range(nodes):
        t = current_scales(node, layers, state)[1]
        sent = row_of(state.sent, layer, node, layers)
        for position in range(lists.start[node], lists.start[node] + lists.num_kept[node]):
            into = row_of(trial.out, layer, lists.target[position], layers)
            weight = t * lists.weight[position]
            for c in range(into.size):
                into[c] += weight * sent[c]
    for node in range(nodes):
        out, bias = row_of(trial.out, layer, node, layers), layers.bias[layer]
        s, t = current_scales(node, layers, state)
        self_weight = layers.self_weight[layer, node] * t
        sent = row_of(state.sent, layer, node, layers)
        for c in range(out.size):
            out[c] = s * (out[c] + self_weight * sent[c]) + bias[c]
        if state.root_term.size > 0:
            root = row_of(state.root_term, layer, node, layers)
            for c in range(out.size):
                out[c] += root[c]
        old = row_of(state.out, layer, node, layers)
        same = True
        for c in range(out.size):
            same &= out[c] == old[c]
        if same and state.refreshed[0]:  # P, R and the loss follow from the output and are the same as well
            continue
        if (layer + 1) % layers.depth:
            hidden = normalised(layer, out, layers, trial)
            transform(layer + 1, node, layers.weight, layers, hidden, state.sent)
            if state.root_term.size > 0:
                transform(layer + 1, node, layers.root, layers, hidden, state.root_term)
        else:
            expected = expected_logit(network, node, out, layers)
            state.loss[network, node] = node_loss(network, node, expected, out, layers)
            drift[node] += replace_probabilities(out, layers, state.probability[network, node], trial)
        copy_row(out, old)


@kernel
def _backward(layer: int, lists: Lists, layers: Layers, state: State, trial: Trial) -> None:
    """The gradients ∂D/∂(t P) of a layer and G of the layer before; G is in the rows of ``trial.out``, by node."""
    nodes, network = lists.num_kept.size, layer // layers.depth
    if (layer + 1) % layers.depth == 0:
        for node in range(nodes):
            loss_gradient(network, node, layers, state, row_of(trial.out, layer, node, layers))
    is_first = layers.inputs[layer] == 0
    is_second = not is_first and layers.inputs[layer - 1] == 0
    receiver_mark = _mark_receivers(layer - 1, lists, layers, trial) if is_second else -1
    for node in range(nodes):
        is_needed_before = not is_first and (not is_second or trial.mark[node, layer - 1] == receiver_mark)
        if not is_needed_before and not _may_defer(node, lists, layers):
            continue
        gradient = row_of(state.gradient, layer, node, layers)
        for c in range(gradient.size):
            gradient[c] = 0.0
        for position in range(lists.start[node], lists.start[node] + lists.num_kept[node]):
            target = lists.target[position]
            out_gradient = row_of(trial.out, layer, target, layers)
            weight = lists.weight[position]
            weight *= state.scale[target]
            for c in range(gradient.size):
                gradient[c] += weight * out_gradient[c]
        if is_first:
            continue
        s, t = current_scales(node, layers, state)
        self_weight = s * t * layers.self_weight[layer, node]
        out_gradient = row_of(trial.out, layer, node, layers)
        hidden = row_of(state.out, layer - 1, node, layers)
        previous = row_of(trial.out, layer - 1, node, layers)
        for h in range(previous.size):
            previous[h] = 0.0
        for c in range(out_gradient.size):
            start = layers.weight_at[layer] + c * previous.size
            sent_gradient = t * gradient[c] + self_weight * out_gradient[c]
            weights = layers.weight[start : start + previous.size]
            for h in range(previous.size):
                previous[h] += weights[h] * sent_gradient
            if state.root_term.size > 0:
                roots = layers.root[start : start + previous.size]
                for h in range(previous.size):
                    previous[h] += roots[h] * out_gradient[c]
        if layers.norms.size > 0:
            norm_backward(layer - 1, hidden, previous, layers)
        else:
            for h in range(previous.size):
                previous[h] = previous[h] if hidden[h] > 0 else 0.0


@inlined
def _may_defer(node: int, lists: Lists, layers: Layers) -> bool:
    """Whether a node has more than ``cap`` arcs, kept or not: only such nodes need gradients ∂D/∂(t P)."""
    return lists.start[node + 1] - lists.start[node] > layers.cap


@inlined
def _mark_receivers(layer: int, lists: Lists, layers: Layers, trial: Trial) -> int:
    """Marks, in a first layer, the receivers of nodes that may defer, the only nodes whose G is needed.

    Returns the mark, which no other trial or refresh uses.
    """
    mark = trial.first[layer] + trial.size[layer]
    trial.size[layer] += 1  # the next trial starts above it
    for node in range(lists.num_kept.size):
        if _may_defer(node, lists, layers):
            for position in range(lists.start[node], lists.start[node] + lists.num_kept[node]):
                trial.mark[lists.target[position], layer] = mark
    return mark
