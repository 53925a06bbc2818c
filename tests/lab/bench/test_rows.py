import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gst.base.errors import InputError
from gst.lab.bench.rows import WRITTEN, Row, read_csv, write_csv

ROW = Row("rq1", "quick", "Cora", "gcn", "gst", 0.1, 3, key="k")
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
NUMBER = st.none() | st.floats(allow_nan=False)


@given(TEXT, NUMBER, st.none() | st.integers(), st.dictionaries(TEXT, st.lists(st.floats(allow_nan=False))))
def test_rows_survive_a_csv_file(tmp_path_factory, text, number, count, facts):
    row = replace(ROW, reason=text, test=number, edges_kept=count, facts=facts)
    path = tmp_path_factory.mktemp("rows") / "rq1.csv"
    write_csv(path, [row, ROW])
    assert read_csv(path) == [row, ROW]


def test_columns_of_a_record():
    columns = (
        "experiment profile dataset backbone method sparsity seed variation status reason split edges_total "
        "edges_kept metric val test retrain_val retrain_test warm_val warm_test frozen_val frozen_test "
        "dense_val dense_test updates agreement seconds spectrum_top spectrum_bottom normalised_top "
        "normalised_bottom macs_dense macs_sparse macs_paper dense_ms sparse_ms weight_sparsity facts "
        "versions code command environment finished key checksum"
    )
    assert " ".join(WRITTEN) == columns


def test_floats_keep_every_bit(tmp_path):
    write_csv(tmp_path / "a.csv", [replace(ROW, test=math.nextafter(81.2, 90))])
    assert read_csv(tmp_path / "a.csv")[0].test == math.nextafter(81.2, 90)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "x" * 100, '"'])
def test_a_foreign_file_gets_one_line(tmp_path, content):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match="is no record of gst bench"):
        read_csv(tmp_path / "a.csv")


def test_a_bad_number_gets_one_line(tmp_path):
    write_csv(tmp_path / "a.csv", [ROW])
    text = (tmp_path / "a.csv").read_text().replace("0.1,3", "0.1,three")
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match="three"):
        read_csv(tmp_path / "a.csv")
