r"""One pass of a network over a receptive field, in one compiled call.

.. math:: H' = \mathrm{act}\big(\mathrm{norm}(Â H W + H W_{root} + b)\big)

Products are taken in the order with fewer multiplications: where a row reads many nodes, it sums their features first.
"""

import numpy as np

from gst.base.jit import njit
from gst.inference.serving.arrays import ELU, MEAN, RELU, SYMMETRIC, Features, Graph, Network, Rows
from gst.inference.serving.field import receptive_field

_BLAS = 4  # a multiplication in a matrix product costs about a quarter of one in a sum of rows


@njit(nogil=True, cache=True)
def answer(
    nodes: np.ndarray, given: np.ndarray, graph: Graph, count: int, mark: np.ndarray
) -> tuple[np.ndarray, int, int]:
    """[nodes, C] outputs, how many nodes were read and how many arcs; −1 and a position where a node id is wrong.

    Args:
        nodes: ids.
        given: [nodes, F] features of these nodes for this call; no rows: the engine's.
        graph: see :class:`Graph`.
        count: number of nodes.
        mark: scratch space, −1 for every node.
    """
    depth = graph.network.norm.size
    for k in range(nodes.size):
        if nodes[k] < 0 or nodes[k] >= count:
            return np.empty((0, 0), np.float32), -1, k
    position, order, sizes, start, column, weight = receptive_field(nodes, graph.arcs, depth, mark)
    hidden = np.empty((0, 0), np.float32)
    for layer in range(depth):
        read = order[: sizes[depth - layer]]
        rows = start[: sizes[depth - 1 - layer] + 1]
        if layer == 0:
            hidden = _first_layer(graph, read, rows, column, weight, given, position)
        else:
            hidden = _layer(layer, graph, read, rows, column, weight, hidden)
    result = np.empty((nodes.size, hidden.shape[1]), np.float32)
    for k in range(nodes.size):
        result[k] = hidden[position[k]]
    return result, order.size, start[sizes[depth - 1]]


@njit(nogil=True, cache=True)
def _first_layer(
    graph: Graph,
    read: np.ndarray,
    start: np.ndarray,
    column: np.ndarray,
    weight: np.ndarray,
    given: np.ndarray,
    position: np.ndarray,
) -> np.ndarray:
    """Its outputs, from features that are sparse, multiplied in advance, or dense."""
    network, features = graph.network, graph.features
    table = features.products.shape[0] > 0
    if not features.sparse and (given.shape[0] or not table):
        if given.shape[0] or network.root_at[0] >= 0 or not _sums_first(0, network, read.size, start):
            return _layer(0, graph, read, start, column, weight, _dense_rows(features, read, given, position))
        values, own = _values(0, graph, read, start, column, weight)
        sums = np.zeros((start.size - 1, network.width[0]), np.float32)
        _add_sums(sums, start, column, values, own, features.at[read], features.dense, features.more)
        out = np.dot(sums, _matrix(network.weight_at[0], 0, network))
        out += _bias(0, network)
        _finish(out, 0, network)
        return out
    values, own = _values(0, graph, read, start, column, weight)
    out = np.empty((start.size - 1, network.width[1]), np.float32)
    out[:] = _bias(0, network)
    if network.root_at[0] >= 0:
        root = _matrix(network.root_at[0], 0, network)
        out += _products(features, features.roots, read[: out.shape[0]], root, given, position)
    if table and network.heads[0] == 0 and given.shape[0] == 0:  # rows of the table are read where they are
        _add_sums(out, start, column, values, own, read, features.products, features.products[:0])
    else:
        product = _products(
            features, features.products, read, _matrix(network.weight_at[0], 0, network), given, position
        )
        _add_messages(out, 0, network, start, column, values, own, product)
    _finish(out, 0, network)
    return out


@njit(nogil=True, cache=True)
def _layer(
    layer: int,
    graph: Graph,
    read: np.ndarray,
    start: np.ndarray,
    column: np.ndarray,
    weight: np.ndarray,
    hidden: np.ndarray,
) -> np.ndarray:
    """The outputs of a layer from the rows of ``hidden``, one for each node that it reads."""
    network, num_rows = graph.network, start.size - 1
    values, own = _values(layer, graph, read, start, column, weight)
    matrix = _matrix(network.weight_at[layer], layer, network)
    if _sums_first(layer, network, read.size, start):
        sums = np.zeros((num_rows, hidden.shape[1]), np.float32)
        _add_sums(sums, start, column, values, own, np.arange(read.size), hidden, hidden[:0])
        out = np.dot(sums, matrix)
        out += _bias(layer, network)
    else:
        out = np.empty((num_rows, matrix.shape[1]), np.float32)
        out[:] = _bias(layer, network)
        product = np.dot(hidden[: read.size], matrix)
        _add_messages(out, layer, network, start, column, values, own, product)
    if network.root_at[layer] >= 0:
        out += np.dot(hidden[:num_rows], _matrix(network.root_at[layer], layer, network))
    _finish(out, layer, network)
    return out


@njit(nogil=True, cache=True)
def _matrix(start: int, layer: int, network: Network) -> np.ndarray:
    """A weight matrix of a layer."""
    inputs, outputs = network.width[layer], network.width[layer + 1]
    return network.numbers[start : start + inputs * outputs].reshape(inputs, outputs)


@njit(nogil=True, cache=True)
def _bias(layer: int, network: Network) -> np.ndarray:
    return network.numbers[network.bias_at[layer] : network.bias_at[layer] + network.width[layer + 1]]


@njit(nogil=True, cache=True)
def _sums_first(layer: int, network: Network, num_columns: int, start: np.ndarray) -> bool:
    """Whether (Â·H)·W takes less than Â·(H·W)."""
    if network.heads[layer] > 0:
        return False
    inputs, outputs, num_rows = network.width[layer], network.width[layer + 1], start.size - 1
    entries = start[num_rows]
    summed = num_rows * inputs * outputs // _BLAS + entries * inputs
    return summed < num_columns * inputs * outputs // _BLAS + entries * outputs


@njit(nogil=True, cache=True)
def _values(
    layer: int,
    graph: Graph,
    order: np.ndarray,
    start: np.ndarray,
    column: np.ndarray,
    weight: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The entries of Â, and of each row its own."""
    num_rows = start.size - 1
    norm, scale = graph.network.norm[layer], graph.nodes.scale[layer]
    values = np.ones(start[num_rows], np.float32)
    own = np.empty(num_rows, np.float32)
    if weight.size:
        values[:] = weight[: values.size]
    for r in range(num_rows):
        own[r] = graph.nodes.own[layer, order[r]]
        if norm in (MEAN, SYMMETRIC):
            factor = scale[order[r]]
            own[r] *= factor * (factor if norm == SYMMETRIC else np.float32(1))
            for e in range(start[r], start[r + 1]):
                values[e] *= factor
                if norm == SYMMETRIC:
                    values[e] *= scale[order[column[e]]]
    return values, own


@njit(nogil=True, cache=True)
def _add_sums(
    out: np.ndarray,
    start: np.ndarray,
    column: np.ndarray,
    values: np.ndarray,
    own: np.ndarray,
    rows: np.ndarray,
    base: np.ndarray,
    more: np.ndarray,
) -> None:
    """Adds Â·X; ``rows``: where the row of each column is in ``base`` and, after its end, in ``more``."""
    for r in range(out.shape[0]):
        for e in range(start[r] - 1, start[r + 1]):
            itself = e < start[r]
            value = own[r] if itself else values[e]
            row = rows[r if itself else column[e]]
            if value == 0:
                continue
            if row < base.shape[0]:
                for k in range(out.shape[1]):
                    out[r, k] += value * base[row, k]
            else:
                row -= base.shape[0]
                for k in range(out.shape[1]):
                    out[r, k] += value * more[row, k]


@njit(nogil=True, cache=True)
def _add_messages(
    out: np.ndarray,
    layer: int,
    network: Network,
    start: np.ndarray,
    column: np.ndarray,
    values: np.ndarray,
    own: np.ndarray,
    product: np.ndarray,
) -> None:
    """Adds the messages of a layer, given H·W of each node that is read."""
    if network.heads[layer] > 0:
        _add_attention(out, layer, network, start, column, values, own, product)
    else:
        _add_sums(out, start, column, values, own, np.arange(product.shape[0]), product, product[:0])


@njit(nogil=True, cache=True)
def _add_attention(
    out: np.ndarray,
    layer: int,
    network: Network,
    start: np.ndarray,
    column: np.ndarray,
    values: np.ndarray,
    own: np.ndarray,
    product: np.ndarray,
) -> None:
    """Adds means weighted by attention; see :class:`gst.nn.backbones.gat.GATLayer`."""
    heads, first = network.heads[layer], network.attend_at[layer]
    width = out.shape[1] // heads
    attend = network.numbers[first : first + 2 * out.shape[1]].reshape(2, out.shape[1])
    source = _scores(product, attend[0], heads)
    target = _scores(product[: out.shape[0]], attend[1], heads)
    for r in range(out.shape[0]):
        size = start[r + 1] - start[r]
        logit = np.empty(size + 1, np.float32)
        for h in range(heads):
            for e in range(size + 1):
                z = target[r, h] + source[r if e == size else column[start[r] + e], h]
                logit[e] = z if z > 0 else np.float32(0.2) * z
            top = logit.max()
            total = np.float32(0)
            for e in range(size + 1):
                logit[e] = np.exp(logit[e] - top) * (own[r] if e == size else values[start[r] + e])
                total += logit[e]
            for e in range(size + 1):
                c = r if e == size else column[start[r] + e]
                share = logit[e] / total
                for k in range(h * width, (h + 1) * width):
                    out[r, k] += share * product[c, k]


@njit(nogil=True, cache=True)
def _scores(product: np.ndarray, attend: np.ndarray, heads: int) -> np.ndarray:
    """a·W x of every row and head."""
    width = product.shape[1] // heads
    scores = np.zeros((product.shape[0], heads), np.float32)
    for r in range(product.shape[0]):
        for h in range(heads):
            for k in range(h * width, (h + 1) * width):
                scores[r, h] += product[r, k] * attend[k]
    return scores


@njit(nogil=True, cache=True)
def _finish(out: np.ndarray, layer: int, network: Network) -> None:
    """LayerNorm and activation, in place."""
    width = out.shape[1]
    if network.norm_at[layer] >= 0:
        gamma = network.numbers[network.norm_at[layer] : network.norm_at[layer] + width]
        beta = network.numbers[network.norm_at[layer] + width : network.norm_at[layer] + 2 * width]
        for r in range(out.shape[0]):
            mean = out[r].mean()
            variance = np.float32(0)
            for k in range(width):
                variance += (out[r, k] - mean) ** 2
            factor = np.float32(1) / np.sqrt(variance / np.float32(width) + network.epsilon[layer])
            for k in range(width):
                out[r, k] = np.float32((out[r, k] - mean) * factor) * gamma[k] + beta[k]
    kind = network.activation[layer]
    if kind in (RELU, ELU):
        for r in range(out.shape[0]):
            for k in range(width):
                if out[r, k] < 0:
                    out[r, k] = np.expm1(out[r, k]) if kind == ELU else np.float32(0)


@njit(nogil=True, cache=True)
def _products(
    features: Features,
    table: np.ndarray,
    order: np.ndarray,
    weight: np.ndarray,
    given: np.ndarray,
    position: np.ndarray,
) -> np.ndarray:
    """X·W of these nodes, looked up or computed; rows of ``given`` replace those of the engine."""
    if table.shape[0]:
        product = np.empty((order.size, weight.shape[1]), np.float32)
        for r in range(order.size):
            product[r] = table[order[r]]
    elif features.sparse:
        product = sparse_product(features.rows, order, weight)
    else:
        return np.dot(_dense_rows(features, order, given, position), weight)
    if given.shape[0]:
        replaced = np.dot(given, weight)
        for k in range(position.size):
            if position[k] < order.size:
                product[position[k]] = replaced[k]
    return product


@njit(nogil=True, cache=True)
def _dense_rows(features: Features, order: np.ndarray, given: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Features of these nodes, those of ``given`` replaced."""
    x = np.empty((order.size, features.dense.shape[1]), np.float32)
    for r in range(order.size):
        row = features.at[order[r]]
        x[r] = features.dense[row] if row < features.dense.shape[0] else features.more[row - features.dense.shape[0]]
    for k in range(given.shape[0]):
        if position[k] < order.size:
            x[position[k]] = given[k]
    return x


@njit(nogil=True, cache=True)
def sparse_product(rows: Rows, order: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """X·W of these nodes, with X sparse."""
    out = np.zeros((order.size, weight.shape[1]), np.float32)
    for r in range(order.size):
        node = order[r]
        first = rows.start[node]
        moved = first < 0
        if moved:
            first = -1 - first
        for e in range(first, first + rows.size[node]):
            value = rows.more_value[e] if moved else rows.value[e]
            j = rows.more_column[e] if moved else rows.column[e]
            for k in range(weight.shape[1]):
                out[r, k] += value * weight[j, k]
    return out
