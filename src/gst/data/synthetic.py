"""Graphs of any size with labels and features: the contextual stochastic block model."""

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.memory import check_memory
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.splits import Sizes


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
        homophily: share of the pairs within a class; the others join two classes.
        signal: length of the class means, in standard deviations of the noise.
        seed: the same seed gives the same graph.
    """
    rules = {
        f"classes={classes} must be 2 or more": classes >= 2,
        f"nodes={nodes} must be at least 3 per class": nodes >= 3 * classes,
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

    Repeated pairs are drawn again: O(count) work, because ``count`` is at most half of the possible pairs.
    """
    sizes = np.bincount(y)
    same, other = _available(sizes)
    if count > (same if within else other) // 2:
        where = "inside the classes" if within else "between the classes"
        raise InputError(
            f"synthetic: {count} pairs {where} are more than half of the possible ones; lower degree or raise nodes"
        )
    members = np.argsort(y, kind="stable")
    first = np.cumsum(sizes) - sizes
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < count:
        u = rng.integers(y.size, size=count - drawn.size + count // 20 + 16)
        partner = y[u] if within else (y[u] + rng.integers(1, sizes.size, size=u.size)) % sizes.size
        v = members[first[partner] + rng.integers(sizes[partner])]
        keys = np.minimum(u, v) * y.size + np.maximum(u, v)
        drawn = _distinct(np.concatenate([drawn, keys[u != v]]))
    # the keys are sorted: a cut at the end would thin out the high-numbered nodes, so the surplus goes at random
    return np.delete(drawn, rng.choice(drawn.size, drawn.size - count, replace=False))


def _distinct(keys: np.ndarray) -> np.ndarray:
    """The sorted distinct keys; np.unique hashes integers since numpy 2.3, which is 70 times slower here."""
    keys = np.sort(keys)
    return keys[np.flatnonzero(np.diff(keys, prepend=-1))]


def _available(sizes: np.ndarray) -> tuple[int, int]:
    """How many pairs lie inside the classes and how many between them."""
    total = int(sizes.sum())
    same = sum(int(size) * (int(size) - 1) // 2 for size in sizes)
    return same, total * (total - 1) // 2 - same


_INFO = DatasetInfo(
    name="synthetic",
    nodes=2000,
    edges=10_000,
    features=32,
    classes=5,
    metric="accuracy",
    directed=False,
    split="random: 20 train per class, 500 val, rest test",
    source="block model",
)
DATASETS.register("synthetic")(Dataset(_INFO, synthetic, Sizes(train=20, val=500)))
