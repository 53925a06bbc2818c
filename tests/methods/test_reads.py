import pytest
import torch
from torch_geometric.utils import k_hop_subgraph

import gst
from graphs import random_graph
from gst.after.structure import inspect_run
from gst.methods.reads import reads_of


def test_reads_are_the_nodes_within_reach():
    data = random_graph(nodes=60, edges=150)
    result = gst.sparsify(
        data, "deploy", sparsity=0.7, hidden=8, layers=3, anchor_epochs=2, sparse_epochs=2, cache=False
    )
    reads = reads_of(result)
    for name, graph in (("dense", data), ("sparse", result.graph)):
        nodes = data.test_mask.nonzero().flatten().tolist()
        sizes = [len(k_hop_subgraph(node, 3, graph.edge_index, num_nodes=60)[0]) for node in nodes]
        assert reads[name]["mean"] == pytest.approx(sum(sizes) / len(sizes), abs=1e-3)
        assert reads[name]["p50"] == pytest.approx(float(torch.tensor(sizes).double().quantile(0.5)))
    assert inspect_run(result)["nodes read per answer, mean"] == (reads["dense"]["mean"], reads["sparse"]["mean"])
    assert "nodes that one answer reads" in result._repr_html_()
    result.removed = None
    assert reads_of(result).keys() == {"sparse"}
