"""The lazy greedy walk: one edge per step, with values that are recomputed only where they may have changed.

Every candidate edge e has a value, δ_e as of its last trial. The walk keeps the candidates in a heap by value, pops the
best one, tries it again and takes it if it is still the best; else it returns to the heap with its fresh value.

A value goes stale as the answers around the edge move. ``drift`` adds up how far the answer of each node moved since
the candidates at it were last tried; a node that drifts beyond its limit has all its candidates tried again. The limit
is ``tolerance``, larger at nodes of high degree, and larger everywhere while the walk is over its budget of rows. A
refresh, which propagates what the trials deferred, comes after every few per cent of the edges.

So the δ of the edge that is taken is always fresh, as exact as a trial; what the tolerance leaves open is whether a
candidate of stale value has become better. At tolerance 0 every value is fresh.
"""

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from gst.base.jit import njit
from gst.methods.greedy.arrays import Layers, Lists, State, Trial, inlined
from gst.methods.greedy.attention import apply_attention, change_attention, refresh_attention
from gst.methods.greedy.kernels import apply, change
from gst.methods.greedy.refresh import refresh
from gst.methods.greedy.tape_kernels import apply_tape, change_tape, refresh_tape
from gst.methods.greedy.tape_layout import TapeLayers

FEW_EDGES = 32  # at a node; beyond that, its limit of drift grows in proportion to their number
MOST_SLACK = 100.0  # of lazy walks
EARLY = 20  # the row budget of a step is halved when a twentieth of the edges is kept
REFRESH_SHARE = 0.05  # steps between two refreshes, as a share of the kept edges, …
MIN_REFRESH_STEPS = 50  # … but at least this many

# positions in Memory.counters
STEPS_SINCE_REFRESH = 0
HAS_DEFERRED = 1  # whether a node ever had more than ``cap`` kept arcs: without one, a refresh is of no use
SPARE_ROWS = 2
SLACK = 3  # by which limits of drift are multiplied, at least 1
NUM_KEPT = 4
NUM_COUNTERS = 5

macro = njit(inline="always")  # numba would optimise a called function again for each caller: inlining compiles faster

Model = tuple[Layers, State, Trial]


class Incidence(NamedTuple):
    """The edges at every node, kept or not."""

    start: np.ndarray  # [N + 1]
    edge: np.ndarray


class Memory(NamedTuple):
    """What a walk remembers besides the state of the networks."""

    value: np.ndarray  # [E] δ of every candidate at its last trial; NaN: not tried yet
    drift: np.ndarray  # [N] how far the answer of a node moved since the candidates at it were last tried
    counters: np.ndarray  # [5] by the positions above


def new_memory(num_edges: int, num_nodes: int) -> Memory:
    counters = np.zeros(NUM_COUNTERS)
    counters[SLACK] = 1.0
    return Memory(np.full(num_edges, np.nan), np.zeros(num_nodes), counters)


def _by_kind(*kernels: Callable[..., Any]) -> Callable[[Layers], Callable[..., Any]]:
    """Picks one of three kernels by the type of the layers at compile time, so that the others are not compiled."""
    linear, attention, tape = kernels

    def pick(layers: Layers) -> Callable[..., Any]:
        if isinstance(layers, TapeLayers):
            return tape
        return linear if layers.heads is None else attention

    kinds = (lambda layers: linear), (lambda layers: attention), (lambda layers: tape)
    overload(pick, inline="always")(lambda layers: kinds[_kind_of(layers)])
    return pick


def _kind_of(layers: Any) -> int:
    """0, 1 or 2 for the numba type of Layers without heads, Layers with heads, TapeLayers."""
    if "heads" not in layers.fields:
        return 2
    return int(layers.types[layers.fields.index("heads")] != types.none)


_change = _by_kind(change, change_attention, change_tape)
_apply = _by_kind(apply, apply_attention, apply_tape)
_refresh = _by_kind(refresh, refresh_attention, refresh_tape)


@macro
def _try(edge: int, sign: float, prior: np.ndarray, lists: Lists, model: Model) -> float:
    """δ_e = ΔD − sign · prior_e, where ΔD is the mean change of the divergence over the networks."""
    layers, state, trial = model
    return _change(layers)(edge, sign, lists, layers, state, trial) / layers.wanted.shape[0] - sign * prior[edge]


@inlined
def _most_gain(edge: int, enough: float, lists: Lists, model: Model) -> float:
    """No less than what adding an edge can gain in a network of two layers: the losses of all nodes it can reach.

    These are its targets, their readers, and the readers of those. Infinite as soon as that is ``enough``, or where the
    nodes are many: then a trial is worth its cost.
    """
    total, visited, loss = 0.0, 0, model[1].loss[0]
    for arc in range(2 * edge, 2 * edge + 2):
        if lists.position[arc] < 0:
            continue
        target = lists.ends[arc ^ 1]
        total += loss[target]
        visited += lists.num_kept[target]
        if total >= enough or visited > FEW_EDGES:
            return np.inf
        for position in range(lists.start[target], lists.start[target] + lists.num_kept[target]):
            reader = lists.target[position]
            total += loss[reader]
            visited += lists.num_kept[reader]
            if total >= enough or visited > FEW_EDGES:
                return np.inf
            for further in range(lists.start[reader], lists.start[reader] + lists.num_kept[reader]):
                total += loss[lists.target[further]]
    return total


@inlined
def _take_room(edge: int, change: int, room: np.ndarray, lists: Lists) -> None:
    for arc in range(2 * edge, 2 * edge + 2):
        if lists.position[arc] >= 0:
            room[lists.ends[arc ^ 1]] -= change


@macro
def _commit(edge: int, sign: float, room: np.ndarray, lists: Lists, model: Model, memory: Memory) -> bool:
    """Makes the last trial permanent and refreshes if that is due; returns whether it refreshed."""
    layers, state, trial = model
    _take_room(edge, 1 if sign > 0 else -1, room, lists)
    counters = memory.counters
    _apply(layers)(edge, sign, lists, layers, state, trial, memory.drift)
    if max(lists.num_kept[lists.ends[2 * edge]], lists.num_kept[lists.ends[2 * edge + 1]]) > layers.cap:
        counters[HAS_DEFERRED] = 1
    counters[STEPS_SINCE_REFRESH] += 1
    counters[NUM_KEPT] += sign
    interval = max(MIN_REFRESH_STEPS, REFRESH_SHARE * counters[NUM_KEPT])
    if counters[HAS_DEFERRED] == 0 or counters[STEPS_SINCE_REFRESH] < interval:
        return False
    _refresh(layers)(lists, layers, state, trial, memory.drift)
    counters[STEPS_SINCE_REFRESH] = 0
    return True


@macro
def _heap(
    is_candidate: np.ndarray,
    sign: float,
    prior: np.ndarray,
    lazy: bool,
    room: np.ndarray,
    lists: Lists,
    model: Model,
    value: np.ndarray,
) -> list[tuple[float, int]]:
    """The candidates by value, those without room at their target left out; they are tried where they have none."""
    if sign > 0:
        for edge in range(is_candidate.size):
            is_candidate[edge] &= room[lists.ends[2 * edge + 1]] > 0
    heap = [(np.inf, -1)]  # a sentinel, which also gives the list its type
    for edge in range(is_candidate.size):
        if is_candidate[edge]:
            if np.isnan(value[edge]):
                if lazy:
                    value[edge] = -_most_gain(edge, np.inf, lists, model) - prior[edge]
                else:
                    value[edge] = _try(edge, sign, prior, lists, model)
            heap.append((value[edge], edge))
    heapq.heapify(heap)
    return heap


@njit(cache=True)
def walk(
    replayed: np.ndarray,
    count: int,
    sign: float,
    is_candidate: np.ndarray,
    prior: np.ndarray,
    tolerance: float,
    margin: float,
    rows: float,
    lazy: bool,
    room: np.ndarray,
    lists: Lists,
    incidence: Incidence,
    model: Model,
    memory: Memory,
) -> tuple[np.ndarray, np.ndarray]:
    """Adds (sign 1) or removes (−1) ``count`` candidates, each time the one of least δ; returns them and their δ.

    Before that it repeats the steps ``replayed`` of an earlier walk, without comparing candidates.

    An edge is taken if its fresh δ exceeds the best value of the other candidates by at most ``margin``. The limit of
    drift of a node is ``tolerance``, times its number of edges / ``FEW_EDGES`` if that is larger, so that the work per
    step does not grow with the degree.

    ``lazy``: on large graphs, a candidate that cannot be the next best is not tried when its node drifts, nor at first.
    Its value is then the least that δ can be, so it is tried once it is on top: nothing is missed, and most trials are
    saved. For one network of two layers, adding edges.

    Only candidates with room at their target (an arc's) are added.

    Retrials may recompute ``rows`` rows per step on average, fewer the more edges are kept, since the first edges
    matter most. Over budget, all limits of drift grow; under budget, they shrink again. So the time of a walk is
    linear in its number of steps.
    """
    value, drift, counters = memory.value, memory.drift, memory.counters
    order, deltas = np.empty(count, np.int64), np.empty(count)
    for edge in replayed:
        _change(model[0])(edge, sign, lists, model[0], model[1], model[2])
        _commit(edge, sign, room, lists, model, memory)
    if count == 0:
        return order, deltas
    heap = _heap(is_candidate, sign, prior, lazy, room, lists, model, value)

    limit = tolerance * np.maximum(1.0, (incidence.start[1:] - incidence.start[:-1]) / FEW_EDGES)
    tried_in = np.full(is_candidate.size, -1)  # the last step that tried a candidate again
    most_slack = MOST_SLACK if lazy else np.inf
    step = 0
    while step < count:
        _drop_superseded(heap, is_candidate, value)
        edge = heapq.heappop(heap)[1]
        value[edge] = _try(edge, sign, prior, lists, model)
        _drop_superseded(heap, is_candidate, value)
        if value[edge] > heap[0][0] + margin:
            heapq.heappush(heap, (value[edge], edge))
            continue
        is_candidate[edge] = False
        order[step], deltas[step] = edge, value[edge]
        check_all = _commit(edge, sign, room, lists, model, memory) or tolerance == 0
        target = lists.ends[2 * edge + 1]
        if sign > 0 and room[target] <= 0:  # no further arc enters this node
            for position in range(incidence.start[target], incidence.start[target + 1]):
                if lists.ends[2 * incidence.edge[position] + 1] == target:
                    is_candidate[incidence.edge[position]] = False
        recomputed = 0
        for node in _drifted(check_all, limit, counters[SLACK], drift, model):
            drift[node] = 0.0
            for position in range(incidence.start[node], incidence.start[node + 1]):
                other = incidence.edge[position]
                if is_candidate[other] and tried_in[other] != step:
                    tried_in[other] = step
                    if lazy:
                        _drop_superseded(heap, is_candidate, value)
                        least = -_most_gain(other, -heap[0][0] - prior[other], lists, model) - prior[other]
                        if least > heap[0][0]:  # it cannot be the next: tried again when it is on top
                            if least != value[other]:
                                value[other] = least
                                heapq.heappush(heap, (least, other))
                            continue
                    fresh = _try(other, sign, prior, lists, model)
                    recomputed += model[2].size.sum()
                    if fresh != value[other]:
                        value[other] = fresh
                        heapq.heappush(heap, (fresh, other))
        _account(rows / (1 + EARLY * counters[NUM_KEPT] / is_candidate.size) - recomputed, most_slack, counters)
        step += 1
    return order, deltas


@macro
def _drop_superseded(heap: list[tuple[float, int]], is_candidate: np.ndarray, value: np.ndarray) -> None:
    """Pops outdated entries off the top. A resumed walk has none of them, so they must not affect any comparison."""
    while heap[0][1] >= 0 and (not is_candidate[heap[0][1]] or heap[0][0] != value[heap[0][1]]):
        heapq.heappop(heap)


@macro
def _account(spare: float, most_slack: float, counters: np.ndarray) -> None:
    """Adds the rows that a step left unused; the slack grows in debt and shrinks in credit, which is bounded."""
    counters[SPARE_ROWS] = min(counters[SPARE_ROWS] + spare, 1000 * max(spare, 1.0))
    slack = counters[SLACK] * (1.02 if counters[SPARE_ROWS] < 0 else 0.98)
    counters[SLACK] = min(max(slack, 1.0), most_slack)


@macro
def _drifted(check_all: bool, limit: np.ndarray, slack: float, drift: np.ndarray, model: Model) -> np.ndarray:
    """The nodes beyond their limit of drift, among all or those the last step touched; at limit 0 all nodes."""
    if check_all:
        return np.flatnonzero((drift > slack * limit) | (limit == 0))
    layers, _, trial = model
    drifted = np.empty(0, np.int64)
    for last in range(layers.depth - 1, trial.size.size, layers.depth):
        nodes = trial.nodes[last, : trial.size[last]]
        drifted = np.append(drifted, nodes[drift[nodes] > slack * limit[nodes]])
    return drifted
