"""What a sparse graph looks like beside the dense one."""

from typing import Any

from torch import Tensor

from gst.api.result import Result
from gst.graph.edgeset import EdgeSet


def inspect_run(result: Result) -> dict[str, tuple[Any, Any]]:
    """Facts of structure, each as (dense, sparse); None where the run does not hold them."""
    sparse = EdgeSet.from_edge_index(result.graph.edge_index, int(result.graph.num_nodes))
    total, kept = result.metrics["edges_total"], result.metrics["edges_kept"]
    nodes = sparse.num_nodes
    return {
        "nodes": (nodes, nodes),
        "arcs" if result.metrics["directed"] else "pairs": (total, kept),
        "columns of edge_index": (result.edge_mask.numel(), result.graph.num_edges),
        "edges a node": (round(total / nodes, 2), round(kept / nodes, 2)),
        "isolated nodes": (None, int((sparse.degree == 0).sum())),
        "connected components": (None, int(sparse.components.max()) + 1),
        "homophily": (None, homophily(sparse, result.graph.get("y"))),
    }


def homophily(edges: EdgeSet, y: Tensor | None) -> float | None:
    """Share of edges whose ends have the same known class."""
    if not isinstance(y, Tensor) or y.dim() != 1:
        return None
    u, v = edges.pairs
    known = (y[u] >= 0) & (y[v] >= 0)
    return round(float((y[u] == y[v])[known].double().mean()), 3) if bool(known.any()) else None
