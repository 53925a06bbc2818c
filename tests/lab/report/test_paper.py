"""The paper's numbers as data, against what the paper derives from them; and ours beside them."""

from collections import Counter

import pytest

from gst.lab.report.latex import latex
from gst.lab.report.paper import claims
from gst.lab.report.summary import Panel, Study
from gst.lab.report.tables import Line, Table, paper, safe_sparsities, scores
from report_rows import DENSE, row, study_rows


def value(**names):
    (claim,) = [c for c in claims() if all(getattr(c, name) == v for name, v in names.items())]
    return claim.value


def test_every_table_is_whole():
    counted = Counter(claim.table for claim in claims())
    assert counted == {
        "Table 2": 7 * 6,
        "Table 3": 3 * 3 * 7 * 3,
        "Table 4": 4 * 4,
        "Table 9": 7 * 6,
        "Table 10": 6 * 6,
        "Table 11": 3 * 2 * 7,
        "Table 12": 4 * 4 * 2,
        "Table 13": 3 * 9,
    }


@pytest.mark.parametrize(
    ("backbone", "speedups"),  # printed in Table 3 beside GST's latencies
    [("gcn", (1.27, 1.35, 1.29)), ("gin", (1.36, 1.42, 1.33)), ("gat", (1.67, 1.31, 1.36))],
)
def test_speed_ups_are_those_the_paper_prints(backbone, speedups):
    for dataset, printed in zip(("Cora", "CiteSeer", "PubMed"), speedups, strict=True):
        speedup = value(table="Table 3", dataset=dataset, backbone=backbone, method="gst", quantity="speed-up")
        assert speedup == pytest.approx(printed, abs=0.0151)  # the paper truncates some and rounds others


def test_differences_of_tickets_are_those_the_paper_prints():
    for n, printed in enumerate((0.87, 1.13, 1.47, -0.39, 1.02, 1.03, 0.79)):
        names = {"table": "Table 11", "dataset": "Cora", "variation": f"rounds={2 * n + 1}"}
        assert value(**names, method="ugs+gst") - value(**names, method="ugs") == pytest.approx(printed, abs=0.011)


def test_ours_stands_beside_the_paper():
    grid = (0.1, 0.2, 0.3)
    rows = [row(sparsity=s, seed=seed, loss=2.0) for s in grid for seed in DENSE]
    lines = {line.cells[3]: line.cells for line in paper(Study(rows)).lines}
    assert lines["extreme sparsity, %"][4:7] == ["40.0", "20.0", "−20.0"]
    assert lines["MACs saved, %"][5] == "1.0" and lines["speed-up, ×"][5] == f"{2 / (2 - 0.2 - 0.05):.2f}"
    worse = [row(sparsity=s, loss=40.0) for s in grid]
    (line,) = [x.cells for x in paper(Study(worse)).lines if x.cells[3].startswith("extreme")]
    assert line[5:7] == ["< 10", "–"]


def test_variations_meet_their_claims():
    quantities = {line.cells[3] for line in paper(Study(study_rows())).lines}
    for quantity in (
        "extreme sparsity (tune=False), %",
        "score at 20 % (interval=20), %",
        "score at 20 % (swap_ratio=0.1, decay=2.0), %",
        "score at 5 % (rounds=1), %",
    ):
        assert quantity in quantities


def test_best_of_a_column_is_bold():
    table = scores(Study(study_rows()), Panel("Cora", "gcn", "quick"))
    bold = {line.method for line in table.lines if line.best}
    assert bold == {"deploy"}
    assert len({line.measure for line in table.lines if line.best}) == 3


def test_latex_is_a_whole_table_and_escapes():
    hostile = Line(["a_b & 50 % \\input{x}", "1.0 ± 0.1"], Panel("x", "y", "z"), best=frozenset({1}))
    text = latex(Table("t", "C # 1", ["name", "score"], [hostile], frozenset({1})))
    assert r"a\_b \& 50 \% \textbackslash{}input\{x\} & \textbf{1.0 $\pm$ 0.1} \\" in text
    assert r"\caption{C \# 1}" in text and r"\begin{tabular}{lr}" in text
    for word in ("table", "tabular"):
        assert text.count(rf"\begin{{{word}}}") == text.count(rf"\end{{{word}}}") == 1
    whole = latex(safe_sparsities(Study(study_rows())))
    assert whole.isascii() and all(line.count(" & ") == 9 for line in whole.splitlines() if line.endswith(r"\\"))
