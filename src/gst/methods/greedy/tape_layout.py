"""The layout of recognised models (:mod:`gst.nn.tape`) in the kernels.

All registers of a node lie in one row, those of level 0 first: what a trial changes at a node is the end of its row.
"""

from typing import NamedTuple

import numpy as np

from gst.methods.greedy.arrays import Lists

LOCAL = ["linear", "affine", "activate", "layer_norm", "unit", "log_softmax"]  # of one register
KINDS = [*LOCAL, "add", "multiply", "maximum", "concatenate", "slice", "sum", "scale", "attend"]
LINEAR, AFFINE, ACTIVATE, LAYER_NORM, UNIT, LOG_SOFTMAX, ADD = range(7)
MULTIPLY, MAXIMUM, CONCATENATE, SLICE, SUM, SCALE, ATTEND = range(7, 14)
FUNCTIONS = ["relu", "leaky_relu", "elu", "tanh", "sigmoid", "gelu", "silu", "softplus"]
SCORES = ["add", "add-first", "dot"]
NORMS = ["sum", "mean", "symmetric"]

# columns of TapeLayers.steps; NAME is an activation, a norm or a score
KIND, LEVEL, FIRST, SECOND, THIRD, INTO, PARAMETERS, NAME, HEADS, DIAGONAL = range(10)


class TapeLayers(NamedTuple):
    """The steps of level 1 and more, and the wanted answers of K networks that differ in their features; constant."""

    depth: int  # levels + 1: the walk looks for touched nodes at Trial.nodes[depth − 1]
    cap: int  # no propagation is deferred
    levels: int
    nodes: int  # N
    row: int  # numbers in the row of a node
    steps: np.ndarray  # [S, 10] by the columns above
    numbers: np.ndarray  # [S, 2]
    parameters: np.ndarray  # flat; W of a linear step column by column
    at: np.ndarray  # [R] where a register starts in a row
    width: np.ndarray  # [R]
    level: np.ndarray  # [R]
    begin: np.ndarray  # [levels + 2] where the registers of a level start in a row
    itself: np.ndarray  # q of each diagonal, [D, N]
    symmetric: bool  # whether what a node sends depends on its degree
    output: int  # the last register
    wanted: np.ndarray  # [K, N, C], as in Layers, like all that follows
    temperature: float
    multilabel: bool
    squares: bool
    damped: bool
    entropy: np.ndarray  # [K, N]
    incoming: Lists  # the arcs grouped by target


class TapeState(NamedTuple):
    """What the networks compute on the kept edges."""

    degree: np.ndarray  # [N] sum of the kept arcs into a node
    rows: np.ndarray  # flat, [K, N, row]
    probability: np.ndarray  # [K, N, C]
    loss: np.ndarray  # [K, N]


class TapeTrial(NamedTuple):
    """Work space for the rows that one edge would change; touched nodes have the same slot at all levels."""

    ends: np.ndarray  # [2] the nodes whose incoming arcs change; −1: none
    degree: np.ndarray  # [2] their degree
    rows: np.ndarray  # flat, [K, slot, row]
    loss: np.ndarray  # [K, slot]
    scratch: np.ndarray  # 3 · widest
    mark: np.ndarray  # [N] first + slot of a touched node; smaller numbers are of earlier trials
    first: np.ndarray  # [1] the least mark of this trial
    touched: np.ndarray  # [levels + 1] the number of slots that each level changes
    nodes: np.ndarray  # [levels + 1, N], of which only the last row is used
    size: np.ndarray  # [levels + 1]: rows recomputed at each level, and last the number of touched nodes
