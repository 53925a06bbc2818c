"""A graph and networks as plain arrays, the way that compiled kernels want them.

Everything per layer and node lies in one flat array, row (l, i) at ``row[l] + i·width[l]``, and the layers of several
networks follow one another: one compiled kernel serves any depth and any number of networks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gst.base.jit import njit

SUM, MEAN, SYMMETRIC = 0, 1, 2


def _options() -> dict[str, Any]:
    """Nothing here allocates, so nothing needs counting of references, which would take most of the time.

    The option is numba's own: where a version does not know it, kernels are slower and right all the same.
    """
    options: dict[str, Any] = {"cache": True, "error_model": "numpy"}
    try:
        njit(_nrt=False)(lambda: 0)()
    except Exception:
        return options
    return {**options, "_nrt": False}


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``njit`` whose cache is out of date when any file of this folder changes.

    numba compares the file of the function alone, and would go on with the former code of what it calls.
    """
    return njit(stamp=_SOURCES, **options)


_SOURCES = tuple((path.name, path.stat().st_mtime_ns) for path in sorted(Path(__file__).parent.glob("*.py")))
kernel = compiled(**_options())
# called by kernels alone: what would take Python's objects apart is a fifth of what there is to compile
_inner: dict[str, Any] = {**_options(), "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# for what is small: a call hands over some 300 words, of which it reads ten
lean = compiled(forceinline=True, **_inner)
macro = compiled(inline="always", **_inner)  # for what returns a view


class Lists(NamedTuple):
    """The arcs by source. The kept ones of each source come first, so that walking them costs their number only.

    Arc 2e is the first of edge e, arc 2e + 1 the second, which a directed edge has not.
    """

    start: np.ndarray  # [N + 1]
    kept: np.ndarray  # [N] how many arcs of each source are kept
    arc: np.ndarray  # [A] which arc stands here, …
    target: np.ndarray  # [A] … its target …
    weight: np.ndarray  # [A] … and weight; permuted within each source
    place: np.ndarray  # [2 E] where an arc stands; −1: there is none
    ends: np.ndarray  # [2 E] the source of each arc


class Heads(NamedTuple):
    """What networks of attention have besides."""

    number: np.ndarray  # [K·L] heads of each layer
    heard: Lists  # the arcs by target: here ``ends`` are targets, and ``target`` has the sources


class Layers(NamedTuple):
    """K networks of L layers each and the answers they should give; constant. A layer's number is k·L + l."""

    norm: int
    depth: int  # L
    cap: int  # arcs above which a sender's news wait
    width: np.ndarray  # [K·L] outputs of each layer
    row: np.ndarray  # [K·L] where a layer's rows begin in the arrays of State
    inputs: np.ndarray  # [K·L] inputs of each layer; 0 for the first, whose products are made once
    weight_at: np.ndarray  # [K·L] where W begins in weight
    weight: np.ndarray  # flat, each W column by column
    root: np.ndarray  # W_root like weight, or empty
    bias: np.ndarray  # [K·L, widest]
    norms: np.ndarray  # γ and β of the LayerNorm after each layer, [K·L, 2, widest], or empty
    own: np.ndarray  # q, [K·L, N]
    wanted: np.ndarray  # softmax(Z^A / T), or sigmoid of several labels, [K, N, C]
    temperature: float
    labels: bool  # whether the C outputs are labels of their own
    damped: bool  # whether the divergence is log(1 + KL), else KL
    least: np.ndarray  # cross entropy at best, that of the wanted answer with itself, [K, N]
    heads: Any  # Heads of attention, or None


class State(NamedTuple):
    """What the networks hold on the kept edges."""

    flow: np.ndarray  # d, [N]
    scale: np.ndarray  # s, [N]
    sent: np.ndarray  # P of all layers
    extra: np.ndarray  # R of all layers, or empty
    out: np.ndarray  # outputs of all layers, before the ReLU
    slope: np.ndarray  # ∂D/∂(t P) of all layers, as of the last refresh
    chance: np.ndarray  # softmax(out / T), or sigmoid, of the last layers, [K, N, C]
    loss: np.ndarray  # D of each node, [K, N]; of KL the cross entropy, which is more by a constant
    settled: np.ndarray  # [1] whether all of this is the kernels' own work, as it is after the first refresh


class Trial(NamedTuple):
    """Room for what would be different. A touched node has a slot in each layer, so that all of it lies close together.

    Row (l, slot) of its arrays is like row (l, node) of State.
    """

    ends: np.ndarray  # [2] the nodes into which something else flows; −1: none
    flow: np.ndarray  # [2] d there
    sent: np.ndarray
    extra: np.ndarray
    out: np.ndarray  # what comes in besides, then the output
    loss: np.ndarray  # [K, slot]
    step: np.ndarray  # [widest] what one sender sends besides
    read: np.ndarray  # [widest] a normalised row
    mark: np.ndarray  # [N, K·L] first + slot of a node touched
    first: np.ndarray  # [K·L] what is below is from earlier trials
    nodes: np.ndarray  # [K·L, slot] the nodes touched …
    size: np.ndarray  # [K·L] … and their number
