"""Damaged, foreign, locked or read-only stores and records: one line from every command, never a wrong number."""

import os
import random
import sqlite3
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from gst.base.errors import DamagedError, InputError
from gst.cli.main import app
from gst.lab.bench.load import load_rows
from gst.lab.bench.record import write_record
from gst.lab.bench.rows import CHECKSUM, COLUMNS, Row, read_csv, write_csv
from gst.lab.bench.store import Store
from reliability import stores

ROW = Row("rq1", "quick", "Cora", "gcn", "gst", 0.1, 3, test=46.35, facts={"a": [1, 2.5]}, key="k")
SMOKE = ["bench", "rq1", "--profile", "smoke", "--only", "method=scan", "--workers", "1"]


def test_one_flipped_bit_of_a_number_in_a_record_is_seen(tmp_path):
    path = tmp_path / "a.csv"
    write_csv(path, [ROW, replace(ROW, key="b", seed=4)])
    whole = path.read_bytes()
    start = whole.index(b"46.35")
    seen = set()
    for place in range(start, start + 5):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(InputError, match=r"a\.csv.* is (damaged|no record)") as error:
                read_csv(path)
            assert "\n" not in str(error.value)
            seen.add("line 2" in str(error.value))
    assert any(seen)  # the line is named
    path.write_bytes(whole.replace(b"46.35", b"62.35", 1))
    with pytest.raises(DamagedError, match=r"a\.csv, line 2, is damaged: its checksum does not match"):
        load_rows(tmp_path)


def test_one_changed_number_in_a_store_is_seen_and_its_key_named(tmp_path):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add([ROW])
    with sqlite3.connect(path) as base:
        base.execute("UPDATE rows SET test = 62.35")
    base.close()
    with Store(path) as store, pytest.raises(DamagedError, match=r"a\.db: the row of key 'k' is damaged"):
        store.rows()
    with pytest.raises(DamagedError, match="the row of key 'k'"):
        load_rows(path)
    new = str(tmp_path / "x.db")
    for command in ([*SMOKE, "--db", str(path)], ["report", str(path)], [*SMOKE, "--db", new, "--from", str(path)]):
        result = CliRunner().invoke(app, command)
        assert isinstance(result.exception, InputError) and "\n" not in str(result.exception), command


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_under_the_checksum(name):
    row = replace(ROW, **{name: {"other": 1} if name == "facts" else 7})
    assert row.checksum() != ROW.checksum()
    with pytest.raises(DamagedError):
        Row.from_sealed({**ROW.sealed(), name: row.texts()[name]}, "here")


def test_checksums_do_not_depend_on_how_numbers_are_stored(tmp_path):
    rows = [replace(ROW, sparsity=0, seed=1, test=float("nan"), val=float("inf"), macs_dense=10**400 // 10**380)]
    write_csv(tmp_path / "a.csv", rows)
    with Store(tmp_path / "a.db") as store:
        store.add(read_csv(tmp_path / "a.csv"))
        (row,) = store.rows()
    assert (row.sparsity, row.seed, row.test, row.macs_dense) == (0.0, 1, None, 1e20)


def test_columns_may_be_added_without_breaking_old_rows():
    texts = {name: text for name, text in ROW.sealed().items() if text}
    assert Row.from_sealed(texts, "here") == ROW


def test_only_a_file_without_the_column_may_lack_checksums(tmp_path):
    write_csv(tmp_path / "a.csv", [ROW])
    lines = [line.rpartition(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    (tmp_path / "old.csv").write_text("".join(f"{line}\n" for line, _, _ in lines))
    assert read_csv(tmp_path / "old.csv") == [ROW]
    (tmp_path / "a.csv").write_text(f"{lines[0][0]},{CHECKSUM}\n{lines[1][0]},\n")
    with pytest.raises(DamagedError, match="line 2"):
        read_csv(tmp_path / "a.csv")
    with pytest.raises(DamagedError, match="line 2"):  # a damaged file is not overwritten
        write_record(tmp_path, []) or write_record(tmp_path, [replace(ROW, experiment="a")])


@pytest.mark.parametrize("text", [",more", "\nrq1,quick"])
def test_lines_of_another_length_are_refused(tmp_path, text):
    write_csv(tmp_path / "a.csv", [ROW])
    with (tmp_path / "a.csv").open("a") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(file.tell() - 1)
        file.write(text + "\n")
    with pytest.raises(DamagedError, match=r"line [23], is damaged: it has \d+ fields"):
        read_csv(tmp_path / "a.csv")


def test_flipped_bits_of_stores_and_records(tmp_path):
    for name, seen in stores.flip(tmp_path, flips=60).items():
        assert set(seen) <= {"refused", "the same"}, (name, seen)
        assert seen["refused"] > 5, (name, seen)


def test_no_name_in_the_layout_of_a_store_crashes_its_reader(tmp_path):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add([ROW])
    whole = path.read_bytes()
    start = whole.index(b"CREATE TABLE rows")
    for place in range(start, start + 400, 3):
        content = whole[:place] + bytes([whole[place] ^ 0x80]) + whole[place + 1 :]
        assert stores.outcome(path, content, stores.read_store) == "refused", place


def test_a_damaged_store_is_not_written_to(tmp_path):
    path, rng = tmp_path / "a.db", random.Random(0)
    with Store(path) as store:
        store.add(stores.ROWS)
    whole = path.read_bytes()
    for _ in range(60):
        place = rng.randrange(100, len(whole))
        path.write_bytes(damaged := whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
        try:
            with Store(path) as store:
                store.rows()
        except DamagedError:
            pass  # a row: the others are left as they are
        except InputError:
            assert path.read_bytes() == damaged


def cut(path, whole):
    path.write_bytes(whole[: len(whole) // 2])


def text(path, whole):
    path.write_text("no database, but a long text\n" * 100)


def folder(path, whole):
    path.unlink()
    path.mkdir()


def foreign(path, whole):
    path.unlink()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE photographs (name TEXT)")
    base.close()


def older(path, whole):
    with sqlite3.connect(path) as base:
        base.execute("ALTER TABLE rows DROP COLUMN checksum")
    base.close()


@pytest.mark.parametrize("harm", [cut, text, folder, foreign, older])
def test_one_line_from_every_command(tmp_path, monkeypatch, harm):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add(stores.ROWS)
    harm(path, path.read_bytes())
    before = path.read_bytes() if path.is_file() else None
    commands = ([*SMOKE, "--db", "a.db"], ["report", "a.db"], ["report", "--db", "a.db"])
    for command in (*commands, [*SMOKE, "--db", "new.db", "--from", "a.db"]):
        result = CliRunner().invoke(app, command)
        assert isinstance(result.exception, InputError), (command, result.exception)
        message = str(result.exception)
        assert "\n" not in message and len(message) <= 300 and "a.db" in message
    assert (path.read_bytes() if path.is_file() else None) == before  # and nothing was written into it
    assert not (tmp_path / "report.html").exists()


def test_a_locked_store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.add([ROW])
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with Store(tmp_path / "a.db", patience=0.05) as store:
            assert store.rows() == [ROW]  # readers do not wait
            with pytest.raises(InputError, match="locked"):
                store.add([replace(ROW, key="b")])
    finally:
        holder.close()


def test_a_store_that_cannot_be_written(tmp_path, monkeypatch):
    with Store(tmp_path / "a.db") as store:
        store.add([ROW])
    connect = sqlite3.connect

    def closed(path, timeout, uri=False):
        return connect(path if uri else f"file:{path}?mode=ro", uri=True, timeout=timeout)

    monkeypatch.setattr("gst.lab.bench.store.sqlite3.connect", closed)  # a mode of the file does not stop root
    with Store(tmp_path / "a.db") as store, pytest.raises(InputError, match="readonly"):
        store.add([replace(ROW, key="b")])
    with pytest.raises(InputError, match="cannot use"):
        Store(tmp_path / "none.db")


def test_a_full_disk_in_the_middle_of_a_sweep(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store._database.execute(f"PRAGMA max_page_count={store._database.execute('PRAGMA page_count').fetchone()[0]}")
        with pytest.raises(InputError, match="full"):
            store.add(stores.ROWS)
        assert store.rows() == []
