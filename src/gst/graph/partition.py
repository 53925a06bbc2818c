"""Partitions of a graph into parts of about equal size with few edges between them."""

import numpy as np
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.jit import njit
from gst.base.optional import optional
from gst.graph.edgeset import EdgeSet

METIS_EDGES = 2_000_000  # for more edges METIS takes more than a minute, and 250 bytes per edge


def metis(edges: EdgeSet, parts: int, seed: int = 0) -> Tensor:
    """The part of every node, 0 … parts − 1, by METIS (Karypis & Kumar, SIAM J. Sci. Comput. 1998).

    Directions and weights are ignored. The same seed gives the same parts.
    """
    if not 1 <= parts <= edges.num_nodes:
        raise InputError(f"a graph of {edges.num_nodes} nodes cannot have {parts} parts: choose 1 … {edges.num_nodes}")
    if parts == 1 or edges.num_edges == 0:
        return torch.arange(edges.num_nodes, device=edges.pairs.device) % parts
    pymetis = optional("pymetis", "batch clusters")
    u, v = edges.pairs.cpu()
    pairs = torch.stack([u, v]) if not edges.directed else _distinct_pairs(u, v, edges.num_nodes)
    row, col = torch.cat([pairs, pairs.flip(0)], dim=1)
    order = torch.sort(row, stable=True).indices
    start = torch.zeros(edges.num_nodes + 1, dtype=torch.long)
    start[1:] = torch.bincount(row, minlength=edges.num_nodes).cumsum(0)
    graph = pymetis.CSRAdjacency(start.numpy(), col[order].numpy())
    result = pymetis.part_graph(parts, adjacency=graph, options=pymetis.Options(seed=seed))
    return torch.as_tensor(result.vertex_part, dtype=torch.long, device=edges.pairs.device)


def _distinct_pairs(u: Tensor, v: Tensor, nodes: int) -> Tensor:
    """Arcs as unordered pairs, each once."""
    key = torch.unique(torch.minimum(u, v) * nodes + torch.maximum(u, v))
    return torch.stack([key // nodes, key % nodes])


def partition(edges: EdgeSet, parts: int, seed: int = 0) -> Tensor:
    """The part of every node by METIS, or by :func:`streamed` for graphs too large for METIS."""
    count = edges.num_edges // 2 if edges.directed and edges.symmetric else edges.num_edges  # the same parts by arcs
    return (metis if count <= METIS_EDGES else streamed)(edges, parts, seed)


def streamed(edges: EdgeSet, parts: int, seed: int = 0, passes: int = 5) -> Tensor:
    """The part of every node by passes in which each node joins most of its neighbours; fuller parts count less.

    Linear deterministic greedy (Stanton & Kliot, KDD 2012), restreamed (Nishimura & Ugander, KDD 2013): O(E) per pass,
    with no memory beyond the list of arcs. No part is larger than 1.1 times the mean.
    """
    neighbours = edges.neighbours
    order = np.random.default_rng(seed).permutation(edges.num_nodes)
    part = np.full(edges.num_nodes, -1, np.int64)
    max_size = -(-11 * edges.num_nodes // (10 * parts))
    for _ in range(passes):
        _stream(neighbours.start, neighbours.source, order, part, np.zeros(parts, np.int64), max_size)
    return torch.from_numpy(part).to(edges.pairs.device)


@njit(cache=True)
def _stream(
    start: np.ndarray, source: np.ndarray, order: np.ndarray, part: np.ndarray, size: np.ndarray, max_size: int
) -> None:
    """One pass; ``size`` counts only the nodes that this pass has assigned."""
    weight = np.zeros(size.size)
    turn = 0
    for i in order:
        best, best_value = -1, 0.0
        for k in range(start[i], start[i + 1]):
            if part[source[k]] >= 0:
                weight[part[source[k]]] += 1
        for k in range(start[i], start[i + 1]):
            p = part[source[k]]
            if p >= 0 and weight[p] > 0:
                value = weight[p] * (1 - size[p] / max_size)
                weight[p] = 0
                if value > best_value:
                    best, best_value = p, value
        if best < 0:  # all neighbours are unassigned or in full parts: take the next part in turn
            while size[turn] >= max_size:
                turn = (turn + 1) % size.size
            best = turn
            turn = (turn + 1) % size.size
        part[i] = best
        size[best] += 1
