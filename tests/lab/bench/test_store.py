import sqlite3
import threading
from dataclasses import replace

import pytest

from gst.base.errors import InputError
from gst.lab.bench.cells import Cell
from gst.lab.bench.load import load_rows
from gst.lab.bench.record import write_record
from gst.lab.bench.rows import Row, read_csv
from gst.lab.bench.store import Store

ROW = Row("rq1", "quick", "Cora", "gcn", "gst", 0.1, 3, test=80.5, facts={"a": [1, 2.5]}, key="k")


def test_rows_come_back_as_they_were(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.add([ROW])
    with Store(tmp_path / "a.db") as store:
        assert store.rows() == [ROW]
        assert store.rows("rq1", "quick") == [ROW]
        assert store.rows("rq2") == []


def test_finished_rows_stay_and_failed_ones_are_replaced(tmp_path):
    failed = replace(ROW, status="failed", reason="out of memory", test=None)
    with Store(tmp_path / "a.db") as store:
        store.add([failed])
        store.add([ROW])
        store.add([replace(ROW, test=1.0)])
        store.add([failed])
        assert store.rows() == [ROW]


def test_rows_of_other_experiments_are_reused(tmp_path):
    cell = Cell("rq3", "quick", "Cora", "gcn", "gst", 0.1, 3)
    with Store(tmp_path / "a.db") as store:
        store.add([ROW, replace(ROW, key="f", status="failed")])
        assert store.done({"k": cell, "f": cell, "new": cell}) == {"k"}
        assert store.rows("rq3") == [replace(ROW, experiment="rq3")]


def test_several_writers(tmp_path):
    def write(number):
        with Store(tmp_path / "a.db") as store:
            for key in range(20):
                store.add([replace(ROW, key=str(key), seed=key)])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(tmp_path / "a.db") as store:
        assert sorted(row.seed for row in store.rows()) == list(range(20))


def test_a_transaction_is_all_or_nothing(tmp_path):
    with Store(tmp_path / "a.db") as store, pytest.raises(InputError, match="too large"):
        store.add([ROW, replace(ROW, key="b", edges_kept=2**70)])
    with Store(tmp_path / "a.db") as store:
        assert store.rows() == []


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be taken for one" * 20])
def test_a_foreign_file_gets_one_line(tmp_path, content):
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(InputError, match="cannot use"):
        Store(tmp_path / "a.db")


def test_another_layout_gets_one_line(tmp_path):
    base = sqlite3.connect(tmp_path / "a.db")
    base.execute("CREATE TABLE rows (experiment TEXT)")
    base.close()
    with pytest.raises(InputError, match="another version"):
        Store(tmp_path / "a.db")


def test_the_record_grows(tmp_path):
    failed = replace(ROW, key="b", seed=0, status="failed", reason="out of memory")
    assert [path.name for path in write_record(tmp_path, [ROW, failed])] == ["rq1.csv"]
    better = replace(failed, status="done", reason="")
    write_record(tmp_path, [replace(ROW, test=0.0), better, replace(ROW, experiment="rq2")])
    assert read_csv(tmp_path / "rq1.csv") == [better, ROW]  # by seed
    fuller = replace(ROW, warm_test=79.0)
    write_record(tmp_path, [fuller])
    write_record(tmp_path, [ROW])
    assert read_csv(tmp_path / "rq1.csv") == [better, fuller]
    (tmp_path / "other.csv").write_text("dataset,test\nCora,80\n")  # another kind of table
    assert sorted(row.experiment for row in load_rows(tmp_path).rows) == ["rq1", "rq1", "rq2"]


def test_a_store_is_a_record_too(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.add([ROW])
    assert load_rows(tmp_path / "a.db").rows == [ROW]
    with pytest.raises(InputError, match="does not exist"):
        load_rows(tmp_path / "none")
