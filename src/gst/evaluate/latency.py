"""Measured inference time of the dense and the sparse graph, in one run."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gst.graph import EdgeSet
from gst.nn.backbones import Backbone
from gst.nn.compat import call_model
from gst.nn.features import as_features
from gst.nn.network import NativeNetwork


def inference_times(model: nn.Module, dense: Data, sparse: Data, repeats: int = 30) -> dict[str, Any]:
    """Median milliseconds of a full-graph forward pass on both graphs, taken in turns, and their ratio.

    What a deployed model keeps is built beforehand: the adjacency in CSR and the features in the faster layout.
    """
    model = model.cpu().eval()
    runs = [_forward(model, graph) for graph in (dense, sparse)]
    times: list[list[float]] = [[], []]
    with torch.inference_mode():
        for round_number in range(repeats + 3):
            for run, taken in zip(runs, times, strict=True):
                start = time.perf_counter()
                run()
                if round_number >= 3:  # the first rounds warm caches
                    taken.append(1000 * (time.perf_counter() - start))
    before, after = (statistics.median(taken) for taken in times)
    return {"dense_ms": before, "sparse_ms": after, "speedup": before / after, "repeats": repeats}


def _forward(model: nn.Module, graph: Data) -> Callable[[], Any]:
    if not isinstance(model, Backbone):
        return lambda: call_model(model, graph)
    edges = EdgeSet.from_edge_index(graph.edge_index, int(graph.num_nodes), graph.get("edge_weight"))
    network = NativeNetwork(model, as_features(graph.x))
    return lambda: network.logits(edges)
