import pytest
import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst.after.structure import homophily, inspect_run
from gst.graph.edgeset import EdgeSet
from gst.inference import latency as measure
from gst.inference.latency import inference_times, latency, summary, take_turns
from gst.nn.backbones import BACKBONES

QUICK = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}


def test_times_of_backbones_and_own_models():
    data = random_graph(nodes=40, edges=120)
    for model in (None, GCN(5, 8, 2, 3)):
        result = gst.sparsify(data, model=model, sparsity=0.5, **QUICK)
        times = inference_times(result.model, data, result.graph, repeats=3)
        assert times.keys() == {"dense_ms", "sparse_ms", "speedup", "repeats"} and times["repeats"] == 3
        assert times["dense_ms"] > 0 and times["sparse_ms"] > 0
        assert times["speedup"] == times["dense_ms"] / times["sparse_ms"]


def test_programs_take_turns_and_warm_up_rounds_are_not_timed():
    calls = []
    times = take_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=4)
    assert "".join(calls) == "baab" * ((4 + measure.WARM) // 2) + "ba", "every other round is reversed"
    assert [len(taken) for taken in times.values()] == [4, 4]


def test_median_and_quartiles():
    times = [(4.0, 1.0), (2.0, 1.0), (1.0, 3.0), (3.0, 1.0), (5.0, 2.0)]
    assert summary(times) == {"ms": 3.0, "low_ms": 2.0, "high_ms": 4.0, "cpu_ms": 1.0}
    assert summary([(7.0, 6.0)]) == {"ms": 7.0, "low_ms": 7.0, "high_ms": 7.0, "cpu_ms": 6.0}


def test_speed_ups_and_the_limit_follow_from_the_times(monkeypatch):
    data = random_graph(nodes=40, edges=120)
    sparse = gst.Random(sparsity=0.5)(data)
    times = {"dense": 10.0, "sparse": 6.0, "reordered": 5.0, "no_edges": 2.0}

    def clock(programs, repeats):
        return {name: [(times[name], 2 * times[name])] * repeats for name in programs}

    monkeypatch.setattr(measure, "take_turns", clock)
    report = latency(BACKBONES["gcn"](5, 8, 3), data, sparse, "rcm", repeats=3)
    kept = (sparse.num_edges + 40) / (data.num_edges + 40)  # the diagonal stays
    assert report["edge_share"] == pytest.approx(0.8) and report["entries_kept"] == pytest.approx(kept)
    assert report["limit"] == pytest.approx(1 / (0.2 + 0.8 * kept))
    assert report["speedup"] == {"sparse": pytest.approx(10 / 6), "reordered": 2.0}
    assert report["share_of_limit"]["reordered"] == pytest.approx(2 * (0.2 + 0.8 * kept))
    assert report["cpu"]["speedup"] == report["speedup"] and report["layout"] == "rcm"
    assert report["dense"]["macs_dense_part"] == report["sparse"]["macs_dense_part"]
    assert report["sparse"]["macs_sparse_part"] / report["dense"]["macs_sparse_part"] == pytest.approx(kept)
    assert report["paper_macs"]["sparse"] == round(report["paper_macs"]["dense"] * sparse.num_edges / data.num_edges)


def test_own_models_have_times_but_no_macs():
    data = random_graph(nodes=40, edges=120)
    report = latency(GCN(5, 8, 2, 3), data, gst.Random(sparsity=0.5)(data), repeats=2)
    assert report["dense"]["ms"] > 0 and "macs" not in report["dense"] and "paper_macs" not in report


def test_inspection_counts_nodes_and_edges():
    data = random_graph(nodes=40, edges=120, loops=True)
    result = gst.sparsify(data, by="pairs", sparsity=0.9, **QUICK)
    facts = inspect_run(result)
    edges = EdgeSet.from_edge_index(result.graph.edge_index, 40)
    touched = set(edges.pairs.flatten().tolist())
    assert facts["isolated nodes"][1] == 40 - len(touched)
    assert facts[result.metrics["by"]] == (result.metrics["edges_total"], result.metrics["edges_kept"])
    same = [data.y[u] == data.y[v] for u, v in edges.pairs.t().tolist()]
    assert facts["homophily"][1] == round(sum(map(bool, same)) / len(same), 3)
    assert homophily(edges, None) is None and homophily(edges, torch.full((40,), -1)) is None
