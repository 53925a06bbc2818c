"""Edges with relocated ends: the perturbation of the paper's defence experiment."""

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet


def relocate(data: Data, share: float, seed: int = 0) -> Data:
    """``data`` with one end of ``round(share · E)`` random edges moved to a random node.

    No edge becomes a self-loop or a copy of another, old or new, so the graph keeps its number of edges. Both arcs of
    a pair move together; every edge-level attribute stays with its edge. Self-loops stay where they are.

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
        taken.add(new)  # what it was stays taken: nothing moves to where it came from
        pairs[e] = list(new)
    return _with_pairs(data, edges, torch.tensor(pairs).T)


def _with_pairs(data: Data, edges: EdgeSet, pairs: torch.Tensor) -> Data:
    """``data`` whose columns of edge e join the pair e of these, in the direction that they had."""
    index = data.edge_index.clone()
    real = (edges.column_edge >= 0).nonzero().flatten()
    edge = edges.column_edge[real]
    back = index[0, real] != edges.pairs[0, edge]
    moved = pairs[:, edge]
    index[:, real] = torch.where(back, moved.flip(0), moved)
    graph = data.clone()
    graph.edge_index = index
    return graph
