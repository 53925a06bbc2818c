import json
import statistics

import pytest
import torch

import gst
from graphs import random_graph
from gst.inference.serving import make_engine
from gst.inference.serving.single import sample


@pytest.fixture
def saved_run(tmp_path):
    """A run folder, the file of its dense graph, and the result."""
    data = random_graph(nodes=40, edges=120)
    torch.save(data, tmp_path / "own.pt")
    result = gst.sparsify(data, sparsity=0.5, hidden=8, anchor_epochs=2, sparse_epochs=2, cache=False)
    return result.save(tmp_path / "run"), tmp_path / "own.pt", result


def test_json_has_times_macs_and_the_limit(call, saved_run):
    run, own, result = saved_run
    code, out, err = call("latency", run, "--dataset", own, "--repeats", 3, "--json")
    measured = json.loads(out)
    assert code == 0 and err == ""
    for name in ("dense", "sparse", "reordered"):
        row = measured[name]
        assert 0 < row["low_ms"] <= row["ms"] <= row["high_ms"] and row["macs"] > 0
    assert measured["dense"]["entries"] == result.edge_mask.numel() + 40
    assert measured["sparse"]["entries"] == result.graph.num_edges + 40
    assert measured["limit"] >= 1 and measured["repeats"] == 3
    assert measured["share_of_limit"]["reordered"] == pytest.approx(
        measured["speedup"]["reordered"] / measured["limit"]
    )
    assert measured["layouts_tried_ms"].keys() == {"natural", "degree", "rcm", "metis"}


def test_table(call, saved_run):
    run, own, _ = saved_run
    code, out, _ = call("latency", run, "--dataset", own, "--repeats", 2, "--layout", "rcm", "--precision", "bfloat16")
    assert code == 0 and all(word in out for word in ("dense", "sparse", "reordered", "(rcm, bf16)", "limit", "MMACs"))


def test_the_dense_graph_must_be_that_of_the_run(call, saved_run, tmp_path):
    run, _, _ = saved_run
    torch.save(random_graph(nodes=40, edges=120, seed=1), tmp_path / "other.pt")
    code, out, err = call("latency", run, "--dataset", tmp_path / "other.pt", "--json")
    assert code == 2 and out == "" and "is not the dense graph of this run" in err
    code, out, _ = call("latency", run, "--repeats", 2, "--json")  # the run holds the edges that it removed
    assert code == 0 and json.loads(out)["dense"]["entries"] > json.loads(out)["sparse"]["entries"]


def test_the_name_in_the_run_is_enough_where_it_is_one(call, tmp_path):
    result = gst.sparsify(gst.load("digits"), "random", sparsity=0.7, anchor_epochs=1, sparse_epochs=1, cache=False)
    run = result.save(tmp_path / "run")
    code, out, _ = call("latency", run, "--layout", "natural", "--repeats", 2, "--json")
    assert code == 0 and json.loads(out)["dataset"] == "digits"


def test_export_of_the_compiled_model(call, saved_run, tmp_path):
    run, _, result = saved_run
    code, out, _ = call("export", run, "--layout", "fast", "--json")
    facts = json.loads(out)
    assert code == 0 and facts["layout"] in facts["layouts_tried_ms"]
    compiled = gst.load_compiled(facts["out"])
    with torch.no_grad():
        expected = result.model.eval()(result.graph.x, result.graph.edge_index)
    torch.testing.assert_close(compiled(), expected, rtol=1e-4, atol=1e-5)
    target = tmp_path / "here.safetensors"
    code, out, _ = call("export", run, "--layout", "rcm", "--precision", "bfloat16", "-o", target)
    assert code == 0 and "layout rcm" in out and gst.load_compiled(target).precision == "bfloat16"
    code, _, err = call("export", run, "--layout", "fast", "--to", "csv")
    assert code == 2 and "either --to or --layout" in err
    code, _, err = call("export", run, "--layout", "spiral", "-o", tmp_path / "new")
    assert code == 2 and "unknown layout 'spiral'" in err


def test_single_answers_are_counted_and_timed(call, tmp_path):
    data = random_graph(nodes=60, edges=120)
    result = gst.sparsify(data, "deploy", sparsity=0.8, hidden=8, anchor_epochs=3, sparse_epochs=3, cache=False)
    result.save(tmp_path / "run")
    code, out, _ = call("latency", tmp_path / "run", "--repeats", 2, "--nodes", 10, "--json")
    found = json.loads(out)["answers"]
    assert code == 0 and found["nodes"] == 10 and found["native"]
    assert found["sparse"]["test"] == pytest.approx(result.metrics["test"])
    engines = {"dense": make_engine(result.model, data), "sparse": result.engine()}
    nodes = sample(data.test_mask.nonzero().flatten(), 10)
    for name, engine in engines.items():
        reads = [engine.reads(node).nodes for node in nodes]
        assert found[name]["reads"]["p50"] == statistics.median(reads)
        assert found[name]["reads"]["mean"] == pytest.approx(statistics.fmean(reads), abs=1e-3)
        assert 0 < found[name]["us"]["p50"] <= found[name]["us"]["p99"]
    code, out, _ = call("latency", tmp_path / "run", "--repeats", 2, "--nodes", 10)
    assert code == 0 and "one answer at a time, 10 nodes" in out and "reads p50" in out
