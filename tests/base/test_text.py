"""Untrusted text on a terminal, in messages and in tables for spreadsheets."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.base.text import as_cell, from_cell, message, printable, shorten
from gst.cli import console
from gst.cli import run as run_command
from gst.lab.bench.rows import Row, read_csv, write_csv
from gst.lab.report.latex import escape
from gst.storage import checkpoint, files
from gst.storage.export import export

QUICK = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}
HOSTILE = "[/x]\x1b[31m\x07\x9b2J\u202e=cmd()"
FORMULAS = ["=cmd()", "+1", "-cmd", "@sum", "\tx", "\rx", "'=x", "''+x"]
CONTROL = {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}


@given(st.text())
def test_printable_text_is_one_line_without_control_characters(text):
    safe = printable(text)
    assert len(safe) == len(text) and safe.isprintable()


@given(st.text(), st.integers(8, 50))
def test_shortened_text_keeps_its_ends(text, max_length):
    short = shorten(text, max_length)
    assert len(short) <= max_length and short[:1] == text[:1] and short[-1:] == text[-1:]
    assert (short == text) == (len(text) <= max_length)


@given(st.text())
def test_a_cell_is_no_formula_and_can_be_reversed(text):
    assert from_cell(as_cell(text)) == text and as_cell(text)[:1] not in tuple("=+-@\t\r")


@pytest.mark.parametrize("text", ["x" * 5000, "a\nb" * 200, HOSTILE * 50])
def test_every_message_is_one_short_printable_line(text):
    for line in (str(InputError(text)), message(text)):
        assert len(line) <= 300 and line.isprintable()


def test_a_wrong_name_is_shortened_and_of_many_choices_the_nearest_are_listed():
    with pytest.raises(InputError) as error:
        resolve_name("data set", "x" * 5000, [f"data set {n}" for n in range(500)])
    assert len(str(error.value)) <= 300 and "… (500 in all)" in str(error.value)
    with pytest.raises(InputError, match=r"unknown argument 'hiden' of method .*: choose from hidden, .* in all\)"):
        gst.sparsify(random_graph(), "gst", sparsity=0.5, hiden=3)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_of_a_record_is_a_formula_and_numbers_stay_numbers(tmp_path, text):
    row = Row(*[text] * 5, sparsity=-0.5, seed=0, reason=text, key=text)
    write_csv(tmp_path / "rows.csv", [row])
    (cells,) = csv.DictReader((tmp_path / "rows.csv").open(newline=""))
    assert all(cells[name][0] not in "=+-@\t\r" for name in ("dataset", "method", "reason", "key"))
    assert cells["sparsity"] == "-0.5" and read_csv(tmp_path / "rows.csv") == [row]


def test_no_name_of_an_exported_column_is_a_formula(tmp_path):
    data = random_graph(nodes=15, edges=30)
    data["=cmd()"] = torch.ones(data.edge_index.shape[1])
    assert data.is_edge_attr("=cmd()")
    header = export(data, "csv", tmp_path / "e.csv").read_text().splitlines()[0]
    assert header == "source,target,'=cmd()"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("text", [*FORMULAS, "-0.5", "+0.1 ± 0.2", "-12 %", "a=b", "-2e5"])
def test_no_text_of_a_download_is_a_formula(text):
    code = (Path(gst.__file__).parent / "lab/report/templates/downloads.js").read_text()
    start, end = code.index("const NUMBER"), code.index("const csv =")
    script = f"{code[start:end]} console.log(JSON.stringify(csvCell({json.dumps(text)})))"
    found = json.loads(subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout)
    plain = found.removeprefix('"')
    assert plain == text if text[-1].isdigit() or text[-1] in "%b" else plain.startswith("'")


def test_latex_has_no_control_characters():
    assert escape("a\x1b[31m\x00b") == "a�[31m�b"


def test_printed_text_is_not_markup(capsys):
    console.say(HOSTILE)
    console.table(HOSTILE, [HOSTILE], [[HOSTILE], ["[bold]:smile:"]])
    out = capsys.readouterr().out
    assert "[/x]" in out and "[bold]:smile:" in out and not CONTROL & set(out)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    gst.sparsify(random_graph(nodes=40, edges=120), sparsity=0.5, dense=True, **QUICK).save(folder)
    return folder


def changed(finished, tmp_path, **metrics):
    """A run whose metrics were altered and whose hash is valid."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    content = json.loads((folder / "run.json").read_text())
    content.pop("blake2b")
    content["metrics"] |= metrics
    content["metrics"] = {name: value for name, value in content["metrics"].items() if value != "gone"}
    files.write_json(folder / "run.json", content)
    return folder


NUMBERS = ["50", "gone", None, float("nan"), float("inf"), -1, 101, 10**400, {"a": [1]}, [50.0], True]
BAD = [("test", value) for value in NUMBERS if value not in ("gone", None)]
BAD += [("edges_total", value) for value in [*NUMBERS, 0.5, 2**63] if value != 101]
BAD += [("sparsity", value) for value in NUMBERS] + [("dataset", value) for value in ("gone", None, 3, {}, "x" * 10**4)]
BAD += [("seconds", value) for value in (3, "x", {"total": "1"}, {"total": float("nan")}, {"a": {"b": 1}})]
BAD += [("inference", value) for value in (3, {"dense_ms": 1.0}, {"dense_ms": "1", "sparse_ms": 1.0})]
BAD += [("metric", HOSTILE), ("directed", "no"), ("seed", -1), ("method", ["gst"]), ("backbone", 3)]


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda value: str(value)[:20])
def test_metrics_of_an_untrusted_run_are_checked(call, finished, tmp_path, name, value):
    code, out, err = call("inspect", changed(finished, tmp_path, **{name: value}))
    assert code == 2 and out == "" and err.startswith("gst: ") and err.count("\n") == 1 and len(err) <= 306
    assert f"metrics.{name}" in err


def test_a_run_keeps_no_more_edges_than_it_had(call, finished, tmp_path):
    code, _, err = call("inspect", changed(finished, tmp_path, edges_kept=10**6))
    assert code == 2 and "metrics.edges_kept = 1000000: more than the" in err


def test_strings_of_an_untrusted_run_are_plain_text(call, finished, tmp_path):
    strings = {"dataset": HOSTILE, "method": HOSTILE, "seconds": {HOSTILE: 1.0}, "out": HOSTILE}
    folder = changed(finished, tmp_path, **strings)
    for command in (["inspect", folder], ["latency", folder], ["drift", folder], ["export", folder, "--to", "csv"]):
        code, out, err = call(*command)
        assert code in (0, 2) and not CONTROL & set(out + err)
    code, out, _ = call("inspect", folder, "--json")
    assert code == 0 and json.loads(out)["dataset"] == HOSTILE and out.isascii() and not CONTROL & set(out)


def test_a_run_without_optional_metrics_can_be_inspected(call, finished, tmp_path):
    content = json.loads((finished / "run.json").read_text())["metrics"]
    gone = dict.fromkeys(set(content) & {"val", "test", "dense_val", "dense_test", "seconds", "inference"}, "gone")
    code, out, _ = call("inspect", changed(finished, tmp_path, **gone))
    assert code == 0 and "sparsity" in out


def test_a_run_never_names_a_file_to_be_read(call, finished, tmp_path):
    """What it says of a file is not followed: the run's own edges are taken."""
    (tmp_path / "mine.pt").write_bytes(b"whoever reads this fails")
    for command in ("latency", "drift"):
        folder = changed(finished, tmp_path / command, dataset=str(tmp_path / "mine.pt"))
        code, _, err = call(command, folder)
        assert code == 0 and err == ""


def test_a_folder_with_a_name_like_markup_is_resumed(call, tmp_path, monkeypatch):
    torch.save(random_graph(nodes=40, edges=120), tmp_path / "own.pt")
    out = tmp_path / "x[/y]"
    command = ["run", "--dataset", tmp_path / "own.pt", "--sparsity", 0.5, "--no-cache", "--quiet", "--no-dense"]
    command += ["--hidden", 8, "--anchor-epochs", 2, "--sparse-epochs", 2]

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # the state is written, the result is not
        patched.setattr(run_command, "inference_times", stop)
        assert call(*command, "--out", out)[0] == 130
    code, shown, err = call("run", "--resume", out)
    assert code == 0 and f"resuming the unfinished run in {out}" in err and f"saved to {out}" in shown


def test_strings_of_an_untrusted_unfinished_run_are_refused_or_plain_text(call, tmp_path):
    options = {"dataset": HOSTILE, "data_root": "a\0b", "option": [HOSTILE], "sparsity": HOSTILE}
    content = {"format": checkpoint.FORMAT, "identity": {"threads": HOSTILE}, "words": options, "files": []}
    files.write_json(tmp_path / "checkpoint" / "run.json", content)
    code, _, err = call("run", "--resume", tmp_path)
    assert code == 2 and err.count("\n") == 1 and not CONTROL & set(err)


def test_untrusted_rows_are_plain_text_in_the_tables_of_bench(call, tmp_path):
    names = ("experiment", "profile", "dataset", "backbone", "method")
    row = Row(*[HOSTILE] * len(names), sparsity=0.5, seed=0, status="failed", reason=HOSTILE, variation=HOSTILE)
    write_csv(tmp_path / "rows.csv", [row])
    command = ["bench", "rq1", "--profile", "smoke", "--limit", 0, "--db", tmp_path / "d"]
    command += ["--from", tmp_path / "rows.csv"]
    code, out, err = call(*command)
    assert code == 0 and not CONTROL & set(out + err)
    code, out, err = call("report", tmp_path / "rows.csv", "-o", tmp_path / "page.html")
    assert code in (0, 2) and not CONTROL & set(out + err) and err.count("\n") <= 1
