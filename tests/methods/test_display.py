import importlib.util
import re
from html.parser import HTMLParser

import pytest

import gst
from graphs import random_graph
from typed_graphs import QUICK, library

FEW = {"hidden": 4, "anchor_epochs": 2, "sparse_epochs": 3, "cache": False}


@pytest.fixture(scope="module")
def fitted():
    return gst.GST(sparsity=0.5, **FEW).fit(random_graph(), dense=True)


class Checker(HTMLParser):
    """Fails where tags do not close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "polyline":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def text_of(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return checker.text


def test_a_result_is_one_short_line(fitted):
    metrics = fitted.result_.metrics
    text = repr(fitted.result_)
    assert len(text) < 200 and "\n" not in text
    assert f"{metrics['edges_kept']} of {metrics['edges_total']} pairs kept" in text
    assert f"test accuracy {metrics['test']:.1f} (dense {metrics['dense_test']:.1f})" in text


def test_the_html_has_scores_curve_and_what_was_removed(fitted):
    result = fitted.result_
    html = result._repr_html_()
    text = text_of(html)
    assert f"{result.metrics['test']:.1f}" in text and "what was removed" in text
    assert f"{result.metrics['edges_total'] - result.metrics['edges_kept']} of" in text
    lines = re.findall(r'points="([^"]*)"', html)
    assert [len(line.split()) for line in lines] == [2, 3, 5]  # anchor, sparse, dense


def test_names_from_outside_are_escaped(fitted):
    data = random_graph()
    data.name = "<script>alert(1)</script>"
    html = gst.sparsify(data, "random", sparsity=0.5, **FEW)._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_an_estimator_shows_what_was_given(fitted):
    text = text_of(gst.GST(sparsity=0.25, hidden=7)._repr_html_())
    assert "0.25" in text and "hidden" in text and "not fitted" in text and "dropout" not in text
    assert "what was removed" in text_of(fitted._repr_html_())


def test_the_figure_holds_history_scores_and_edges(fitted, tmp_path):
    pytest.importorskip("matplotlib")
    figure = fitted.result_.plot()
    epochs, bars, edges = figure.axes
    assert {line.get_label(): len(line.get_xdata()) for line in epochs.lines} == {"anchor": 2, "sparse": 3, "dense": 5}
    assert len(bars.patches) == 2
    assert sum(patch.get_height() for patch in edges.patches) > 0
    fitted.result_.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert repr(again) == repr(fitted.result_) and again.history == ()
    again.plot().savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 1000


def test_typed_results_show_themselves_too():
    result = gst.sparsify(library(), "random", sparsity=0.5, **QUICK)
    assert "kept" in repr(result) and "what was removed" in text_of(result._repr_html_())
    if importlib.util.find_spec("matplotlib"):
        assert len(result.plot().axes) == 3
