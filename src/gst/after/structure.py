"""The structure of a sparse graph compared with the dense one."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gst.base.optional import optional
from gst.graph.edgeset import EdgeSet
from gst.methods.reads import reads_of
from gst.methods.result import Result

_CENTRE_DEGREE = 7  # enough neighbours to see a selection, few enough to draw
_MAX_NODES = 36  # of a drawing
_FANOUT = 6  # neighbours drawn per node, so that a hub does not fill the picture


def inspect_run(result: Result) -> dict[str, tuple[Any, Any]]:
    """Facts about the structure, each as (dense, sparse); None where the run does not hold the value."""
    if isinstance(result.graph, HeteroData):
        return _typed_facts(result)
    sparse = EdgeSet.from_edge_index(result.graph.edge_index, int(result.graph.num_nodes))
    total, num_kept = result.metrics["edges_total"], result.metrics["edges_kept"]
    nodes = sparse.num_nodes
    return {
        "nodes": (nodes, nodes),
        result.metrics["by"]: (total, num_kept),
        "columns of edge_index": (result.edge_mask.numel(), result.graph.num_edges),
        "edges per node": (round(total / nodes, 2), round(num_kept / nodes, 2)),
        "isolated nodes": (None, _num_isolated(sparse)),
        "connected components": (None, _num_components(sparse)),
        "homophily": (None, homophily(sparse, result.graph.get("y"))),
        **_reads(result),
    }


def _reads(result: Result) -> dict[str, tuple[Any, Any]]:
    """Nodes read per answer of a test node."""
    reads = reads_of(result)
    if not reads:
        return {}
    dense, sparse = reads.get("dense", {}), reads["sparse"]
    names = {"p50": "median", "mean": "mean", "p99": "99th percentile"}
    return {f"nodes read per answer, {name}": (dense.get(part), sparse[part]) for part, name in names.items()}


def _typed_facts(result: Result) -> dict[str, tuple[Any, Any]]:
    """Edges and columns, relation by relation."""
    metrics, graph = result.metrics, result.graph
    facts: dict[str, tuple[Any, Any]] = {"nodes": (graph.num_nodes, graph.num_nodes)}
    facts["edges"] = (metrics["edges_total"], metrics["edges_kept"])
    for name, row in metrics.get("relations", {}).items():
        facts[f"edges of {name}"] = (row["total"], row["kept"])
    for kind, mask in result.edge_mask.items():
        facts[f"columns of {'__'.join(kind)}"] = (mask.numel(), int(mask.sum()))
    return facts


def homophily(edges: EdgeSet, y: Tensor | None) -> float | None:
    """Share of edges whose ends have the same class, among those whose classes are known."""
    if not isinstance(y, Tensor) or y.dim() != 1:
        return None
    u, v = edges.pairs
    known = (y[u] >= 0) & (y[v] >= 0)
    return round(float((y[u] == y[v])[known].double().mean()), 3) if bool(known.any()) else None


def facts_of(data: Data, edges: EdgeSet, keep_mask: Tensor) -> dict[str, Any]:
    """Degrees and homophily of kept and removed edges, isolated nodes and components, and a drawn neighbourhood.

    ``edges`` is the full graph, ``keep_mask`` one bool per edge. The result is plain JSON of a few kilobytes:

    - ``degree``: edges by the smaller of their two degrees in the full graph, ``kept`` and ``removed`` counted from
      each value of ``from`` (1, 2, 4, 8, …) up to the next;
    - ``homophily``: edges whose ends have the same class, different classes, or an unknown one;
    - ``nodes``: number of nodes, isolated ones and components, before and after;
    - ``neighbourhood``: the same part of the graph for every method, see :func:`neighbourhood`.
    """
    keep_mask = keep_mask.bool().cpu()
    edges = edges.to(torch.device("cpu"))
    sparse = edges.subset(keep_mask)
    drawn, shown = _as_pairs(edges, keep_mask)
    return {
        "degree": _degrees(edges, keep_mask, drawn.degree),
        "homophily": _homophily_counts(edges, keep_mask, data.get("y")),
        "nodes": {
            "all": edges.num_nodes,
            "isolated": [_num_isolated(edges), _num_isolated(sparse)],
            "components": [_num_components(edges), _num_components(sparse)],
        },
        "neighbourhood": neighbourhood(drawn, shown, data.get("y")),
    }


def _as_pairs(edges: EdgeSet, keep_mask: Tensor) -> tuple[EdgeSet, Tensor]:
    """The pairs of an undirected graph whose edges are counted by arcs, and whether an arc of each is kept.

    So that its nodes have the degrees, and a drawing the lines, that they have where edges are counted by pairs.
    """
    if not (edges.directed and edges.symmetric):
        return edges, keep_mask
    pairs = edges.underlying
    kept = torch.zeros(pairs.num_edges, dtype=torch.bool)
    kept[pairs.column_edge[: edges.num_edges][keep_mask]] = True
    return pairs, kept


def _num_isolated(edges: EdgeSet) -> int:
    return int((edges.degree == 0).sum())


def _num_components(edges: EdgeSet) -> int:
    return int(edges.components.max()) + 1


def _degrees(edges: EdgeSet, keep_mask: Tensor, degree: Tensor) -> dict[str, list[int]]:
    smaller = degree[edges.pairs].amin(0)
    power = smaller.double().log2().floor().long()  # ⌊log2 d⌋: exact, since doubles hold powers of two
    bins = int(power.max()) + 1
    counts = {name: torch.bincount(power[mask], minlength=bins) for name, mask in _parts(keep_mask)}
    return {"from": [2**b for b in range(bins)]} | {name: count.tolist() for name, count in counts.items()}


def _homophily_counts(edges: EdgeSet, keep_mask: Tensor, y: Tensor | None) -> dict[str, dict[str, int]]:
    known, same = torch.zeros_like(keep_mask), torch.zeros_like(keep_mask)
    if isinstance(y, Tensor) and y.dim() == 1:
        u, v = y.cpu()[edges.pairs]
        known, same = (u >= 0) & (v >= 0), u == v
    return {
        name: {
            "same": int((mask & known & same).sum()),
            "different": int((mask & known & ~same).sum()),
            "unknown": int((mask & ~known).sum()),
        }
        for name, mask in _parts(keep_mask)
    }


def _parts(keep_mask: Tensor) -> list[tuple[str, Tensor]]:
    return [("kept", keep_mask), ("removed", ~keep_mask)]


def neighbourhood(edges: EdgeSet, keep_mask: Tensor, y: Tensor | None = None) -> dict[str, Any]:
    """A part to draw: ``nodes`` as [id, x, y, class or None], centre first; ``edges`` as [i, j, kept].

    The centre is the node with a degree nearest to 7, the lowest id among several; around it at most 36 nodes, nearest
    first. Neither depends on ``keep_mask``, so that the drawings of two methods show the same nodes.
    """
    centre = int((edges.degree - _CENTRE_DEGREE).abs().argmin())
    u, v = edges.pairs
    nodes = [centre]
    seen = {centre}
    for node in nodes:  # breadth first: the list grows in the loop
        neighbours = torch.cat([v[u == node], u[v == node]]).unique().tolist()
        new = [other for other in neighbours if other not in seen][: _FANOUT if node != centre else None]
        new = new[: _MAX_NODES - len(nodes)]
        nodes += new
        seen.update(new)
        if len(nodes) == _MAX_NODES:
            break
    index = torch.full((edges.num_nodes,), -1)
    index[nodes] = torch.arange(len(nodes))
    inside = ((index[u] >= 0) & (index[v] >= 0)).nonzero().flatten()
    drawn = [[int(index[u[e]]), int(index[v[e]]), int(keep_mask[e])] for e in inside.tolist()]
    classes = y.cpu()[nodes].long().tolist() if isinstance(y, Tensor) and y.dim() == 1 else [None] * len(nodes)
    points = _layout(len(nodes), tuple((i, j) for i, j, _ in drawn))
    return {"nodes": [[node, *points[i], classes[i]] for i, node in enumerate(nodes)], "edges": drawn}


@lru_cache(maxsize=8)  # every run on a graph draws the same part
def _layout(count: int, pairs: tuple[tuple[int, int], ...]) -> list[list[float]]:
    """Positions in [−1, 1]² by distances in the full graph (Kamada–Kawai: no random numbers)."""
    if count == 1:
        return [[0.0, 0.0]]
    nx = optional("networkx", "the drawing of a neighbourhood")
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(pairs)
    positions = nx.kamada_kawai_layout(graph)
    return [[round(float(c), 3) for c in positions[i]] for i in range(count)]
