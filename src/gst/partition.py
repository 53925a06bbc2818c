"""A graph cut into parts of equal size with few edges between them."""

import torch
from torch import Tensor

from gst.errors import InputError
from gst.graph import EdgeSet


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
