"""Tables of benchmarks: finished runs are not repeated, those of earlier code are replaced."""

from gst.base.versions import versions
from gst.lab.measurements import Measurements, age

NOW = versions("Cora", "gcn", "full", "deploy")
OLD = "cora 1, gcn 1, full 1, deploy 1"


def table(path):
    return Measurements(path, ["dataset", "seed"], ["dataset", "seed", "test", "note", "versions"], digits=2)


def never():
    raise AssertionError("this run is finished")


def test_a_finished_run_is_not_repeated(tmp_path):
    run = {"dataset": "Cora", "seed": 0}
    assert table(tmp_path / "a.csv").rows() == []
    assert table(tmp_path / "a.csv").measure(run, NOW, lambda: [{"test": 81.234, "note": "a, b"}, {"test": 7}])
    assert not table(tmp_path / "a.csv").measure(run, NOW, never)
    rows = table(tmp_path / "a.csv").rows()
    assert [(row["test"], row["note"], row["seed"]) for row in rows] == [("81.23", "a, b", "0"), ("7", "", "0")]
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "dataset,seed,test,note,versions"


def test_rows_of_earlier_code_are_kept_until_the_run_is_repeated(tmp_path):
    old = table(tmp_path / "a.csv")
    old.measure({"dataset": "Cora", "seed": 0}, OLD, lambda: [{"test": 1.0}])
    old.measure({"dataset": "Cora", "seed": 1}, OLD, lambda: [{"test": 2.0}])
    assert old.measure({"dataset": "Cora", "seed": 1}, NOW, lambda: [{"test": 3.0}])
    assert [(row["test"], age(row)) for row in old.rows()] == [("1.0", "earlier code"), ("3.0", "")]
    assert list(old.groups(["dataset"])) == [("Cora", "earlier code"), ("Cora", "")]
