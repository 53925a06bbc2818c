"""What a method removed: facts small enough to travel with every run."""

from functools import lru_cache
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.graph.edgeset import EdgeSet

_CENTRE_DEGREE = 7  # enough neighbours to see a choice, few enough to draw
_NODES = 36  # of a drawing
_FANOUT = 6  # neighbours drawn of one node, so that a hub does not fill the picture


def facts_of(data: Data, edges: EdgeSet, keep: Tensor) -> dict[str, Any]:
    """Degrees and homophily of kept and removed edges, the state of the nodes, and a drawn neighbourhood.

    ``edges`` is the full graph, ``keep`` one truth value an edge. Everything is plain JSON of a few kilobytes.

    - ``degree``: edges by the smaller of their two degrees in the full graph, ``kept`` and ``removed`` counted from
      each value of ``from`` (1, 2, 4, 8, …) up to the next;
    - ``homophily``: edges whose ends have the same class, another, or one that is not known;
    - ``nodes``: how many, isolated ones and components, before and after;
    - ``neighbourhood``: the same part of the graph for every method, see :func:`neighbourhood`.
    """
    keep = keep.bool().cpu()
    edges = edges.to(torch.device("cpu"))
    sparse = edges.subset(keep)
    return {
        "degree": _degrees(edges, keep),
        "homophily": _homophily(edges, keep, data.get("y")),
        "nodes": {
            "all": edges.num_nodes,
            "isolated": [int((which.degree == 0).sum()) for which in (edges, sparse)],
            "components": [int(which.components.max()) + 1 for which in (edges, sparse)],
        },
        "neighbourhood": neighbourhood(edges, keep, data.get("y")),
    }


def _degrees(edges: EdgeSet, keep: Tensor) -> dict[str, list[int]]:
    smaller = edges.degree[edges.pairs].amin(0)
    power = smaller.double().log2().floor().long()  # ⌊log2 d⌋: exact, since doubles hold powers of two
    bins = int(power.max()) + 1
    counted = {name: torch.bincount(power[which], minlength=bins) for name, which in _parts(keep)}
    return {"from": [2**b for b in range(bins)]} | {name: count.tolist() for name, count in counted.items()}


def _homophily(edges: EdgeSet, keep: Tensor, y: Tensor | None) -> dict[str, dict[str, int]]:
    known, same = torch.zeros_like(keep), torch.zeros_like(keep)
    if isinstance(y, Tensor) and y.dim() == 1:
        u, v = y.cpu()[edges.pairs]
        known, same = (u >= 0) & (v >= 0), u == v
    return {
        name: {
            "same": int((which & known & same).sum()),
            "different": int((which & known & ~same).sum()),
            "unknown": int((which & ~known).sum()),
        }
        for name, which in _parts(keep)
    }


def _parts(keep: Tensor) -> list[tuple[str, Tensor]]:
    return [("kept", keep), ("removed", ~keep)]


def neighbourhood(edges: EdgeSet, keep: Tensor, y: Tensor | None = None) -> dict[str, Any]:
    """A part to draw: ``nodes`` [id, x, y, class or None], centre first; ``edges`` [i, j, kept] between their places.

    The centre is the node whose degree is nearest to 7, the lowest id among equals; around it at most 36 nodes,
    nearest first. Neither choice looks at ``keep``, so the drawings of two methods show the same place.
    """
    centre = int((edges.degree - _CENTRE_DEGREE).abs().argmin())
    u, v = edges.pairs
    nodes = [centre]
    seen = {centre}
    for node in nodes:  # grows as it goes: breadth first
        here = torch.cat([v[u == node], u[v == node]]).unique().tolist()
        new = [other for other in here if other not in seen][: _FANOUT if node != centre else None]
        new = new[: _NODES - len(nodes)]
        nodes += new
        seen.update(new)
        if len(nodes) == _NODES:
            break
    place = torch.full((edges.num_nodes,), -1)
    place[nodes] = torch.arange(len(nodes))
    inside = ((place[u] >= 0) & (place[v] >= 0)).nonzero().flatten()
    drawn = [[int(place[u[e]]), int(place[v[e]]), int(keep[e])] for e in inside.tolist()]
    classes = y.cpu()[nodes].long().tolist() if isinstance(y, Tensor) and y.dim() == 1 else [None] * len(nodes)
    points = _layout(len(nodes), tuple((i, j) for i, j, _ in drawn))
    return {"nodes": [[node, *points[i], classes[i]] for i, node in enumerate(nodes)], "edges": drawn}


@lru_cache(maxsize=8)  # every run on a graph draws the same place
def _layout(count: int, joined: tuple[tuple[int, int], ...]) -> list[list[float]]:
    """Positions in [−1, 1]² by the full graph's distances (Kamada–Kawai: no random numbers)."""
    if count == 1:
        return [[0.0, 0.0]]
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(joined)
    found = nx.kamada_kawai_layout(graph)
    return [[round(float(c), 3) for c in found[i]] for i in range(count)]
