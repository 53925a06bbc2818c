"""What one answer of a result reads, counted without answering."""

from typing import Any, Protocol

import torch
from torch_geometric.data import Data

from gst.graph.edgeset import EdgeSet
from gst.inference.serving.single import distribution, nodes_read, sample
from gst.methods.removed import Removed
from gst.nn.backbones import Backbone

NODES = 100  # test nodes that are counted


class Served(Protocol):
    """What is read of a :class:`gst.Result`."""

    graph: Any
    edge_mask: Any
    model: Any
    removed: Removed | None


def reads_of(result: Served) -> dict[str, dict[str, float]]:
    """Percentiles and mean of the nodes read per answer: ``sparse``, and ``dense`` where all edges are known.

    Empty for models that are not backbones of gst, whose hops are not known without a call.
    """
    graph, model = result.graph, result.model
    if not isinstance(graph, Data) or not isinstance(model, Backbone):
        return {}
    nodes, mask = int(graph.num_nodes), graph.get("test_mask")
    candidates = torch.arange(nodes) if mask is None or not bool(mask.any()) else mask.cpu().nonzero().flatten()
    chosen = sample(candidates, NODES)
    columns = {"sparse": graph.edge_index.cpu()}
    if result.removed is not None:
        columns["dense"] = result.removed.dense(graph, result.edge_mask)[0]
    return {
        name: distribution(nodes_read(EdgeSet.from_edge_index(index, nodes), len(model.stack), chosen))
        for name, index in columns.items()
    }
