"""Greedy search over edges, with values that are looked up again only where they may have changed."""

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from gst.base.jit import njit
from gst.methods.greedy.arrays import Layers, Lists, State, Trial, compiled
from gst.methods.greedy.attention import adopt, attend, stay
from gst.methods.greedy.kernels import apply, change
from gst.methods.greedy.refresh import refresh

FEW = 32
EARLY = 20  # a step has half its rows when a twentieth of the edges is kept
SPAN, SHORTEST = 0.05, 50  # a refresh after so many steps, as a share of the kept edges, but not fewer than this

macro = njit(inline="always")  # numba optimises whatever is called once more in each caller: the fewer, the sooner

Model = tuple[Layers, State, Trial]


class Incidence(NamedTuple):
    """The edges at every node, kept or not."""

    start: np.ndarray  # [N + 1]
    edge: np.ndarray


class Memory(NamedTuple):
    """What a walk knows besides the state of the networks."""

    value: np.ndarray  # [E] δ of every open edge when last computed; NaN: not yet
    drift: np.ndarray  # [N] how far the answer of a node moved since the edges at it were looked at
    pace: np.ndarray  # [5] steps since the last refresh; whether a node waits for one; rows to spare; slack; edges kept


def _of_kind(linear: Callable[..., Any], attention: Callable[..., Any]) -> Callable[[Layers], Callable[..., Any]]:
    """Which of two kernels suits the layers, told from their types: the other one is not even compiled."""

    def pick(layers: Layers) -> Callable[..., Any]:
        return linear if layers.heads is None else attention

    kinds = (lambda layers: linear), (lambda layers: attention)
    overload(pick, inline="always")(lambda layers: kinds[layers.types[layers.fields.index("heads")] != types.none])
    return pick


_change, _apply, _refresh = _of_kind(change, attend), _of_kind(apply, adopt), _of_kind(refresh, stay)


@macro
def _value(edge: int, sign: float, prior: np.ndarray, lists: Lists, model: Model) -> float:
    """δ_e: mean change of the divergence over the networks, better by what the prior thinks of the edge."""
    layers, state, trial = model
    return _change(layers)(edge, sign, lists, layers, state, trial) / layers.wanted.shape[0] - sign * prior[edge]


@macro
def _commit(edge: int, sign: float, lists: Lists, model: Model, memory: Memory) -> bool:
    """Makes the step that was tried last; whether it was time for a refresh."""
    layers, state, trial = model
    _apply(layers)(edge, sign, lists, layers, state, trial, memory.drift)
    if max(lists.kept[lists.ends[2 * edge]], lists.kept[lists.ends[2 * edge + 1]]) > layers.cap:
        memory.pace[1] = 1
    memory.pace[0] += 1
    memory.pace[4] += sign
    if memory.pace[1] == 0 or memory.pace[0] < max(SHORTEST, SPAN * memory.pace[4]):
        return False
    _refresh(layers)(lists, layers, state, trial, memory.drift)
    memory.pace[0] = 0
    return True


@compiled(cache=True)
def walk(
    given: np.ndarray,
    count: int,
    sign: float,
    open_: np.ndarray,
    prior: np.ndarray,
    tolerance: float,
    trifle: float,
    rows: float,
    lists: Lists,
    incidence: Incidence,
    model: Model,
    memory: Memory,
) -> tuple[np.ndarray, np.ndarray]:
    """Adds (sign 1) or removes (−1) ``count`` of the open edges, always the one of least δ; which, and their δ.

    Before that, it does so with those that are given, without a question, as the walk that found them did.

    An edge is taken only if its δ, computed at that moment, is not above what the others were last worth, or by a
    trifle. Those are
    computed again when the answer of one of their ends moved by ``tolerance`` since; of an end with many edges, by as
    many times more as it has more than ``FEW``, so that the work a step makes does not grow with the degree. At
    tolerance 0 all are computed again after every step.

    A step may recompute ``rows`` rows, on average, fewer the more edges are kept, since the first ones matter most:
    where more is asked for, the tolerance slackens, and tightens again where less is. So the whole walk is linear in
    the number of its steps.
    """
    value, drift = memory.value, memory.drift
    order, paid = np.empty(count, np.int64), np.empty(count)
    for edge in given:
        _change(model[0])(edge, sign, lists, model[0], model[1], model[2])
        _commit(edge, sign, lists, model, memory)
    if count == 0:
        return order, paid
    heap = [(np.inf, -1)]  # types the list; nothing is ever worse
    for edge in range(open_.size):
        if open_[edge]:
            if np.isnan(value[edge]):
                value[edge] = _value(edge, sign, prior, lists, model)
            heap.append((value[edge], edge))
    heapq.heapify(heap)

    limit = tolerance * np.maximum(1.0, (incidence.start[1:] - incidence.start[:-1]) / FEW)
    seen = np.full(open_.size, -1)
    step = 0
    while step < count:
        _tidy(heap, open_, value)
        edge = heapq.heappop(heap)[1]
        value[edge] = _value(edge, sign, prior, lists, model)
        _tidy(heap, open_, value)
        if value[edge] > heap[0][0] + trifle:
            heapq.heappush(heap, (value[edge], edge))
            continue
        open_[edge] = False
        order[step], paid[step] = edge, value[edge]
        everywhere = _commit(edge, sign, lists, model, memory) or tolerance == 0
        spent = 0
        for node in _moved(everywhere, limit, memory.pace[3], drift, model):
            drift[node] = 0.0
            for at in range(incidence.start[node], incidence.start[node + 1]):
                other = incidence.edge[at]
                if open_[other] and seen[other] != step:
                    seen[other] = step
                    new = _value(other, sign, prior, lists, model)
                    spent += model[2].size.sum()
                    if new != value[other]:
                        value[other] = new
                        heapq.heappush(heap, (new, other))
        _budget(rows / (1 + EARLY * memory.pace[4] / open_.size) - spent, memory)
        step += 1
    return order, paid


@macro
def _tidy(heap: list[tuple[float, int]], open_: np.ndarray, value: np.ndarray) -> None:
    """Takes entries off the top for which newer ones stand: what a search that goes on has not, must not matter."""
    while heap[0][1] >= 0 and (not open_[heap[0][1]] or heap[0][0] != value[heap[0][1]]):
        heapq.heappop(heap)


@macro
def _budget(spare: float, memory: Memory) -> None:
    """Keeps the account of rows; slack grows in debt and shrinks in credit, of which little can be saved up."""
    pace = memory.pace
    pace[2] = min(pace[2] + spare, 1000 * max(spare, 1.0))
    pace[3] = max(1.0, pace[3] * (1.02 if pace[2] < 0 else 0.98))


@macro
def _moved(everywhere: bool, limit: np.ndarray, slack: float, drift: np.ndarray, model: Model) -> np.ndarray:
    """The nodes that drifted too far, among those that the last step touched or all; at limit 0 all of them."""
    if everywhere:
        return np.flatnonzero((drift > slack * limit) | (limit == 0))
    layers, _, trial = model
    found = np.empty(0, np.int64)
    for last in range(layers.depth - 1, trial.size.size, layers.depth):
        nodes = trial.nodes[last, : trial.size[last]]
        found = np.append(found, nodes[drift[nodes] > slack * limit[nodes]])
    return found
