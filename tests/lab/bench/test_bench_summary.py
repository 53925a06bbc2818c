import pytest

from gst.lab.bench.rows import Row
from gst.lab.bench.summary import efficiency, summarise


def row(method, sparsity, test, seed=0, dataset="Cora", **words):
    recipe = "paper" if method == "gst" else ""
    words = {"retrain_test": test - 5, "dense_test": 80.0 + seed, **words}
    return Row("rq3", "quick", dataset, "gcn", method, recipe, sparsity, seed, test=test, **words)


def test_means_and_sample_deviations_of_what_was_measured():
    lines = summarise(
        [
            row("gst", 0.2, 80.0, 0),
            row("gst", 0.2, 84.0, 1, warm_test=70.0),
            row("gst", 0.2, 0.0, 2, status="failed"),
            row("gst", 0.4, 75.0),
        ]
    )
    assert [line["sparsity"] for line in lines] == [0.2, 0.4]
    first = lines[0]
    assert (first["seeds"], first["test"], first["test_sd"]) == (2, 82.0, pytest.approx(8**0.5))
    assert first["warm_test"] == 70.0
    assert "warm_test_sd" not in first
    assert "spectrum_top" not in first


def test_the_largest_sparsity_within_a_point_of_dense():
    cost = {"macs_dense": 100.0, "macs_sparse": 80.0, "macs_paper": 40.0, "dense_ms": 3.0, "sparse_ms": 2.0}
    rows = [row("gst", s, t) for s, t in ((0.2, 80.0), (0.4, 78.9), (0.8, 60.0))]
    rows += [row("gst", 0.6, 79.0, **cost)]  # good again beyond a bad one: the largest counts
    rows += [row("ugs", s, t) for s, t in ((0.2, 80.0), (0.4, 78.0))]
    rows += [row("scan", 0.2, 70.0)]
    gst, scan, ugs = sorted(efficiency(summarise(rows)), key=lambda line: line["method"])
    assert (gst["extreme"], ugs["extreme"], scan["extreme"]) == (0.6, 0.2, 0.0)
    assert gst["extreme_fresh"] == gst["extreme_warm"] == 0.0
    assert (gst["rank"], ugs["rank"], scan["rank"]) == (1, 2, 3)
    assert gst["macs_saving"] == pytest.approx(0.2)
    assert gst["speedup"] == 1.5
    assert "speedup" not in ugs
    assert efficiency(summarise(rows), epsilon=20)[0]["extreme"] == 0.8


def test_ranks_are_means_over_data_sets_and_equals_share_the_better_place():
    rows = [row("gst", 0.4, 80.0), row("ugs", 0.4, 80.0), row("scan", 0.2, 80.0)]
    rows += [row("gst", 0.2, 80.0, dataset="CiteSeer"), row("ugs", 0.4, 80.0, dataset="CiteSeer")]
    ranks = {(line["dataset"], line["method"]): line["rank"] for line in efficiency(summarise(rows))}
    assert ranks["Cora", "gst"] == ranks["CiteSeer", "gst"] == 1.5
    assert ranks["Cora", "ugs"] == 1
    assert ranks["Cora", "scan"] == 3
