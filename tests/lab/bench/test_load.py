"""Rows from stores, files and folders, untrusted ones included."""

from dataclasses import replace

import pytest

from gst.base.errors import InputError
from gst.base.versions import versions
from gst.lab.bench.load import load_rows, separate_versions
from gst.lab.bench.rows import Row, write_csv
from gst.lab.bench.store import Store
from report_rows import row, study_rows


def test_store_and_file_hold_the_same_rows(tmp_path):
    rows = study_rows()
    write_csv(tmp_path / "rows.csv", rows)
    with Store(tmp_path / "bench.db") as store:
        store.add(rows)
        stored = load_rows(tmp_path / "bench.db")  # while it is open elsewhere
    written = load_rows(tmp_path / "rows.csv")
    assert sorted(stored.rows, key=lambda r: r.key) == sorted(written.rows, key=lambda r: r.key)
    assert sorted(written.rows, key=lambda r: r.key) == sorted(rows, key=lambda r: r.key)
    both = load_rows(tmp_path)  # a folder of both: every run once
    assert len(both.rows) == len(rows) and both.sources == ["bench.db", "rows.csv"]


def test_reading_a_store_writes_nothing(tmp_path):
    with Store(tmp_path / "bench.db") as store:
        store.add([row()])
    before = (tmp_path / "bench.db").read_bytes()
    load_rows(tmp_path / "bench.db")
    assert (tmp_path / "bench.db").read_bytes() == before


def test_done_replaces_failed(tmp_path):
    write_csv(tmp_path / "a.csv", [row(key="k", status="failed", reason="x")])
    write_csv(tmp_path / "b.csv", [row(key="k")])
    write_csv(tmp_path / "c.csv", [row(key="k", status="failed", reason="y")])
    assert [r.status for r in load_rows(tmp_path).rows] == ["done"]


def test_other_tables_of_a_folder_are_skipped_and_named(tmp_path):
    write_csv(tmp_path / "a.csv", [row()])
    (tmp_path / "b.csv").write_text("dataset,score\nCora,1\n")
    loaded = load_rows(tmp_path)
    assert loaded.skipped == ["b.csv"] and loaded.sources == ["a.csv"]
    with pytest.raises(InputError, match="no column"):
        load_rows(tmp_path / "b.csv")


def test_nan_and_infinity_count_as_not_measured(tmp_path):
    write_csv(tmp_path / "a.csv", [row(test=float("nan"), retrain_test=float("inf"))])
    (read,) = load_rows(tmp_path).rows
    assert read.test is None and read.retrain_test is None and read.val is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"SQLite format 3\0 and then nothing", "cannot use .* as a store"),
        (b"\xff\xfe\x00", "no record"),
        (b"", "no record"),
    ],
)
def test_damaged_files_get_one_line(tmp_path, content, message):
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_rows(tmp_path / "x.db")


def test_bad_numbers_and_bad_sparsity(tmp_path):
    write_csv(tmp_path / "a.csv", [row()])
    text = "\n".join(line.rpartition(",")[0] for line in (tmp_path / "a.csv").read_text().splitlines())  # unsealed
    (tmp_path / "a.csv").write_text(text.replace(",0.4,0,", ",forty,0,"))
    with pytest.raises(InputError, match=r"line 2.*forty"):
        load_rows(tmp_path)
    (tmp_path / "a.csv").write_text(text.replace(",0.4,0,", ",nan,0,"))
    with pytest.raises(InputError, match="finite"):
        load_rows(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_rows(tmp_path / "none")
    with pytest.raises(InputError, match="no rows"):
        load_rows(tmp_path)


def test_rows_of_earlier_code_are_in_a_separate_profile():
    now = Row("rq1", "quick", "Cora", "gcn", "ugs", 0.4, 0, versions=versions("Cora", "gcn", "full", "ugs"))
    then = replace(now, versions="cora 1, gcn 1, full 1, ugs 1")
    assert [row.profile for row in separate_versions([now, then, replace(now, versions="")])] == [
        "quick",
        "quick, earlier code",
        "quick, earlier code",
    ]
