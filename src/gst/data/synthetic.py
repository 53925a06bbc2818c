"""Graphs of any size with labels and features: the contextual stochastic block model."""

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.memory import check_memory


def synthetic(
    *,
    nodes: int = 2000,
    degree: float = 10.0,
    classes: int = 5,
    features: int = 32,
    homophily: float = 0.8,
    signal: float = 1.0,
    seed: int = 0,
) -> Data:
    r"""A contextual stochastic block model with an exact number of edges (Deshpande et al., NeurIPS 2018).

    .. math:: x_i = \text{signal} \cdot \mu_{y_i} + z_i, \quad \lVert \mu_c \rVert = 1, \; z_i \sim N(0, I)

    Args:
        nodes: number of nodes, split into classes whose sizes differ by at most one.
        degree: mean degree; the graph has round(nodes · degree / 2) undirected pairs.
        classes: number of classes.
        features: columns of ``x``.
        homophily: share of the pairs that join nodes of one class, the rest joins two classes.
        signal: length of the class means, in standard deviations of the noise.
        seed: the same seed gives the same graph.
    """
    rules = {
        f"classes={classes} must be 2 or more": classes >= 2,
        f"nodes={nodes} must be at least 3 a class": nodes >= 3 * classes,
        f"degree={degree} must be above 0 and below nodes": 0 < degree < nodes,
        f"features={features} must be 1 or more": features >= 1,
        f"homophily={homophily} must lie between 0 and 1": 0 <= homophily <= 1,
        f"signal={signal} must be a number from 0 up": 0 <= signal < float("inf"),
        f"seed={seed} must be 0 or more": seed >= 0,
    }
    for rule, holds in rules.items():
        if not holds:
            raise InputError(f"synthetic: {rule}")

    pairs = round(nodes * degree / 2)
    check_memory(
        8 * nodes * features + 100 * pairs, f"synthetic: a graph of {nodes} nodes", "fewer nodes, a lower degree"
    )
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(nodes) % classes)
    within = round(pairs * homophily)
    keys = np.concatenate([_pairs(rng, y, within, True), _pairs(rng, y, pairs - within, False)])
    u, v = np.divmod(keys, nodes)
    arcs = np.sort(np.concatenate([keys, v * nodes + u]))
    means = rng.standard_normal((classes, features), dtype=np.float32)
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    x = rng.standard_normal((nodes, features), dtype=np.float32)
    x += means[y]
    edge_index = torch.from_numpy(np.stack(np.divmod(arcs, nodes)))
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=edge_index)


def _pairs(rng: np.random.Generator, y: np.ndarray, count: int, within: bool) -> np.ndarray:
    """``count`` distinct keys u · N + v, u < v, of random pairs inside one class or between two.

    Repeats are drawn again, O(count) work in all because at most half of the possible pairs are ever asked for.
    """
    sizes = np.bincount(y)
    same, other = _available(sizes)
    if count > (same if within else other) // 2:
        place = "inside the classes" if within else "between the classes"
        raise InputError(
            f"synthetic: {count} pairs {place} are more than half of all there can be; lower degree or raise nodes"
        )
    members, first = np.argsort(y, kind="stable"), np.cumsum(sizes) - sizes
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        u = rng.integers(y.size, size=count - found.size + count // 20 + 16)
        partner = y[u] if within else (y[u] + rng.integers(1, sizes.size, size=u.size)) % sizes.size
        v = members[first[partner] + rng.integers(sizes[partner])]
        keys = np.minimum(u, v) * y.size + np.maximum(u, v)
        found = _distinct(np.concatenate([found, keys[u != v]]))
    # the keys are sorted: what is too much must go at random, not at the high-numbered nodes
    return np.delete(found, rng.choice(found.size, found.size - count, replace=False))


def _distinct(keys: np.ndarray) -> np.ndarray:
    """The sorted distinct keys; np.unique hashes integers since numpy 2.3, which takes 70 times as long here."""
    keys = np.sort(keys)
    return keys[np.flatnonzero(np.diff(keys, prepend=-1))]


def _available(sizes: np.ndarray) -> tuple[int, int]:
    """How many pairs lie inside the classes and how many between them."""
    total, same = int(sizes.sum()), sum(int(size) * (int(size) - 1) // 2 for size in sizes)
    return same, total * (total - 1) // 2 - same
