"""The graph, the networks and the work space of the search as plain arrays for the compiled kernels.

Values per layer and node are stored in one flat array; row (l, i) starts at ``row[l] + i·width[l]``. The layers of
several networks follow one another, so one compiled kernel serves any depth and any number of networks.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core.options import DefaultOptions

from gst.base.jit import njit

SUM, MEAN, SYMMETRIC = 0, 1, 2


def _options() -> dict[str, Any]:
    """Options of all kernels. They allocate nothing, so reference counting, which would dominate the time, is off.

    That option is internal to numba: with a version that lacks it, the kernels are slower but equally correct.
    """
    options: dict[str, Any] = {"cache": True, "error_model": "numpy"}
    return {**options, "_nrt": False} if hasattr(DefaultOptions, "_nrt") else options


kernel = njit(**_options())
# called by kernels only: the wrappers for Python and C would be a fifth of the code to compile
_inner: dict[str, Any] = {**_options(), "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# for small functions: a real call would pass some 300 machine words, of which the function reads ten
inlined = njit(forceinline=True, **_inner)
macro = njit(inline="always", **_inner)  # for functions that return a view


class Lists(NamedTuple):
    """The arcs grouped by source. Each source lists its kept arcs first, so that visiting them costs their number only.

    Arc 2e is the first arc of edge e and arc 2e + 1 the second; a directed edge has no second arc.
    """

    start: np.ndarray  # [N + 1] first position of each source
    num_kept: np.ndarray  # [N] number of kept arcs of each source
    arc: np.ndarray  # [A] the arc at each position, …
    target: np.ndarray  # [A] … its target …
    weight: np.ndarray  # [A] … and its weight; permuted within each source
    position: np.ndarray  # [2 E] position of each arc; −1: no such arc
    ends: np.ndarray  # [2 E] source of each arc


class Heads(NamedTuple):
    """What attention layers need in addition."""

    num_heads: np.ndarray  # [K·L] heads of each layer
    incoming: Lists  # the arcs grouped by target: here ``ends`` holds targets and ``target`` sources


class Layers(NamedTuple):
    """K networks of L layers each and their wanted answers; constant. Layer l of network k has index k·L + l."""

    norm: int  # SUM, MEAN or SYMMETRIC
    depth: int  # L
    cap: int  # kept arcs above which the propagation of a sender is deferred
    width: np.ndarray  # [K·L] outputs of each layer
    row: np.ndarray  # [K·L] where the rows of a layer start in the arrays of State
    inputs: np.ndarray  # [K·L] inputs of each layer; 0 for a first layer, whose products H·W never change
    weight_at: np.ndarray  # [K·L] where W of a layer starts in weight
    weight: np.ndarray  # flat, each W column by column
    root: np.ndarray  # W_root, stored like weight, or empty
    bias: np.ndarray  # [K·L, widest]
    norms: np.ndarray  # γ and β of the LayerNorm after each layer, [K·L, 2, widest], or empty
    self_weight: np.ndarray  # q, [K·L, N]
    wanted: np.ndarray  # softmax(Z^A / T), or sigmoid for several labels, [K, N, C]
    temperature: float  # T
    multilabel: bool  # whether the C outputs are independent labels
    squares: bool  # whether they are numbers or embeddings
    damped: bool  # whether the divergence is log(1 + KL) instead of KL
    entropy: np.ndarray  # entropy of each wanted answer, the least possible cross entropy, [K, N]
    heads: Any  # Heads of attention layers, or None


class State(NamedTuple):
    """What the networks compute on the kept edges, except for propagation that is deferred."""

    degree: np.ndarray  # d, [N]
    scale: np.ndarray  # s, [N]
    sent: np.ndarray  # P of all layers
    root_term: np.ndarray  # R of all layers, or empty
    out: np.ndarray  # outputs of all layers, before the ReLU
    gradient: np.ndarray  # ∂D/∂(t P) of all layers, as of the last refresh
    probability: np.ndarray  # softmax(out / T), or sigmoid, of the last layers, [K, N, C]
    loss: np.ndarray  # D of each node, [K, N]; for undamped KL the cross entropy, which is larger by a constant
    refreshed: np.ndarray  # [1] whether a refresh computed all of it: then equal outputs imply equal P, R and losses


class Trial(NamedTuple):
    """Work space for the rows that one edge would change.

    A touched node gets a slot in each layer, so the rows of a trial lie close together. Row (l, slot) of the arrays
    here corresponds to row (l, node) of State.
    """

    ends: np.ndarray  # [2] the nodes whose incoming arcs change; −1: none
    degree: np.ndarray  # [2] their d
    sent: np.ndarray
    root_term: np.ndarray
    out: np.ndarray  # first the difference of the incoming sum, then the output
    loss: np.ndarray  # [K, slot]
    scratch: np.ndarray  # [2 · widest] scratch row
    normed: np.ndarray  # [widest] a row after LayerNorm
    mark: np.ndarray  # [N, K·L] first + slot of a touched node; smaller numbers are of earlier trials
    first: np.ndarray  # [K·L] the least mark of this trial
    nodes: np.ndarray  # [K·L, slot] the touched nodes …
    size: np.ndarray  # [K·L] … and their number
