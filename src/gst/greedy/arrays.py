"""A graph and networks as plain arrays, the way that compiled kernels want them.

Everything per layer and node lies in one flat array, row (l, i) at ``row[l] + i·width[l]``, and the layers of several
networks follow one another: one compiled kernel serves any depth and any number of networks.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

SUM, MEAN, SYMMETRIC = 0, 1, 2


def _options() -> dict[str, Any]:
    """Nothing here allocates, so nothing needs counting of references, which would take most of the time.

    The option is numba's own: where a version does not know it, kernels are slower and right all the same.
    """
    options: dict[str, Any] = {"cache": True, "error_model": "numpy"}
    try:
        njit(**{"_nrt": False})(lambda: 0)()  # type: ignore[call-overload]
    except Exception:
        return options
    return {**options, "_nrt": False}


kernel = njit(**_options())
macro = njit(inline="always", **_options())  # for what returns a view


class Lists(NamedTuple):
    """The arcs by source. The kept ones of each source come first, so that walking them costs their number only."""

    start: np.ndarray  # [N + 1]
    arc: np.ndarray  # [A] arc ids, permuted within each source
    place: np.ndarray  # [A] where an arc stands in it
    kept: np.ndarray  # [N] how many arcs of each source are kept
    source: np.ndarray  # [A]
    target: np.ndarray  # [A]
    weight: np.ndarray  # [A]
    edge: np.ndarray  # [A]
    edge_arcs: np.ndarray  # [E, 2] the arcs of each edge; −1 for the second of a directed one


class Layers(NamedTuple):
    """K networks of L layers each and the answers they should give; constant. A layer's number is k·L + l."""

    norm: int
    depth: int  # L
    cap: int  # arcs above which a sender's news wait
    width: np.ndarray  # [K·L] outputs of each layer
    row: np.ndarray  # [K·L] where a layer's rows begin in the arrays of State
    inputs: np.ndarray  # [K·L] inputs of each layer; 0 for the first, whose products are made once
    weight_at: np.ndarray  # [K·L] where W begins in weight
    weight: np.ndarray  # flat, each W row by row
    root: np.ndarray  # W_root like weight, or empty
    bias: np.ndarray  # [K·L, widest]
    own: np.ndarray  # q, [K·L, N]
    wanted: np.ndarray  # softmax(Z^A / T), or sigmoid of several labels, [K, N, C]
    entropy: np.ndarray  # of what is wanted, [K, N]
    temperature: float
    labels: bool  # whether the C outputs are labels of their own


class State(NamedTuple):
    """What the networks hold on the kept edges."""

    flow: np.ndarray  # d, [N]
    sent: np.ndarray  # P of all layers
    extra: np.ndarray  # R of all layers, or empty
    total: np.ndarray  # U of all layers
    slope: np.ndarray  # ∂KL/∂(t P) of all layers, as of the last refresh
    chance: np.ndarray  # softmax(Z / T), [K, N, C]
    loss: np.ndarray  # KL of each node, [K, N]


class Trial(NamedTuple):
    """Room for what would be different: rows of State, valid where ``mark`` shows the current tick."""

    flow: np.ndarray
    sent: np.ndarray
    extra: np.ndarray
    total: np.ndarray
    chance: np.ndarray
    loss: np.ndarray
    out: np.ndarray  # [widest] one node's output of a layer
    mark: np.ndarray  # [K·L, N] tick at which a layer's output was last touched
    nodes: np.ndarray  # [K·L, N] the nodes touched …
    size: np.ndarray  # [K·L] … and their number
    tick: np.ndarray  # [1]
