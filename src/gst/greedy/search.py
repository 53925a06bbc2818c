"""Greedy search over edges, with values that are looked up again only where they may have changed."""

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from gst.greedy.kernels import Layers, Lists, State, Trial, apply, change, move

FEW = 32

Model = tuple[Layers, State, Trial]


class Incidence(NamedTuple):
    """The edges at every node, kept or not."""

    start: np.ndarray  # [N + 1]
    edge: np.ndarray


@njit(cache=True)
def _value(edge: int, sign: float, prior: np.ndarray, lists: Lists, models: tuple[Model, ...]) -> float:
    """δ_e: mean change of KL over the models, better by what the prior thinks of the edge."""
    total = 0.0
    for layers, state, trial in models:
        total += change(edge, sign, lists, layers, state, trial)
    return total / len(models) - sign * prior[edge]


@njit(cache=True)
def _commit(edge: int, sign: float, lists: Lists, models: tuple[Model, ...], drift: np.ndarray) -> None:
    for layers, state, trial in models:
        apply(edge, sign, lists, layers, state, trial, drift)
    move(edge, sign, lists)


@njit(cache=True)
def fill(edges: np.ndarray, lists: Lists, models: tuple[Model, ...]) -> None:
    """Adds edges without a question."""
    drift = np.zeros(lists.kept.size)
    for edge in edges:
        _commit(edge, 1.0, lists, models, drift)


@njit(cache=True)
def walk(
    count: int,
    sign: float,
    open_: np.ndarray,
    prior: np.ndarray,
    tolerance: float,
    lists: Lists,
    incidence: Incidence,
    models: tuple[Model, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Adds (sign 1) or removes (−1) ``count`` of the open edges, always the one of least δ; which, and their δ.

    An edge is taken only if its δ, computed at that moment, is not above what the others were last worth. Those are
    computed again when the answer of one of their ends moved by ``tolerance`` since; of an end with many edges, by as
    many times more as it has more than ``FEW``, so that the work a step makes does not grow with the degree. At
    tolerance 0 all are computed again after every step.
    """
    value = np.full(open_.size, np.inf)
    heap = [(np.inf, -1)]  # types the list; nothing is ever worse
    for edge in range(open_.size):
        if open_[edge]:
            value[edge] = _value(edge, sign, prior, lists, models)
            heap.append((value[edge], edge))
    heapq.heapify(heap)

    limit = tolerance * np.maximum(1.0, np.diff(incidence.start) / FEW)
    order, paid = np.empty(count, np.int64), np.empty(count)
    drift, seen = np.zeros(lists.kept.size), np.full(open_.size, -1)
    step = 0
    while step < count:
        old, edge = heapq.heappop(heap)
        if not open_[edge] or old != value[edge]:
            continue  # a newer entry stands for it
        value[edge] = _value(edge, sign, prior, lists, models)
        if value[edge] > heap[0][0]:
            heapq.heappush(heap, (value[edge], edge))
            continue
        open_[edge] = False
        order[step], paid[step] = edge, value[edge]
        _commit(edge, sign, lists, models, drift)
        for node in _moved(limit, drift, models):
            drift[node] = 0.0
            for at in range(incidence.start[node], incidence.start[node + 1]):
                other = incidence.edge[at]
                if open_[other] and seen[other] != step:
                    seen[other] = step
                    new = _value(other, sign, prior, lists, models)
                    if new != value[other]:
                        value[other] = new
                        heapq.heappush(heap, (new, other))
        step += 1
    return order, paid


@njit(cache=True)
def _moved(limit: np.ndarray, drift: np.ndarray, models: tuple[Model, ...]) -> np.ndarray:
    """The nodes that drifted too far; all of them where nothing is tolerated."""
    if not limit.any():
        return np.arange(drift.size)
    found = np.empty(0, np.int64)
    for _, _, trial in models:
        last = trial.size.size - 1
        nodes = trial.nodes[last, : trial.size[last]]
        found = np.append(found, nodes[drift[nodes] > limit[nodes]])
    return found
