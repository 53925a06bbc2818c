import pytest

from gst.lab.bench.rows import Row
from gst.lab.bench.summary import efficiency, summarise


def row(method, sparsity, test, seed=0, dataset="Cora", **measured):
    """A run whose validation scores are its test scores."""
    scores = {"val": test, "retrain_val": test - 5, "retrain_test": test - 5}
    dense = {"dense_val": 80.0 + seed, "dense_test": 80.0 + seed}
    return Row("rq3", "quick", dataset, "gcn", method, sparsity, seed, test=test, **{**scores, **dense, **measured})


def test_means_and_sample_deviations_of_measured_columns():
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


def test_the_largest_safe_sparsity_and_what_it_saves():
    cost = {"macs_dense": 100.0, "macs_sparse": 80.0, "macs_paper": 40.0, "dense_ms": 3.0, "sparse_ms": 2.0}
    rows = [row("gst", s, t) for s, t in ((0.2, 80.0), (0.4, 79.2), (0.8, 60.0))]
    rows += [row("gst", 0.6, 79.9, **cost)]  # with 0.4 a mean loss of 0.45: safe although 0.4 alone is not
    rows += [row("ugs", s, t) for s, t in ((0.2, 80.0), (0.4, 78.0))]
    rows += [row("scan", 0.2, 70.0)]
    gst, scan, ugs = sorted(efficiency(rows), key=lambda line: line["method"])
    assert (gst["safe"], ugs["safe"], scan["safe"]) == (0.6, 0.2, 0.0)
    assert gst["safe_fresh"] == gst["safe_warm"] == 0.0
    assert (gst["rank"], ugs["rank"], scan["rank"]) == (1, 2, 3)
    assert gst["macs_saving"] == pytest.approx(0.2)
    assert gst["speedup"] == 1.5
    assert "speedup" not in ugs
    assert efficiency(rows, tolerance=20)[0]["safe"] == 0.8


def test_validation_decides_and_seeds_are_paired():
    rows = [row("gst", 0.2, 79.0, seed=0), row("gst", 0.2, 81.0, seed=1)]  # one point below, one above its dense run
    rows += [row("gst", 0.4, 10.0, val=81.0, seed=1)]
    assert efficiency(rows)[0]["safe"] == 0.4
    assert efficiency([row("gst", 0.2, 80.0, val=None)])[0]["safe"] == 0.0


def test_ranks_are_means_over_data_sets_and_ties_share_the_better_rank():
    rows = [row("gst", 0.4, 80.0), row("ugs", 0.4, 80.0), row("scan", 0.2, 80.0)]
    rows += [row("gst", 0.2, 80.0, dataset="CiteSeer"), row("ugs", 0.4, 80.0, dataset="CiteSeer")]
    ranks = {(line["dataset"], line["method"]): line["rank"] for line in efficiency(rows)}
    assert ranks["Cora", "gst"] == ranks["CiteSeer", "gst"] == 1.5
    assert ranks["Cora", "ugs"] == 1
    assert ranks["Cora", "scan"] == 3
