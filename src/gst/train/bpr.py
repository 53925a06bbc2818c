r"""Bayesian personalised ranking of LightGCN's embeddings, in compiled passes over all nodes.

A step draws positives and one negative for each, takes

.. math:: L = -\frac1B \sum_{(u, i, j)} \log σ(z_u · z_i - z_u · z_j)
    + \frac{λ}{2B} \sum_{(u, i, j)} (\|e_u\|^2 + \|e_i\|^2 + \|e_j\|^2), \quad Z = P(Â) E

with P(Â) the mean of Â⁰ … Â^L, and updates E by Adam. P(Â) is symmetric, so the gradient in E is P(Â) times that in Z:
a step costs 2 L sparse products, however large its batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.nn.lightgcn import Propagation
from gst.nn.recommend import Interactions
from gst.sparse.kernels import over_rows

BETA1, BETA2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)


@dataclass
class BPRState:
    """What training carries from step to step: the embeddings and Adam's moments."""

    embedding: Tensor  # E, [N, D]
    mean: Tensor
    square: Tensor
    step: int = 0
    losses: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, embedding: Tensor) -> "BPRState":
        return cls(embedding.clone(), torch.zeros_like(embedding), torch.zeros_like(embedding))


def bpr_steps(
    state: BPRState,
    propagate: Propagation,  # of an undirected graph, so that it is symmetric
    seen: Interactions,
    *,
    steps: int,
    batch: int,
    lr: float,
    warm_down: int,
    penalty: float,
    seed: int,
    by_user: bool = True,
) -> Iterator[int]:
    """Trains to ``steps`` steps; yields the number of each. The last ``warm_down`` steps have a falling rate.

    ``by_user``: a positive is one interaction of a random user, as published; else it is any interaction, so that
    users of many count more.
    """
    embedding, mean, square = (part.numpy() for part in (state.embedding, state.mean, state.square))
    rows = np.arange(len(embedding) + 1)
    while state.step < steps:
        state.step += 1
        random = np.random.default_rng([seed, state.step])
        sample = np.sort(_positives(seen, random, batch) if by_user else random.integers(0, seen.user.size, batch))
        to_final = np.zeros_like(embedding)
        times = np.zeros(len(embedding), np.int64)
        final = propagate(embedding)
        key = np.uint64(random.integers(2**63))
        loss = _ranking(final, sample, seen.user, seen.item, seen.start, seen.num_items, key, to_final, times)
        gradient = propagate(to_final)
        rate = lr * min(1.0, (steps - state.step + 1) / max(warm_down, 1))
        correction = (1 - float(BETA1) ** state.step, (1 - float(BETA2) ** state.step) ** 0.5)
        size = np.float32(rate * correction[1] / correction[0])
        eps = np.float32(float(EPSILON) * correction[1])
        over_rows(rows, _adam, embedding, mean, square, gradient, times, np.float32(penalty / batch), size, eps)
        state.losses.append(loss / batch)
        yield state.step


def _positives(seen: Interactions, random: np.random.Generator, count: int) -> np.ndarray:
    """Interactions, each one of a user drawn uniformly."""
    active = np.flatnonzero(np.diff(seen.start))
    users = active[random.integers(0, active.size, count)]
    size = seen.start[users + 1] - seen.start[users]
    return seen.start[users] + (random.random(count) * size).astype(np.int64)


@njit(cache=True)
def _ranking(
    final: np.ndarray,
    sample: np.ndarray,
    users: np.ndarray,
    items: np.ndarray,
    start: np.ndarray,
    num_items: int,
    key: np.uint64,
    gradient: np.ndarray,
    times: np.ndarray,
) -> float:
    """Adds ∂L/∂Z of the sampled interactions to ``gradient``, counts in ``times`` who takes part; returns Σ losses."""
    num_users, width, total = start.size - 1, final.shape[1], 0.0
    step = np.empty(width, np.float32)
    for k in sample:
        u, i = users[k], num_users + items[k]
        j = i
        while True:  # splitmix64
            key += np.uint64(0x9E3779B97F4A7C15)
            z = key
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = (z ^ (z >> np.uint64(31))) >> np.uint64(32)
            item = np.int64((z * np.uint64(num_items)) >> np.uint64(32))
            position = start[u] + np.searchsorted(items[start[u] : start[u + 1]], item)
            if position == start[u + 1] or items[position] != item:
                j = num_users + item
                break
        margin = np.float32(0)
        for c in range(width):
            step[c] = final[i, c] - final[j, c]
            margin += final[u, c] * step[c]
        total += max(-margin, 0.0) + np.log1p(np.exp(-abs(margin)))
        slope = np.float32(-1 / (1 + np.exp(margin)) / sample.size)
        for c in range(width):
            push = slope * final[u, c]
            gradient[u, c] += slope * step[c]
            gradient[i, c] += push
            gradient[j, c] -= push
        times[u] += 1
        times[i] += 1
        times[j] += 1
    return total


@njit(cache=True, nogil=True)
def _adam(
    embedding: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    gradient: np.ndarray,
    times: np.ndarray,
    penalty: float,
    size: float,
    eps: float,
    begin: int,
    end: int,
) -> None:
    """One step of Adam, with the bias correction in ``size`` and ``eps``."""
    one = np.float32(1)
    for i in range(begin, end):
        decay = penalty * np.float32(times[i])
        for c in range(embedding.shape[1]):
            g = gradient[i, c] + decay * embedding[i, c]
            mean[i, c] = BETA1 * mean[i, c] + (one - BETA1) * g
            square[i, c] = BETA2 * square[i, c] + (one - BETA2) * g * g
            embedding[i, c] -= size * mean[i, c] / (np.sqrt(square[i, c]) + eps)
