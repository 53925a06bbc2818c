"""Stand-ins for OGB's large graphs: same sizes, random content. For speed and memory only, never for accuracy."""

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.data.published import Published
from gst.data.symmetrize import chunks, drop_repeats, symmetric

INSIDE = 0.7  # share of the pairs drawn inside a community
SIGNAL = 1.0  # length of the communities' mean features, in standard deviations of the noise
LEAST = 8  # communities, where they are not at least the classes
TAIL = 1.5  # degrees fall as k^−(1 + TAIL), a usual power law


def twin(of: Published, *, scale: float = 1.0, seed: int = 0) -> Data:
    """A random graph of ``scale`` times the nodes and edges: heavy-tailed degrees, communities, labels, features.

    A degree-corrected block model (Karrer & Newman, 2011) with an exact number of distinct pairs, in O(E) draws. Nodes
    of a community share a class, or the odds of each label, and the mean of their features.

    Args:
        of: which graph.
        scale: of nodes and edges alike, so that the mean degree stays.
        seed: the same seed gives the same graph.
    """
    if not 0 < scale < float("inf"):
        raise InputError(f"synthetic-{of.name}: scale={scale} must be a number above 0")
    if seed < 0:
        raise InputError(f"synthetic-{of.name}: seed={seed} must be 0 or more")
    nodes, edges = round(of.nodes * scale), round(of.rows * scale)
    if nodes < 3 * of.classes or edges > nodes * (nodes - 1) // 4:
        few = f"at least {3 * of.classes} nodes are needed, and edges at most half of all pairs; raise scale"
        raise InputError(f"synthetic-{of.name}: scale={scale} gives {nodes} nodes and {edges} edges: {few}")
    if nodes >= 2**31:
        raise InputError(f"synthetic-{of.name}: scale={scale} gives {nodes} nodes: below 2³¹ are possible")
    rng = np.random.default_rng(seed)
    roomy = nodes**2 / (8 * edges)  # four times the mean degree in a community: there are pairs enough inside
    count = max(LEAST if of.multilabel else of.classes, round(min(nodes**0.5, roomy)))
    community = _communities(rng, nodes, count)
    index = symmetric(_pairs(rng, community, count, edges, of.hub), nodes)
    y = _labels(rng, community, count, of.classes) if of.multilabel else _classes(rng, community, count, of.classes)
    x = _features(rng, community, count, of.features)
    parts = _parts(rng, nodes, [part / of.nodes for part in of.parts])
    masks = {f"{name}_mask": torch.from_numpy(mask) for name, mask in zip(("train", "val", "test"), parts, strict=True)}
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=torch.from_numpy(index), **masks)


def _communities(rng: np.random.Generator, nodes: int, count: int) -> np.ndarray:
    """A community for every node: of unequal sizes, none empty, in no order of node ids."""
    odds = rng.lognormal(size=count)
    some = rng.choice(count, size=nodes - count, p=odds / odds.sum())
    return rng.permutation(np.concatenate([np.arange(count), some]))


def _pairs(rng: np.random.Generator, community: np.ndarray, count: int, edges: int, hub: float) -> np.ndarray:
    """Sorted distinct keys u · N + v, u < v.

    Ends are drawn from a list that names every node as often as its wanted degree, communities one after another, so
    that "any node" and "any node of this community" are both a range of it. A small dense graph may have no pairs left
    where the model wants them: round by round more ends are drawn evenly from all nodes.
    """
    nodes = community.size
    weight = rng.pareto(TAIL, nodes) + 0.2
    weight = np.minimum(weight, hub * weight.mean())
    wanted = np.maximum(1, np.round(weight * (2 * edges / weight.sum()))).astype(np.int64)
    order = np.argsort(community, kind="stable").astype(np.int32)
    ends = np.repeat(order, wanted[order])
    start = np.concatenate([[0], np.cumsum(np.bincount(community, weights=wanted, minlength=count))]).astype(np.int64)

    def draw(size: int, even: float) -> np.ndarray:
        u = ends[rng.integers(ends.size, size=size)]
        home, inside = community[u], rng.random(size) < INSIDE
        low, high = np.where(inside, start[home], 0), np.where(inside, start[home + 1], ends.size)
        v = ends[rng.integers(low, high)]
        if even:
            u, v = (np.where(rng.random(size) < even, rng.integers(nodes, size=size), end) for end in (u, v))
        return (np.minimum(u, v).astype(np.int64) * nodes + np.maximum(u, v))[u != v]

    found, even = np.empty(0, dtype=np.int64), 0.0
    while found.size < edges:
        missing = edges - found.size + edges // 50 + 16
        more = np.concatenate([found, *(draw(part.stop - part.start, even) for part in chunks(missing))])
        more.sort()
        found, even = drop_repeats(more), (1 + even) / 2
    # the keys are sorted: what is too much must go at random, not at the high-numbered nodes
    return np.delete(found, rng.choice(found.size, found.size - edges, replace=False, shuffle=False))


def _classes(rng: np.random.Generator, community: np.ndarray, count: int, classes: int) -> np.ndarray:
    """One class a community, every class at least once."""
    return np.concatenate([np.arange(classes), rng.integers(classes, size=count - classes)])[community]


def _labels(rng: np.random.Generator, community: np.ndarray, count: int, labels: int) -> np.ndarray:
    """Yes/no labels [N, labels]: rare in most communities, frequent in a few."""
    odds = rng.beta(0.2, 1.0, size=(count, labels)).astype(np.float32)
    return (rng.random((community.size, labels), dtype=np.float32) < odds[community]).astype(np.int64)


def _features(rng: np.random.Generator, community: np.ndarray, count: int, features: int) -> np.ndarray:
    means = rng.standard_normal((count, features), dtype=np.float32)
    means *= SIGNAL / np.linalg.norm(means, axis=1, keepdims=True)
    x = rng.standard_normal((community.size, features), dtype=np.float32)
    for part in chunks(community.size):
        x[part] += means[community[part]]
    return x


def _parts(rng: np.random.Generator, nodes: int, shares: list[float]) -> list[np.ndarray]:
    """Random masks of these shares, which together are all nodes."""
    ends = np.round(np.cumsum(shares) * nodes).astype(np.int64)
    place = rng.permutation(nodes)
    return [(place >= low) & (place < high) for low, high in zip([0, *ends[:-1]], ends, strict=True)]
