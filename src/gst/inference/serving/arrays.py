"""A network, its graph and its features as plain arrays for the compiled kernels of an engine.

Arrays with one value per node have room for nodes to come: their length is a capacity, not the number of nodes.
"""

from typing import NamedTuple

import numpy as np

SUM, MEAN, SYMMETRIC = 0, 1, 2  # how the rows of Â are scaled
LINEAR, RELU, ELU = 0, 1, 2


class Rows(NamedTuple):
    """One list of columns per node, with values or without (then all are 1).

    ``column`` and ``value`` never change and may be mapped from a file. A row that changes moves to ``more_column`` and
    ``more_value``, and its ``start`` is then −1 − its position there.
    """

    start: np.ndarray  # [capacity] int64
    size: np.ndarray  # [capacity] int64
    column: np.ndarray  # int32
    value: np.ndarray  # float32, or empty
    more_column: np.ndarray
    more_value: np.ndarray


class Network(NamedTuple):
    """A stack of described layers; the numbers of layer l start at ``…_at[l]`` in ``numbers``, −1: it has none."""

    width: np.ndarray  # [L + 1] features, then outputs of each layer
    norm: np.ndarray  # [L] SUM, MEAN or SYMMETRIC
    heads: np.ndarray  # [L] attention heads, 0: no attention
    activation: np.ndarray  # [L] LINEAR, RELU or ELU
    weight_at: np.ndarray
    bias_at: np.ndarray
    root_at: np.ndarray  # of the skip connection
    attend_at: np.ndarray  # a_s, then a_t
    norm_at: np.ndarray  # γ, then β of the LayerNorm after the layer
    epsilon: np.ndarray  # [L] of that LayerNorm
    numbers: np.ndarray  # float32


class Nodes(NamedTuple):
    """What each layer knows of each node without its features."""

    own: np.ndarray  # [L, capacity] the value of a node in its own sum, before scaling
    scale: np.ndarray  # [L, capacity] 1 / Σ of its row (MEAN), 1 / √Σ (SYMMETRIC), or 1


class Features(NamedTuple):
    """Dense features in ``dense`` and, where changed or new, ``more``; sparse ones in ``rows``."""

    sparse: bool
    rows: Rows
    dense: np.ndarray  # [M, F]
    more: np.ndarray  # [P, F]
    at: np.ndarray  # [capacity] the row of each node in ``dense``, from M on in ``more``
    products: np.ndarray  # [capacity, outputs] X·W of the first layer, or no rows
    roots: np.ndarray  # [capacity, outputs] X·W_root of the first layer, or no rows


class Graph(NamedTuple):
    """All that answers are computed from."""

    network: Network
    arcs: Rows  # the sources of the arcs into each node, ascending
    nodes: Nodes
    features: Features
