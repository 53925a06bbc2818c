"""Relocated edges: the perturbation of the paper's defence experiment."""

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet


def relocate(data: Data, share: float, seed: int = 0) -> Data:
    """``data`` with one end of ``round(share · E)`` random edges moved to a random node.

    No edge becomes a self-loop or equal to another edge, old or new, so the number of edges stays the same. Both arcs
    of a pair move together; edge-level attributes move with their edge. Self-loops do not move.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=100,degree=4")
    >>> moved = relocate(data, 0.2)
    >>> now, before = (set(map(tuple, graph.edge_index.T.tolist())) for graph in (moved, data))
    >>> len(now), len(now & before)
    (400, 320)
    """
    if not 0 <= share <= 1:
        raise InputError(f"share = {share!r} of the edges to relocate: a number from 0 to 1 is needed")
    edges = EdgeSet.from_data(data)
    rng = np.random.default_rng(seed)
    pairs = edges.pairs.T.tolist()
    taken = set(map(tuple, pairs))
    if len(taken) > edges.num_nodes * (edges.num_nodes - 1) // 4:
        raise InputError("more than half of all pairs are edges: there is no room to relocate them")
    for e in rng.permutation(edges.num_edges)[: round(share * edges.num_edges)].tolist():
        u, v = pairs[e]
        while True:
            end, node = int(rng.integers(2)), int(rng.integers(edges.num_nodes))
            new = (node, v) if end == 0 else (u, node)
            if not edges.directed:
                new = (min(new), max(new))
            if new[0] != new[1] and new not in taken:
                break
        taken.add(new)  # the old pair stays taken too: no edge moves to where another came from
        pairs[e] = list(new)
    return _with_pairs(data, edges, torch.tensor(pairs).T)


def _with_pairs(data: Data, edges: EdgeSet, pairs: torch.Tensor) -> Data:
    """``data`` with the columns of every edge e joining ``pairs[:, e]``, in the direction they had."""
    index = data.edge_index.clone()
    columns = (edges.column_edge >= 0).nonzero().flatten()  # self-loops have no edge
    edge = edges.column_edge[columns]
    reverse = index[0, columns] != edges.pairs[0, edge]
    moved = pairs[:, edge]
    index[:, columns] = torch.where(reverse, moved.flip(0), moved)
    graph = data.clone()
    graph.edge_index = index
    return graph
