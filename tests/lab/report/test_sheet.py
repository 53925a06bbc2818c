"""Sheets of charts: valid SVG on its own."""

import re
from xml.etree import ElementTree

import pytest

from gst.lab.report import figures, varied
from gst.lab.report.sheet import sheet
from gst.lab.report.summary import Study
from report_rows import row, study_rows

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def study():
    return Study(study_rows())


def texts(root, kind):
    return [text.text for text in root.iter(f"{SVG}text") if text.get("class") == kind]


def test_every_chart_with_its_title_and_every_curve_in_the_legend(study):
    charts = figures.accuracy(study)
    root = ElementTree.fromstring(sheet(charts, 2))
    assert texts(root, "title") == [chart.title for chart in charts]
    assert len(root.findall(f"{SVG}svg")) == len(charts)
    drawn = {group.get("data-name") for group in root.iter(f"{SVG}g") if group.get("data-name")}
    assert set(texts(root, "keyname")) == drawn


@pytest.mark.parametrize("measure", ["", "retrain_", "warm_"])
def test_one_measure_is_drawn(study, measure):
    root = ElementTree.fromstring(sheet(figures.accuracy(study), measure=measure))
    groups = [group for group in root.iter(f"{SVG}g") if group.get("data-name")]
    assert groups and {group.get("data-measure") for group in groups} == {measure}
    assert not any("off" in group.get("class").split() for group in groups)


def test_charts_do_not_overlap_and_stay_inside(study):
    root = ElementTree.fromstring(sheet(figures.accuracy(study) + varied.ablations(study), 2))
    width, height = (float(root.get(name)) for name in ("width", "height"))
    boxes = [tuple(float(chart.get(name)) for name in ("x", "y", "width", "height")) for chart in root.iter(f"{SVG}svg")
             if chart is not root]  # fmt: skip
    for n, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
        assert all(x + w <= a or a + c <= x or y + h <= b or b + d <= y for a, b, c, d in boxes[n + 1 :])


def test_bars_are_named_as_in_their_legend(study):
    root = ElementTree.fromstring(sheet(varied.ablations(study)))
    assert texts(root, "keyname") == ["GST", "w/o tuning", "w/o sema", "w/o topo"]


def test_everything_referenced_is_included(study):
    text = sheet(figures.accuracy(study))
    used = set(re.findall(r"var\((--\w+)\)", text))
    assert used <= set(re.findall(r"(--\w+):", text))
    assert set(re.findall(r'href="#(\w+)"', text)) <= set(re.findall(r'id="(\w+)"', text))
    assert "light-dark" not in text and "data-tip" not in text


def test_untrusted_names_are_text():
    rows = [row(dataset="<b>&", method="<i>", sparsity=s) for s in (0.2, 0.4)]
    root = ElementTree.fromstring(sheet(figures.accuracy(Study(rows))))
    assert texts(root, "title") == ["<b>& · GCN"] and texts(root, "keyname") == ["<i>"]
