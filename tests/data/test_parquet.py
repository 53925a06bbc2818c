"""Parquet tables: flat ones read as pandas reads them; what would unpack to more than memory is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gst.base.errors import InputError
from gst.data.nodes import read_features, read_labels
from gst.data.parquet import read_parquet
from gst.data.tables import read_table


def table(rows=5000):
    rng = np.random.default_rng(0)
    words = np.array(["alpha", "beta", "gamma", "δ"])
    return pd.DataFrame(
        {
            "whole": rng.integers(-5, 5, rows),
            "small": rng.integers(0, 5, rows).astype(np.int8),
            "half": rng.random(rows).astype(np.float16),
            "single": rng.random(rows).astype(np.float32),
            "truth": rng.random(rows) < 0.5,
            "word": words[rng.integers(0, 4, rows)],
            "unique": [f"node {i}" for i in range(rows)],
            "kind": pd.Categorical(words[rng.integers(0, 4, rows)]),
            "gaps": np.where(rng.random(rows) < 0.2, np.nan, 1.5),
            "lost": [None if i % 3 else "here" for i in range(rows)],
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": None, "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 700},
        {"compression": "gzip", "data_page_size": 512, "dictionary_pagesize_limit": 64},
        {"column_encoding": {"whole": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
        {"column_encoding": {"word": "DELTA_LENGTH_BYTE_ARRAY"}, "use_dictionary": False},
        {"column_encoding": {"single": "BYTE_STREAM_SPLIT"}, "use_dictionary": False, "write_page_index": True},
    ],
    ids=str,
)
def test_flat_tables_read_as_pandas_reads_them(tmp_path, options):
    data = table()
    data.to_parquet(tmp_path / "t.parquet", engine="pyarrow", **options)
    ours = read_parquet(tmp_path / "t.parquet")
    expected = pd.read_parquet(tmp_path / "t.parquet")
    assert list(ours.columns) == list(expected.columns) and ours.index.equals(expected.index)
    for name in expected.columns:
        old, new = expected[name].astype(object), ours[name].astype(object)
        assert new.isna().equals(old.isna()) and new[~new.isna()].tolist() == old[~old.isna()].tolist(), name
        assert pd.api.types.is_numeric_dtype(ours[name]) == pd.api.types.is_numeric_dtype(expected[name]), name


def test_indices_names_and_tables_without_rows(tmp_path):
    data = pd.DataFrame({"Label": ["b", "a", "b"]}, index=pd.Index([2, 0, 1], name="node"))
    data.to_parquet(tmp_path / "y.parquet")
    assert read_table(tmp_path / "y.parquet").columns.tolist() == ["label"]
    data.reset_index().to_parquet(tmp_path / "y.parquet")
    assert read_labels(tmp_path / "y.parquet", 3).tolist() == [0, 1, 1]
    data.iloc[:0].to_parquet(tmp_path / "empty.parquet")
    assert read_table(tmp_path / "empty.parquet").shape == (0, 1)
    twice = pa.table([pa.array([1, 2]), pa.array(["x", "y"]), pa.array(["z", "w"])], names=["a", "b", "b"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match=r"the column 'b' holds text"):
        read_features(tmp_path / "twice.parquet")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([[1, 2], [3]]), "is nested"),
        (pa.array([{"a": 1}, {"a": 2}]), "is nested"),
        (pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())), "is nested"),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), "is nested"),
    ],
)
def test_columns_of_lists_are_refused(tmp_path, column, reason):
    pq.write_table(pa.table({"a": column}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=reason):
        read_table(tmp_path / "t.parquet")


def test_page_headers_count_and_not_the_footer(tmp_path):
    """The footer declares a small column, but its page unpacks to 320 MiB."""
    path = tmp_path / "t.parquet"
    word = pa.array([bytes(5 * 2**26).decode()])
    pq.write_table(pa.table({"a": word}), path, compression="zstd", use_dictionary=False, write_statistics=False)
    content = path.read_bytes()
    size = pq.read_metadata(path).row_group(0).total_byte_size
    size_bytes = _varint(2 * size)  # as Thrift writes signed numbers
    assert content.count(size_bytes) >= 2
    path.write_bytes(content[:100] + content[100:].replace(size_bytes, b"\x82\x80\x80\x80\x00"[: len(size_bytes)]))
    assert pq.read_metadata(path).row_group(0).total_byte_size < 2**20
    with pytest.raises(InputError, match=r"would unfold to 0\.3 GiB"):
        read_table(path)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_any_damage_gives_one_line(tmp_path):
    path, rng = tmp_path / "t.parquet", np.random.default_rng(1)
    table(200).to_parquet(path)
    whole = path.read_bytes()
    for position in rng.integers(0, len(whole), 150):
        path.write_bytes(
            whole[:position] + bytes([whole[position] ^ 1 << int(rng.integers(8))]) + whole[position + 1 :]
        )
        try:
            read_table(path)
        except InputError as error:
            assert "\n" not in str(error) and "t.parquet" in str(error)
