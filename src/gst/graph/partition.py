"""A graph cut into parts of equal size with few edges between them."""

import numpy as np
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.jit import njit
from gst.graph.edgeset import EdgeSet

METIS_EDGES = 2_000_000  # beyond, METIS takes a minute and more, and 250 bytes an edge


def metis(edges: EdgeSet, parts: int, seed: int = 0) -> Tensor:
    """The part of every node, 0 … parts − 1, by METIS (Karypis & Kumar, SIAM J. Sci. Comput. 1998).

    Directions and weights do not matter. Same seed, same parts.
    """
    if not 1 <= parts <= edges.num_nodes:
        raise InputError(f"a graph of {edges.num_nodes} nodes cannot have {parts} parts: 1 … {edges.num_nodes} can be")
    if parts == 1 or edges.num_edges == 0:
        return torch.arange(edges.num_nodes, device=edges.pairs.device) % parts
    import pymetis  # noqa: PLC0415 - few need it, and it is slow to load

    u, v = edges.pairs.cpu()
    pairs = torch.stack([u, v]) if not edges.directed else _distinct_pairs(u, v, edges.num_nodes)
    row, col = torch.cat([pairs, pairs.flip(0)], dim=1)
    order = torch.sort(row, stable=True).indices
    start = torch.zeros(edges.num_nodes + 1, dtype=torch.long)
    start[1:] = torch.bincount(row, minlength=edges.num_nodes).cumsum(0)
    graph = pymetis.CSRAdjacency(start.numpy(), col[order].numpy())
    found = pymetis.part_graph(parts, adjacency=graph, options=pymetis.Options(seed=seed))
    return torch.as_tensor(found.vertex_part, dtype=torch.long, device=edges.pairs.device)


def _distinct_pairs(u: Tensor, v: Tensor, nodes: int) -> Tensor:
    """Arcs as unordered pairs, each once."""
    key = torch.unique(torch.minimum(u, v) * nodes + torch.maximum(u, v))
    return torch.stack([key // nodes, key % nodes])


def partition(edges: EdgeSet, parts: int, seed: int = 0) -> Tensor:
    """The part of every node: METIS, or of graphs too large for it :func:`streamed`."""
    return (metis if edges.num_edges <= METIS_EDGES else streamed)(edges, parts, seed)


def streamed(edges: EdgeSet, parts: int, seed: int = 0, passes: int = 5) -> Tensor:
    """Parts by passing the nodes several times: each goes where most of its neighbours are, fuller parts count less.

    Linear deterministic greedy (Stanton & Kliot, KDD 2012), restreamed (Nishimura & Ugander, KDD 2013): O(E) a pass,
    with no memory beyond the list of arcs. No part is larger than 1.1 times the mean.
    """
    neighbours = edges.neighbours
    order = np.random.default_rng(seed).permutation(edges.num_nodes)
    part = np.full(edges.num_nodes, -1, np.int64)
    room = -(-11 * edges.num_nodes // (10 * parts))
    for _ in range(passes):
        _stream(neighbours.start, neighbours.source, order, part, np.zeros(parts, np.int64), room)
    return torch.from_numpy(part).to(edges.pairs.device)


@njit(cache=True)
def _stream(
    start: np.ndarray, source: np.ndarray, order: np.ndarray, part: np.ndarray, size: np.ndarray, room: int
) -> None:
    """One pass; ``size`` counts only those that this pass has placed."""
    weight = np.zeros(size.size)
    turn = 0
    for i in order:
        best, most = -1, 0.0
        for k in range(start[i], start[i + 1]):
            if part[source[k]] >= 0:
                weight[part[source[k]]] += 1
        for k in range(start[i], start[i + 1]):
            p = part[source[k]]
            if p >= 0 and weight[p] > 0:
                value = weight[p] * (1 - size[p] / room)
                weight[p] = 0
                if value > most:
                    best, most = p, value
        if best < 0:  # all its neighbours are new or in full parts: the next part in turn
            while size[turn] >= room:
                turn = (turn + 1) % size.size
            best = turn
            turn = (turn + 1) % size.size
        part[i] = best
        size[best] += 1
