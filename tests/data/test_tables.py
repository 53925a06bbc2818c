import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gst.base.errors import InputError
from gst.data.tables import MAX_LINE, kind_of, read_array, read_npz, read_sparse, read_table, require_kind


def write(path: Path, text: str) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "columns", "rows"),
    [
        ("a.txt", "0 1\n2 3\n", [0, 1], [[0, 1], [2, 3]]),
        ("a.txt.gz", "# a comment\n#\n0\t1\r\n2\t3\r\n", [0, 1], [[0, 1], [2, 3]]),
        ("a.edgelist", "% KONECT\n\n 0  1 \n2 3", [0, 1], [[0, 1], [2, 3]]),
        ("a.csv", "\ufeffSource, Target\n0, 1\n2, 3\n", ["source", "target"], [[0, 1], [2, 3]]),
        ("a.csv", '"source","target"\n0,1\n', ["source", "target"], [[0, 1]]),
        ("a.tsv", "node\tlabel\n0\tSan Juan, PR\n", ["node", "label"], [[0, "San Juan, PR"]]),
        ("a.csv", "label\nC#\n", ["label"], [["C#"]]),
        ("a.csv", "0,cat\n1,dog\n", [0, 1], [[0, "cat"], [1, "dog"]]),
    ],
)
def test_text_tables(tmp_path, name, text, columns, rows):
    table = read_table(write(tmp_path / name, text))
    assert list(table.columns) == columns and table.to_numpy().tolist() == rows


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("True,1\n2,3\n", 2, 2),  # values, so no header
        ("False\nTrue\nTrue\n", 1, 3),
        ("0x10,5\n1,2\n", 2, 2),
        ("nan,1\n2,3\n", 2, 2),
        (",5\n1,2\n", 2, 2),
        ("cat,0\ndog,1\n", 2, 2),
        ("x,1\n2,3\n", 2, 2),
        ("none,0\n1,2\n", 2, 1),  # as pandas writes numbered columns and an index of this name
        ("a,b\nc,d\n", 2, 1),  # names only: a header
        ("label\ncat\ndog\n", 1, 2),
        (",a,b\n0,1,2\n", 3, 1),
        (",0,1\n0,0.5,0.1\n", 3, 1),
        ("node,0,1\n0,0.5,0.1\n", 3, 1),
        ("id,2019\n0,0.5\n", 2, 1),
        ("source,target,\n0,1,\n", 3, 1),  # a separator at the end of every line
        ('"San Juan, PR",0\n"Ponce, PR",1\n', 2, 2),
    ],
)
def test_a_header_has_names_and_no_values(tmp_path, text, columns, rows):
    table = read_table(write(tmp_path / "a.csv", text), names=("id", "source"))
    assert table.shape == (rows, columns)


def test_a_header_is_recognised_by_the_number_of_rows(tmp_path):
    path = write(tmp_path / "labels.csv", "cat\ndog\n")
    assert len(read_table(path)) == 1
    assert read_table(path, rows=2)[0].tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ragged.csv", b"0,1\n2,3,4\n"),
        ("longer.csv", b"source,target\n0,1,2\n3,4,5\n"),
        ("empty.csv", b""),
        ("comments.txt", b"# only\n"),
        ("binary.txt", bytes(range(128, 256))),
        ("nul.csv", b"0,1\n2,\x003\n"),
        ("wide.csv", b"\xff\xfe" + "0,1\n".encode("utf-16-le")),
        ("nul.csv.gz", gzip.compress(b"0,1\n2,\x003\n", mtime=0)),
        ("cut.csv.gz", gzip.compress(b"0,1\n" * 1000, mtime=0)[:20]),
        ("plain.csv.gz", b"0,1\n"),
        ("no.parquet", b"PAR1 and nothing"),
    ],
)
def test_broken_tables_give_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name) as error:
        read_table(tmp_path / name)
    assert "\n" not in str(error.value)


def test_truncated_parquet_and_numpy_files(tmp_path):
    pd.DataFrame({"a": range(1000)}).to_parquet(tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", np.arange(1000))
    np.savez(tmp_path / "a.npz", a=np.arange(1000))
    sp.save_npz(tmp_path / "s.npz", sp.eye_array(50, format="csr"))
    readers = {"a.parquet": read_table, "a.npy": read_array, "a.npz": read_npz, "s.npz": read_sparse}
    for name, reader in readers.items():
        reader(tmp_path / name)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(InputError, match=name):
            reader(tmp_path / name)


def test_pickles_inside_numpy_files_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", a=np.array([{}], dtype=object))
    for name, reader in (("a.npy", read_array), ("a.npz", read_npz)):
        with pytest.raises(InputError, match=r"[Oo]bject"):
            reader(tmp_path / name)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_indices_are_checked(tmp_path, kind):
    matrix = sp.random_array((6, 5), density=0.4, format=kind, rng=np.random.default_rng(0))
    sp.save_npz(tmp_path / "good.npz", matrix)
    assert np.array_equal(read_sparse(tmp_path / "good.npz").toarray(), matrix.toarray())
    arrays = dict(np.load(tmp_path / "good.npz"))
    arrays["row" if "row" in arrays else "indices" if "indices" in arrays else "coords"][..., 0] = 10**6
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=r"bad\.npz does not read as a sparse matrix"):
        read_sparse(tmp_path / "bad.npz")


def test_sparse_formats_without_checks_are_refused(tmp_path):
    sp.save_npz(tmp_path / "d.npz", sp.eye_array(4, format="dia"))
    with pytest.raises(InputError, match="save it as csr, csc or coo"):
        read_sparse(tmp_path / "d.npz")


def test_the_suffix_tells_the_format(tmp_path):
    assert kind_of(Path("a.b.csv.gz")) == ".csv" and kind_of(Path("a.npy.gz")) == ".gz" and kind_of(Path("a")) == ""
    with pytest.raises(InputError, match=r"edges: cannot tell the format of e\.xlsx: .* end in \.csv, \.npy"):
        require_kind(Path("e.xlsx"), "edges", (".csv", ".npy"))
    with pytest.raises(InputError, match=r"no such file: .*gone\.csv"):
        read_table(tmp_path / "gone.csv")


def test_lines_have_a_bound_wherever_they_are(tmp_path):
    for name, text in {
        "one.csv": "7" * (MAX_LINE + 2**21),
        "late.csv.gz": "0,1\n" + "7" * (MAX_LINE + 2**21),
    }.items():
        with pytest.raises(InputError, match=rf"{name} has a line of more than 16 MiB"):
            read_table(write(tmp_path / name, text))
    fields = ["1.25"] * 20_000
    assert read_table(write(tmp_path / "old.csv", "\r".join([",".join(fields)] * 200))).shape == (200, 20_000)


def test_short_rows_below_a_wide_header_count_in_full(tmp_path, monkeypatch):
    claims = []
    monkeypatch.setattr("gst.data.tables.check_claim", lambda path, size: claims.append(size))
    read_table(write(tmp_path / "a.csv", ",".join("abcdefgh") + "\n" + "1\n" * 99))
    assert 8 * 8 * 100 <= max(claims) <= 8 * 8 * 102
    with pytest.raises(InputError, match="more than 100000 columns"):
        read_table(write(tmp_path / "b.csv", "," * 100_001 + "\n"))


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(InputError, match=r"a\.npy does not read as a numpy array"):
        read_array(tmp_path / "a.npy")
