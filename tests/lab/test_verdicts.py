from gst.base.stats import Difference
from gst.base.versions import versions
from gst.lab.bench.rows import Row
from gst.lab.verdicts import ablation, ahead, best_rival, decided, no_loss, verdicts


def rows(method, *tests, val=70.0, experiment="rq1", profile="paper", sparsity=0.4, variation="", dataset="Cora"):
    return [
        Row(experiment, profile, dataset, "gcn", method, sparsity, seed, variation, val=val, test=test, warm_test=test,
            retrain_test=test, frozen_test=test, dense_test=80.0, versions=versions(dataset, "gcn", "full", method))
        for seed, test in enumerate(tests)
    ]  # fmt: skip


def test_no_loss_holds_where_every_mean_is_within_the_tolerance():
    assert no_loss(rows("gst", 80.0, 79.5)).word == "holds"
    assert no_loss(rows("gst", 80.0, 79.5) + rows("gst", 70.0, 70.5, dataset="PubMed")).word == "holds on some"
    assert no_loss(rows("gst", 70.0, 70.5)).word == "does not hold"
    assert no_loss(rows("gst", 70.0, 85.0)).word == "does not hold by the means"
    assert no_loss([]).word == decided([]) == "not measured"
    assert decided([Difference(-1.0, -2.0, 0.0)]) == "does not hold by the means"


def test_the_best_other_is_chosen_by_validation_among_the_paper_s_six():
    others = rows("scan", 79.0, 79.0, val=71.0) + rows("dspar", 90.0, 90.0, val=70.0)
    beyond = rows("snip", 99.0, 99.0, val=99.0) + rows("random", 99.0, 99.0, val=99.0)
    assert best_rival(others + beyond) == "scan"
    verdict = ahead("paper", 0.4, ("gcn",))(others + beyond + rows("gst", 80.0, 80.5))
    assert verdict.word == "holds by the means" and "+1.2 ± 3.2 (2) over SCAN (best of 2)" in verdict.numbers
    assert ahead("paper", 0.4, ("gcn",))(others + rows("gst", 78.0, 78.5)).word == "does not hold"


def test_the_ablation_is_judged_by_fresh_models():
    names = {"experiment": "rq5-ablation", "profile": "quick"}
    scores = {"": 79.0, "semantic=False": 78.0, "topology=False": 77.0, "tune=False": 76.0}
    all_rows = [row for v, score in scores.items() for row in rows("gst", score, score, variation=v, **names)]
    assert ablation(all_rows).word == "holds by the means"
    assert ablation(all_rows[2:]).word == "not measured"


def test_rows_of_earlier_code_are_named():
    now = rows("gst", 80.0, 79.5)
    assert "earlier code" not in verdicts(now)
    assert "holds, by earlier code" in verdicts([Row(**{**vars(row), "versions": "cora 1, gcn 1"}) for row in now])
