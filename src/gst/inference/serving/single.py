"""What single answers cost: the nodes that they read and the time that they take, on the dense and the sparse graph."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gst.graph.edgeset import EdgeSet
from gst.inference.serving.engine import Engine
from gst.inference.serving.field import receptive_field
from gst.inference.serving.rows import fixed

REPEATS = 3  # times that each node is answered; the least time counts, to which other load has added least


def single_answers(engines: Mapping[str, Engine], nodes: Sequence[int], repeats: int = REPEATS) -> dict[str, Any]:
    """For every engine the distributions of ``reads`` (nodes), ``bytes`` and ``us`` (microseconds).

    The engines take turns, node by node, in an order that changes, so that other load affects all alike.
    """
    reads: dict[str, list[int]] = {name: [] for name in engines}
    sizes: dict[str, list[int]] = {name: [] for name in engines}
    times: dict[str, list[float]] = {name: [] for name in engines}
    for engine in engines.values():
        engine(int(nodes[0]))  # compiles, and reserves scratch space
    for turn, node in enumerate(nodes):
        for name, engine in list(engines.items())[:: 1 if turn % 2 else -1]:
            least = float("inf")
            for _ in range(repeats):
                start = time.perf_counter()
                engine(node)
                least = min(least, time.perf_counter() - start)
            read = engine.reads(node)
            reads[name].append(read.nodes)
            sizes[name].append(read.bytes)
            times[name].append(1e6 * least)
    return {
        name: {
            "reads": distribution(reads[name]),
            "bytes": distribution(sizes[name]),
            "us": distribution(times[name]),
        }
        for name in engines
    }


def nodes_read(edges: EdgeSet, depth: int, nodes: Sequence[int]) -> list[int]:
    """How many nodes each of these answers reads, by a network of so many layers."""
    neighbours, mark = edges.neighbours, np.full(edges.num_nodes, -1, np.int32)
    arcs = fixed(neighbours.start, neighbours.source)
    return [receptive_field(np.array([node]), arcs, depth, mark)[1].size for node in nodes]


def distribution(values: Sequence[float]) -> dict[str, float]:
    """Percentiles and mean.

    >>> distribution([1, 2, 3, 4, 10])
    {'p50': 3.0, 'p90': 7.6, 'p99': 9.76, 'mean': 4.0}
    """
    p50, p90, p99 = (round(float(p), 3) for p in np.percentile(values, (50, 90, 99)))
    return {"p50": p50, "p90": p90, "p99": p99, "mean": round(float(np.mean(values)), 3)}


def sample(nodes: torch.Tensor, count: int, seed: int = 0) -> list[int]:
    """At most so many of these nodes, drawn without replacement."""
    order = torch.randperm(nodes.numel(), generator=torch.Generator().manual_seed(seed))
    return nodes[order[:count]].tolist()
