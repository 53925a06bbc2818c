import gzip

import numpy as np
import pytest

from gst.base.errors import InputError
from gst.data import stream
from gst.data.stream import read_blocks, read_into


def write(path, values, form="%d"):
    with gzip.open(path, "wb") as file:
        np.savetxt(file, np.asarray(values), fmt=form, delimiter=",")
    return path


@pytest.mark.parametrize("block", [64, 2**24])
@pytest.mark.parametrize(("dtype", "form"), [(np.int32, "%d"), (np.int64, "%d"), (np.float32, "%.9g")])
def test_blocks_give_the_file_in_order(tmp_path, monkeypatch, block, dtype, form):
    monkeypatch.setattr(stream, "BLOCK", block)
    values = (np.random.default_rng(0).normal(size=(100, 3)) * 50).astype(dtype)
    path, out = write(tmp_path / "a.csv.gz", values, form), np.empty((100, 3), dtype=dtype)
    read_into(path, out)
    assert np.array_equal(out, values)
    assert (len(list(read_blocks(path, (100, 3), dtype))) > 10) == (block == 64)


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 2**12)
    path = write(tmp_path / "a.csv.gz", np.ones((50_000, 2)))
    assert max(len(values) for _, values in read_blocks(path, (50_000, 2), np.int32)) <= 2**12


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"1,2\n3,4\n", "has 2 rows: the published file has 3"),
        (b"1,2\n" * 4, "has more than 3 rows"),
        (b"1,2,3\n" * 3, "has 3 columns: the published file has 2"),
        (b"1,2\n3,4\n5\n", "does not read as gzipped CSV"),
        (b"1,2\n3,x\n5,6\n", "does not read as gzipped CSV"),
        (b"1,2\n3,4.5\n5,6\n", "does not read as gzipped CSV"),
        (b"1,2\n3,99999999999\n5,6\n", "does not read as gzipped CSV"),
        (b"1,2\n3,\n5,6\n", "row 2 lacks a value"),
        (b"", "does not read as gzipped CSV"),
        (b"a,b\n1,2\n3,4\n5,6\n", "does not read as gzipped CSV"),
    ],
)
def test_other_content_gets_one_line(tmp_path, text, reason):
    path = tmp_path / "edge.csv.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(InputError) as error:
        read_into(path, np.empty((3, 2), dtype=np.int32))
    assert reason in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("cut", [-4, -30, 12])
def test_a_file_cut_off(tmp_path, cut):
    path = write(tmp_path / "edge.csv.gz", np.random.default_rng(0).integers(0, 999, (500, 2)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"edge\.csv\.gz does not read as gzipped CSV of 500 rows: .*[Tt]runcated"):
        read_into(path, np.empty((500, 2), dtype=np.int32))


def test_a_file_that_is_not_there_or_not_gzipped(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_into(tmp_path / "a.csv.gz", np.empty((1, 1), dtype=np.int32))
    (tmp_path / "b.csv.gz").write_text("1\n")
    with pytest.raises(InputError, match="does not read as gzipped CSV"):
        read_into(tmp_path / "b.csv.gz", np.empty((1, 1), dtype=np.int32))
