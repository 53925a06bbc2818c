import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gst.base.errors import InputError
from gst.data.edges import read_edges

NODES = 12
ARCS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), min_size=1, max_size=40)
FORMATS = ["txt", "edgelist", "tsv", "csv", "csv.gz", "txt.gz", "parquet", "npy"]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ARCS, st.sampled_from(FORMATS), st.booleans(), st.sampled_from(["", "# a\n", "% a b\n%\n"]))
def test_written_edges_come_back_in_order(tmp_path, arcs, suffix, header, comment):
    path = tmp_path / f"edges.{suffix}"
    if suffix == "npy":
        np.save(path, np.array(arcs).T if header else np.array(arcs).reshape(-1, 2))
    elif suffix == "parquet":
        pd.DataFrame(arcs, columns=["source", "target"]).to_parquet(path)
    else:
        separator = {"csv": ",", "tsv": "\t"}.get(suffix.removesuffix(".gz"), " ")
        lines = ([f"src{separator}dst"] if header else []) + [f"{u}{separator}{v}" for u, v in arcs]
        content = (comment + "\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    index = read_edges(path, NODES)["edge_index"]
    if suffix == "npy" and not header and len(arcs) == 2:
        index = index.T  # [2, 2] is read as [2, E]
    assert index.dtype == np.int64 and index.T.tolist() == [list(arc) for arc in arcs]


def test_columns_are_selected_by_name(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("time,weight,kind,Target,source,size\n5,0.5,a,1,0,7\n6,2,b,2,1,8\n")
    arcs = read_edges(path, 3)
    assert arcs["edge_index"].tolist() == [[0, 1], [1, 2]]
    assert arcs["edge_weight"].tolist() == [0.5, 2.0] and arcs["edge_weight"].dtype == np.float32
    assert arcs["edge_attr"].tolist() == [[5, 7], [6, 8]] and arcs["edge_attr"].dtype == np.float32


def test_unknown_header_means_the_first_two_columns(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("soure\ttarget\n0\t2\n1\t0 # the reverse\n")
    assert read_edges(path, 3)["edge_index"].tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0 1\n1 3\n-1 0\n", "row 2 names node 3: nodes are whole numbers from 0 to 2"),
        ("0 1\n-1 0\n", "row 2 names node -1"),
        ("0 1\n1 0.5\n", "row 2 names node 0.5"),
        ("0 1\n1\n", "row 2 names node nan"),
        ("source target\n0 1\na 1\n", "row 2 names node a"),
        ("0 1\n99999999999999999999 1\n", "row 2 names node 99999999999999999999"),
        ('source,target\n0,1\n"a\nb\x07",1\n', "row 2 names node a b�: "),
        ("True 1\n2 3\n", "row 1 names node True"),
        ("True False\nFalse True\n", "row 1 names node True"),
        ("0x10 1\n2 0\n", "row 1 names node 0x10"),
        ("none 1\n2 0\n", "row 1 names node none"),
        ("0\n1\n", "has one column: an edge list needs two"),
        ("source target weight\n0 1 heavy\n", "column 'weight' holds text"),
    ],
)
def test_bad_rows_are_named(tmp_path, text, reason):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_edges(path, 3)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((3, 3), dtype=int), r"shape \(3, 3\) of int64: edges are whole numbers, \[2, E\] or \[E, 2\]"),
        (np.zeros(4, dtype=int), r"shape \(4,\)"),
        (np.array([["a", "b"], ["c", "d"]]), "of <U1"),
        (np.array([[0, 1, 7], [1, 2, 0]]), "row 3 names node 7"),
        (np.array([[0, 1], [1, 2], [0, 2**63]], dtype=np.uint64), "row 3 names node 9223372036854775808"),
        (np.array([[0, 1, np.nan], [1, 2, 0]]), "row 3 names node nan"),
    ],
)
def test_bad_arrays_are_named(tmp_path, array, reason):
    np.save(tmp_path / "edges.npy", array)
    with pytest.raises(InputError, match=reason):
        read_edges(tmp_path / "edges.npy", 3)


def test_separators_at_line_ends_make_no_attribute(tmp_path):
    (tmp_path / "edges.csv").write_text("0,1,\n1,2,\n")
    assert read_edges(tmp_path / "edges.csv", 3).keys() == {"edge_index"}


def test_wrong_suffix(tmp_path):
    with pytest.raises(InputError, match=r"edges: cannot tell the format"):
        read_edges(tmp_path / "edges.xlsx", 3)
