"""Synthetic twins of OGB's large graphs: same sizes, random content. They measure time and memory, never accuracy."""

from functools import partial

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.data.ogb_spec import SPECS, OGBSpec
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.symmetrize import chunks, drop_repeats, symmetric

INSIDE = 0.7  # share of the pairs drawn inside a community
SIGNAL = 1.0  # length of the communities' mean features, in standard deviations of the noise
MIN_COMMUNITIES = 8  # of a multilabel graph; others have at least one per class
TAIL = 1.5  # degrees follow the power law k^−(1 + TAIL)


def twin(spec: OGBSpec, *, scale: float = 1.0, seed: int = 0) -> Data:
    """A random graph of ``scale`` times the nodes and edges: heavy-tailed degrees, communities, labels, features.

    A degree-corrected block model (Karrer & Newman, 2011) with an exact number of distinct pairs, in O(E) draws. Nodes
    of a community share their class, or the probability of each label, and the mean of their features.

    Args:
        spec: the graph to imitate.
        scale: factor of both nodes and edges, so that the mean degree stays the same.
        seed: the same seed gives the same graph.
    """
    if not 0 < scale < float("inf"):
        raise InputError(f"synthetic-{spec.name}: scale={scale} must be a number above 0")
    if seed < 0:
        raise InputError(f"synthetic-{spec.name}: seed={seed} must be 0 or more")
    nodes, edges = round(spec.nodes * scale), round(spec.rows * scale)
    if nodes < 3 * spec.classes or edges > nodes * (nodes - 1) // 4:
        limits = f"at least {3 * spec.classes} nodes are needed, and edges at most half of all pairs; raise scale"
        raise InputError(f"synthetic-{spec.name}: scale={scale} gives {nodes} nodes and {edges} edges: {limits}")
    if nodes >= 2**31:
        raise InputError(
            f"synthetic-{spec.name}: scale={scale} gives {nodes} nodes: fewer than 2³¹ are possible; lower scale"
        )
    rng = np.random.default_rng(seed)
    max_communities = nodes**2 / (8 * edges)  # each of four times the mean degree: enough pairs inside
    count = max(MIN_COMMUNITIES if spec.multilabel else spec.classes, round(min(nodes**0.5, max_communities)))
    community = _communities(rng, nodes, count)
    index = symmetric(_pairs(rng, community, count, edges, spec.hub), nodes)
    y = (
        _labels(rng, community, count, spec.classes)
        if spec.multilabel
        else _classes(rng, community, count, spec.classes)
    )
    x = _features(rng, community, count, spec.features)
    parts = _parts(rng, nodes, [part / spec.nodes for part in spec.parts])
    masks = {f"{name}_mask": torch.from_numpy(mask) for name, mask in zip(("train", "val", "test"), parts, strict=True)}
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=torch.from_numpy(index), **masks)


def _communities(rng: np.random.Generator, nodes: int, count: int) -> np.ndarray:
    """The community of every node: of unequal sizes, none empty, independent of the node ids."""
    odds = rng.lognormal(size=count)
    others = rng.choice(count, size=nodes - count, p=odds / odds.sum())
    return rng.permutation(np.concatenate([np.arange(count), others]))


def _pairs(rng: np.random.Generator, community: np.ndarray, count: int, edges: int, hub: float) -> np.ndarray:
    """Sorted distinct keys u · N + v, u < v.

    Ends are drawn from a list that repeats every node as often as its target degree, sorted by community, so that "any
    node" and "any node of this community" are both ranges of it. A small dense graph may have too few pairs for the
    model: a share ``uniform`` of the ends, which grows with every round, is drawn uniformly from all nodes.
    """
    nodes = community.size
    weight = rng.pareto(TAIL, nodes) + 0.2
    weight = np.minimum(weight, hub * weight.mean())
    target_degree = np.maximum(1, np.round(weight * (2 * edges / weight.sum()))).astype(np.int64)
    order = np.argsort(community, kind="stable").astype(np.int32)
    ends = np.repeat(order, target_degree[order])
    ends_inside = np.bincount(community, weights=target_degree, minlength=count)
    start = np.concatenate([[0], np.cumsum(ends_inside)]).astype(np.int64)

    def draw(size: int, uniform: float) -> np.ndarray:
        u = ends[rng.integers(ends.size, size=size)]
        home, inside = community[u], rng.random(size) < INSIDE
        low, high = np.where(inside, start[home], 0), np.where(inside, start[home + 1], ends.size)
        v = ends[rng.integers(low, high)]
        if uniform:
            u, v = (np.where(rng.random(size) < uniform, rng.integers(nodes, size=size), end) for end in (u, v))
        return (np.minimum(u, v).astype(np.int64) * nodes + np.maximum(u, v))[u != v]

    drawn = np.empty(0, dtype=np.int64)
    uniform = 0.0
    while drawn.size < edges:
        missing = edges - drawn.size + edges // 50 + 16
        keys = np.concatenate([drawn, *(draw(part.stop - part.start, uniform) for part in chunks(missing))])
        keys.sort()
        drawn = drop_repeats(keys)
        uniform = (1 + uniform) / 2
    # the keys are sorted: a cut at the end would thin out the high-numbered nodes, so the surplus goes at random
    return np.delete(drawn, rng.choice(drawn.size, drawn.size - edges, replace=False, shuffle=False))


def _classes(rng: np.random.Generator, community: np.ndarray, count: int, classes: int) -> np.ndarray:
    """One class per community, every class at least once."""
    return np.concatenate([np.arange(classes), rng.integers(classes, size=count - classes)])[community]


def _labels(rng: np.random.Generator, community: np.ndarray, count: int, labels: int) -> np.ndarray:
    """Binary labels [N, labels]: rare in most communities, frequent in a few."""
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
    """Random disjoint masks of these shares, which together cover all nodes."""
    ends = np.round(np.cumsum(shares) * nodes).astype(np.int64)
    rank = rng.permutation(nodes)
    return [(rank >= low) & (rank < high) for low, high in zip([0, *ends[:-1]], ends, strict=True)]


def _info(spec: OGBSpec) -> DatasetInfo:
    sizes = (spec.nodes, spec.rows, spec.features, spec.classes)
    split = f"drawn with the graph: {spec.shares}"
    return DatasetInfo(f"synthetic-{spec.name}", *sizes, spec.metric, False, split, "block model")


for _spec in SPECS:
    DATASETS.register(f"synthetic-{_spec.name}")(Dataset(_info(_spec), partial(twin, _spec)))
