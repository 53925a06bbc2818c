"""The page as a file: complete, self-contained, safe, valid. Its behaviour in a browser: test_browser.py."""

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from gst.cli import main as cli
from gst.lab.bench.load import Loaded
from gst.lab.bench.rows import write_csv
from gst.lab.report import render
from gst.lab.report.prose import sentences
from gst.lab.report.runs import compact_facts, runs_json
from gst.lab.report.summary import Study
from report_rows import row, study_rows

HOSTILE = "<script>window.hacked=1</script>\"'><img src=x onerror=window.hacked=1>{{7*7}}</script>"


class Outline(HTMLParser):
    """Elements in the order of the page, with attributes and direct text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        self.elements.append((f"/{tag}", {}, []))

    def handle_data(self, data):
        if self.elements:
            self.elements[-1][2].append(data)

    def of(self, *tags):
        return [(tag, attributes, "".join(text)) for tag, attributes, text in self.elements if tag in tags]


@pytest.fixture(scope="module")
def page():
    return render(Loaded(study_rows(), ["rows.csv"], []))


def test_one_section_per_kind_of_measurement(page):
    found = [attributes["id"] for _, attributes, _ in Outline(page).of("section")]
    assert found == [
        "summary", "accuracy", "safe", "pareto", "spectra", "ablation", "robustness", "tickets", "paper", "runs",
        "failed", "origin",
    ]  # fmt: skip
    assert "MemoryError: 9 GiB are needed" in page


def test_a_single_row_makes_a_page():
    for rows in ([row()], [row(status="failed", reason="why", test=None)], [row(test=None, val=None, dense_test=None)]):
        found = [attributes["id"] for _, attributes, _ in Outline(render(Loaded(rows, [], []))).of("section")]
        assert "summary" in found and "runs" in found and "pareto" not in found[:2]


def test_nothing_is_loaded_and_only_the_page_s_script_may_run(page):
    outline = Outline(page)
    for tag, attributes, _ in outline.elements:
        for name in ("src", "href", "action", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith("#") or value == "data:,", (tag, name, value)
    assert "url(" not in page and "@import" not in page and "fetch(" not in page
    policy = next(a["content"] for _, a, _ in outline.of("meta") if a.get("http-equiv"))
    (script,) = [text for _, a, text in outline.of("script") if "type" not in a]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and policy.startswith("default-src 'none'")


def test_headings_ids_and_accessible_names(page):
    outline = Outline(page)
    levels = [int(tag[1]) for tag, _, _ in outline.of("h1", "h2", "h3")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [a["id"] for _, a, _ in outline.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes, text in outline.of("button", "svg"):
        hidden = attributes.get("aria-hidden") == "true"
        assert hidden or attributes.get("aria-label") or text.strip(), (tag, attributes)
    assert all(a.get("scope") == "col" for _, a, _ in outline.of("th"))


def test_charts_are_well_formed_and_inside_their_frames(page):
    charts = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert len(charts) > 15
    for chart in charts:
        tree = ElementTree.fromstring(chart)
        _, _, width, height = map(float, tree.attrib["viewBox"].split())
        marks = [*tree.iter("use"), *tree.iter("rect")]
        assert marks
        for mark in marks:
            assert 0 <= float(mark.attrib["x"]) <= width and 0 <= float(mark.attrib["y"]) <= height


def test_points_stand_where_their_numbers_are():
    """The mean of a curve's point, read back from its pixels by the ticks of the axis."""
    chart = re.search(r'<svg class="chart".*?</svg>', render(Loaded(study_rows(), [], [])), re.DOTALL).group()
    tree = ElementTree.fromstring(chart)
    ticks = [t for t in tree.iter("text") if t.attrib.get("class") == "tick"]
    on_y = [(float(t.text), float(t.attrib["y"]) - 3.5) for t in ticks if t.attrib["text-anchor"] == "end"]
    (v0, y0), (v1, y1) = on_y[0], on_y[-1]
    (group,) = [g for g in tree.iter("g") if g.attrib.get("data-method") == "ugs" and g.attrib["data-measure"] == ""]
    for mark, s in zip(group.iter("use"), (0.2, 0.4, 0.6), strict=True):
        read = v0 + (float(mark.attrib["y"]) - y0) * (v1 - v0) / (y1 - y0)
        assert read == pytest.approx(82 - 8 * s, abs=0.05)
        assert mark.attrib["data-tip"].startswith(f"{100 * s:g} % removed: {82 - 8 * s:.1f} ± 1.0 · −{8 * s:.1f} ± 0.0")


def test_texts_of_rows_are_never_markup():
    texts = ("dataset", "backbone", "method", "profile", "reason", "command", "environment", "code", "key")
    hostile = [replace(row(seed=s), **dict.fromkeys(texts, HOSTILE)) for s in (0, 1)]
    hostile += [replace(row(sparsity=0.6, seed=s), **dict.fromkeys(texts, HOSTILE)) for s in (0, 1)]
    hostile.append(replace(row(status="failed"), **dict.fromkeys(texts, HOSTILE), variation=f"{HOSTILE}={HOSTILE}"))
    outline = Outline(render(Loaded(hostile, [HOSTILE], [HOSTILE]), HOSTILE))
    assert len(outline.of("script")) == 3 and not outline.of("img", "iframe", "object")
    assert not [a for _, a, _ in outline.elements for name in a if name.startswith("on")]
    assert any(text == HOSTILE for _, _, text in outline.of("h1"))
    islands = [json.loads(text) for _, a, text in outline.of("script") if a.get("type") == "application/json"]
    assert HOSTILE in islands[0]["strings"]


def test_runs_survive_the_page_s_json(page):
    (text,) = [t for _, a, t in Outline(page).of("script") if a.get("id") == "rundata"]
    data = json.loads(text)
    rows = Study(study_rows()).rows
    assert len(data["rows"]) == len(rows)
    for line, original in zip(data["rows"], rows, strict=True):
        values = dict(zip(data["columns"], line, strict=True))
        for name in data["columns"]:
            value = data["strings"][values[name]] if name in data["texts"] else values[name]
            assert value == pytest.approx(getattr(original, name)) if name != "key" else value == original.key
    assert len(data["drawings"]) == 1  # the same neighbourhood for every run
    kept = {facts["kept"] for facts in data["facts"].values()}
    assert len(kept) == 3  # one pattern per sparsity


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"degree": 3},
        None,
        [],
        {"degree": {}, "homophily": {}, "nodes": {}, "neighbourhood": {}},
    ],
)
def test_incomplete_facts_are_left_out(facts):
    assert compact_facts(facts) is None


def test_drawings_that_do_not_fit_are_left_out():
    whole = study_rows()[0].facts
    assert "drawing" in compact_facts(whole)
    for around in (
        {"nodes": [[0, float("nan"), 0.0, 1]], "edges": []},
        {"nodes": [[0, 0.0, 0.0, 1]], "edges": [[0, 7, 1]]},
        {"nodes": [[n, 0.0, 0.0, 1] for n in range(999)], "edges": []},
    ):
        assert "drawing" not in compact_facts({**whole, "neighbourhood": around})


def test_five_thousand_runs_stay_small():
    base = study_rows()[0]
    rows = [
        replace(
            base, dataset=f"data {n % 9}", sparsity=(n // 9 % 9 + 1) / 10, seed=n // 81, key=str(n), command=f"run {n}"
        )
        for n in range(5000)
    ]
    assert len(render(Loaded(rows, [], [])).encode()) < 10 * 2**20
    different = [  # a different drawing for every run
        replace(r, facts={**r.facts, "neighbourhood": {**r.facts["neighbourhood"], "nodes": [[n, 0.1, 0.2, 1]] * 36}})
        for n, r in enumerate(rows)
    ]
    data = runs_json(different)
    assert len(json.dumps(data)) < 9 * 2**20 and data["left_out"] + len(data["drawings"]) == 5000


def test_summary_compares_what_can_be_compared():
    summary = dict(sentences(Study(study_rows())))
    assert summary["Returned model, 40 % removed"].startswith(
        "points against dense, mean of 2 graphs and backbones: −1.6 with GST"
    )
    assert "GST 1.0" in summary["Mean rank, 1 is best"]


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["gst", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    streams = capsys.readouterr()
    return stopped.value.code, streams.out, streams.err


def test_command_line(tmp_path, monkeypatch, capsys):
    write_csv(tmp_path / "rows.csv", [row(), row(seed=1)])
    (tmp_path / "other.csv").write_text("a,b\n")
    out = tmp_path / "page.html"
    code, out_text, _ = call(monkeypatch, capsys, tmp_path, "-o", out, "--json", "--title", "Mine & yours")
    summary = json.loads(out_text)
    assert code == 0 and summary["runs"] == summary["done"] == 2 and summary["skipped"] == ["other.csv"]
    assert summary["bytes"] == out.stat().st_size and "<title>Mine &amp; yours</title>" in out.read_text()
    code, out_text, err = call(monkeypatch, capsys, "--db", tmp_path / "rows.csv", "-o", out, "--force")
    assert code == 0 and "2 runs" in out_text
    code, _, err = call(monkeypatch, capsys, tmp_path / "none", "-o", out)
    assert code == 2 and err.count("\n") == 1 and "does not exist" in err
    code, _, err = call(monkeypatch, capsys, tmp_path, "--db", tmp_path, "-o", out)
    assert code == 2 and "not both" in err
    monkeypatch.chdir(tmp_path)
    code, _, err = call(monkeypatch, capsys)
    assert code == 2 and "no rows" in err
