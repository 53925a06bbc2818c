import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst.evaluate.inspect import homophily, inspect_run
from gst.evaluate.latency import inference_times
from gst.graph import EdgeSet

QUICK = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}


def test_times_of_backbones_and_own_models():
    data = random_graph(nodes=40, edges=120)
    for model in (None, GCN(5, 8, 2, 3)):
        result = gst.sparsify(data, model=model, sparsity=0.5, **QUICK)
        times = inference_times(result.model, data, result.graph, repeats=3)
        assert times["dense_ms"] > 0 and times["sparse_ms"] > 0
        assert times["speedup"] == times["dense_ms"] / times["sparse_ms"]


def test_inspection_counts_what_is_there():
    data = random_graph(nodes=40, edges=120, loops=True)
    result = gst.sparsify(data, sparsity=0.9, **QUICK)
    facts = inspect_run(result)
    edges = EdgeSet.from_edge_index(result.graph.edge_index, 40)
    touched = set(edges.pairs.flatten().tolist())
    assert facts["isolated nodes"][1] == 40 - len(touched)
    assert facts["pairs"] == (result.metrics["edges_total"], edges.num_edges)
    same = [data.y[u] == data.y[v] for u, v in edges.pairs.t().tolist()]
    assert facts["homophily"][1] == round(sum(map(bool, same)) / len(same), 3)
    assert homophily(edges, None) is None and homophily(edges, torch.full((40,), -1)) is None
