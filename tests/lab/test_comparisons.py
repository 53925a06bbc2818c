from gst.lab.bench.rows import Row
from gst.lab.comparisons import frozen, leads, losses, settings


def rows(method, *losses, sparsity=0.4, dataset="Cora", variation="", **shift):
    """One row per seed of a dense model of 80: that much less in every model, and ``shift`` more in some."""
    columns = {"test": "returned", "warm_test": "warm", "retrain_test": "fresh", "frozen_test": "frozen"}
    return [
        Row("rq1", "paper", dataset, "gcn", method, sparsity, seed, variation, dense_test=80.0,
            **{column: 80.0 + loss + shift.get(name, 0.0) for column, name in columns.items()})
        for seed, loss in enumerate(losses)
    ]  # fmt: skip


GST = rows("gst", -1.0, -2.0, -3.0, frozen=-5.0)


def test_losses_are_paired_by_seed():
    assert losses(GST, "test") == [-1.0, -2.0, -3.0]
    assert losses([*GST, Row("rq1", "paper", "Cora", "gcn", "gst", 0.4, 9)], "test") == [-1.0, -2.0, -3.0]


def test_a_setting_has_four_models_and_what_the_paper_claims():
    text = settings([*GST, *rows("edge-free", -20.0, -20.0, -20.0, sparsity=1.0), *rows("random", -4.0, -4.0, -4.0)])
    assert "**Cora, GCN, 40 % removed**, dense 80.0 ± 0.0:" in text
    assert "| GST | −2.0 ± 2.5 (3) | −2.0 ± 2.5 (3) | −2.0 ± 2.5 (3) | −7.0 ± 2.5 (3) | 40 % |" in text
    assert "| No edges | −20.0 ± 0.0 (3) |" in text
    assert "100 %" not in text  # of the reference without edges


def test_gst_leads_by_paired_differences():
    text = leads([*GST, *rows("random", -1.5, -2.5, -3.5), *rows("wd-glt", -2.0, -3.0, -4.0, variation="ascent=False")])
    assert "| Cora | GCN | 40 % | Random | +0.5 ± 0.0 (3) | +0.5 ± 0.0 (3) | +0.5 ± 0.0 (3) | −4.5 ± 0.0 (3) |" in text
    assert "| WD-GLT, descent | +1.0 ± 0.0 (3) |" in text


def test_the_frozen_table_ranks_by_the_mean_over_panels_that_all_have():
    text = frozen(
        [
            *rows("deploy", 0.0, -0.2, sparsity=0.8),
            *rows("deploy", 0.2, 0.2, sparsity=0.8, dataset="CiteSeer"),
            *rows("random", -4.0, -4.0, sparsity=0.8),
            *rows("random", -6.0, -6.0, sparsity=0.8, dataset="CiteSeer"),
            *rows("scan", -1.0, sparsity=0.8),
            *rows("random", 9.0, sparsity=0.6),
        ]
    )
    lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines()[2:]]
    assert lines == [
        ["*dense*", "*80.0*", "*80.0*", "*80.0*"],
        ["Deploy, arcs", "−0.1", "+0.2", "+0.1"],
        ["Random", "−4.0", "−6.0", "−5.0"],
        ["SCAN", "−1.0", "–", "–"],
    ]
