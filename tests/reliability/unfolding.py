"""More malicious files: decompression bombs, holes that look like data, and special files."""

import gzip
import io
import os
import pickle
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import gst
from gst.data.edges import read_edges
from gst.data.nodes import read_features, read_labels
from gst.data.tables import read_npz, read_table
from gst.lab.bench.load import load_rows
from gst.lab.bench.store import Store
from gst.storage import files

LAUGHS = b"](" + b"]q\x00" + b"](h\x00h\x00eq\x00" * 60 + b"e"  # nested lists, each of twice the previous one
Reading = Callable[[], Any]
HOLE = 40 * 2**30  # bytes


def torch_archive(path: Path, content: bytes, storages: dict[str, bytes] | None = None) -> Path:
    """A file as ``torch.save`` writes it, around any pickle."""
    parts = {"data.pkl": content, "byteorder": b"little", "version": b"3\n"}
    parts |= {f"data/{key}": value for key, value in (storages or {}).items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(f"archive/{name}", part)
    return path


def text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def field(value: bytes) -> bytes:
    """The pickle of a dict with one field."""
    return b"\x80\x02}" + text("x") + value + b"s."


def number(value: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", value)


def tensor(size: int, stride: int, count: int) -> bytes:
    """The pickle of a 1-D tensor over a storage that claims to hold ``count`` numbers."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(count) + b"tQ"
    shape = number(0) + number(size) + b"\x85" + number(stride) + b"\x85"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + shape + b"\x89ccollections\nOrderedDict\n)RtR"


def _pickle(root: Path, content: bytes, storages: dict[str, bytes] | None = None) -> Reading:
    path = torch_archive(root / "evil.pt", content, storages)
    return lambda: gst.load(path)


def torch_bytearray(root: Path) -> Reading:
    return _pickle(root, field(b"cbuiltins\nbytearray\n" + number(3 * 10**9) + b"\x85R"))


def torch_storage_lie(root: Path) -> Reading:
    return _pickle(root, field(tensor(10**9, 1, 10**9)), {"0": bytes(4)})


def torch_long_view(root: Path) -> Reading:
    return _pickle(root, field(tensor(10**12, 0, 1)), {"0": bytes(4)})


def torch_many_views(root: Path) -> Reading:
    """A thousand views of 100 MiB of one number, none of them too large by itself."""
    views = b"".join(tensor(25 * 2**20, 0, 1) for _ in range(1000))
    return _pickle(root, field(b"](" + views + b"e"), {"0": bytes(4)})


def torch_overlap(root: Path) -> Reading:
    """A thousand entries that all refer to the same million bytes."""
    path = torch_archive(root / "evil.pt", field(b"N"), {"0": bytes(2**20)})
    with zipfile.ZipFile(path, "a") as archive:
        (entry,) = (entry for entry in archive.infolist() if entry.filename.endswith("data/0"))
        for i in range(1, 1000):
            twin = zipfile.ZipInfo(f"archive/data/{i}")
            twin.header_offset, twin.CRC, twin.file_size = entry.header_offset, entry.CRC, entry.file_size
            twin.compress_size = entry.compress_size
            archive.filelist.append(twin)
        archive._didModify = True  # type: ignore[attr-defined]
    return lambda: gst.load(path)


def torch_laughs(root: Path) -> Reading:
    """A key of nested tuples, each of twice the previous one, 60 deep: its hash takes 2⁶⁰ steps."""
    tuples = b"](" + b")q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"e"
    return _pickle(root, b"\x80\x02}" + text("a") + tuples + b"s" + b"h\x00Ns.")


def torch_laughing_lists(root: Path) -> Reading:
    return _pickle(root, field(LAUGHS))


def torch_deep(root: Path) -> Reading:
    return _pickle(root, field(b")" + b"\x85" * 300_000))


def torch_endless_steps(root: Path) -> Reading:
    return _pickle(root, field(b"](" + b"}" * 30_000_000 + b"e"))


def torch_legacy(root: Path) -> Reading:
    """The format before archives, whose sizes torch trusts before it reads a byte."""
    torch.save({"x": torch.zeros(2)}, root / "old.pt", _use_new_zipfile_serialization=False)
    return lambda: gst.load(root / "old.pt")


def plain_pickle(root: Path) -> Reading:
    (root / "evil.pt").write_bytes(pickle.dumps({"x": bytearray(10)}, protocol=2))
    return lambda: gst.load(root / "evil.pt")


def _parquet(root: Path, column: pa.Array, repeat: int = 1, **options: Any) -> Reading:
    table = pa.table({"a": column})
    table = table.take(pa.array(np.zeros(repeat, dtype=np.int64))) if repeat > 1 else table
    pq.write_table(table, root / "evil.parquet", compression="zstd", **options)
    del table, column
    pa.default_memory_pool().release_unused()  # otherwise memory left by the writer would hide what the reader takes
    return lambda: read_labels(root / "evil.parquet", 3)


def parquet_lists(root: Path) -> Reading:
    items = pa.array(np.zeros(10**8, dtype=np.int8))
    return _parquet(root, pa.ListArray.from_arrays(pa.array([0, 10**8], pa.int32()), items))


def parquet_words(root: Path) -> Reading:
    """One word of 2,000 letters, stored once and repeated half a million times."""
    coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(500_000, np.int32)), pa.array(["x" * 2000]))
    return _parquet(root, coded, store_schema=False)


def parquet_prefixes(root: Path) -> Reading:
    options: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}
    return _parquet(root, pa.array(["x" * 20_000]), 50_000, **options)


def parquet_zeros(root: Path) -> Reading:
    """One word of 320 MiB, compressed by a factor of thirty thousand."""
    word = pa.array([bytes(5 * 2**26).decode()])
    return _parquet(root, word, use_dictionary=False, write_statistics=False)


def parquet_wide(root: Path) -> Reading:
    return _parquet(root, pa.array([bytes(2**20)], pa.binary(2**20)), 700, write_statistics=False)


def _hole(path: Path, start: bytes, read: Callable[[Path], Any]) -> Reading:
    """A file that begins like a real one, followed by a hole of 40 GiB that takes no disk space."""
    path.write_bytes(start)
    os.truncate(path, HOLE)
    return lambda: read(path)


def sparse_safetensors(root: Path) -> Reading:
    return _hole(root / "x.safetensors", struct.pack("<Q", 2) + b"{}", files.read_tensors)


def sparse_npy(root: Path) -> Reading:
    header = io.BytesIO()
    shape = (2, (HOLE - 128) // 16)
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return _hole(root / "x.npy", header.getvalue(), lambda path: read_edges(path, 10))


def sparse_npz(root: Path) -> Reading:
    return _hole(root / "x.npz", b"PK\x03\x04", read_npz)


def sparse_csv(root: Path) -> Reading:
    return _hole(root / "x.csv", b"0,1\n", read_table)


def sparse_parquet(root: Path) -> Reading:
    return _hole(root / "x.parquet", b"PAR1", read_table)


def sparse_torch(root: Path) -> Reading:
    return _hole(root / "x.pt", b"PK\x03\x04", gst.load)


def sparse_json(root: Path) -> Reading:
    return _hole(root / "run.json", b"{", lambda path: gst.Result.load(path.parent))


def sparse_rows(root: Path) -> Reading:
    return _hole(root / "rows.csv", b"experiment,", load_rows)


def nul_csv(root: Path) -> Reading:
    (root / "x.csv").write_bytes(bytes(200 * 2**20))
    return lambda: read_features(root / "x.csv")


def nul_gzip(root: Path) -> Reading:
    (root / "x.csv.gz").write_bytes(gzip.compress(bytes(200 * 2**20), 1))
    return lambda: read_features(root / "x.csv.gz")


def nul_rows(root: Path) -> Reading:
    (root / "x.csv").write_bytes(bytes(200 * 2**20))
    return lambda: load_rows(root)


def late_long_line(root: Path) -> Reading:
    (root / "x.csv").write_bytes(b"0,1\n" + b"7" * (200 * 2**20))
    return lambda: read_features(root / "x.csv")


def wide_header(root: Path) -> Reading:
    """Short rows below a wide header would be padded: 90,000 columns of 30,000 rows."""
    (root / "x.csv").write_text(",".join(f"f{i}" for i in range(90_000)) + "\n" + "1\n" * 30_000)
    return lambda: read_features(root / "x.csv")


def many_columns(root: Path) -> Reading:
    (root / "x.csv").write_text("," * 5_000_000 + "\n1\n")
    return lambda: read_features(root / "x.csv")


def one_long_label(root: Path) -> Reading:
    """An array of strings takes the space of the longest for each."""
    (root / "y.csv").write_text("label\n" + "a\n" * 9_999 + "b" * 100_000 + "\n")
    return lambda: read_labels(root / "y.csv", 10_000)


def many_lists_in_json(root: Path) -> Reading:
    (root / "run.json").write_text('{"a": [' + "[]," * 21_000_000 + "[]]}")
    return lambda: gst.Result.load(root)


def named_pipe(root: Path) -> Reading:
    os.mkfifo(root / "x.pt")
    return lambda: gst.load(root / "x.pt")


def endless_device(root: Path) -> Reading:
    (root / "x.csv").symlink_to("/dev/zero")
    return lambda: load_rows(root / "x.csv")


def endless_store(root: Path) -> Reading:
    (root / "x.db").symlink_to("/dev/zero")
    return lambda: Store(root / "x.db")


def socket_file(root: Path) -> Reading:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(os.path.relpath(root / "x.npy"))  # socket names must be short
    return lambda: read_features(root / "x.npy")


def kernel_file(root: Path) -> Reading:
    """A kernel file: regular and of size 0, though some of them never end."""
    (root / "x.csv").symlink_to("/proc/self/status")
    return lambda: read_features(root / "x.csv")


ALL = [
    torch_bytearray,
    torch_storage_lie,
    torch_long_view,
    torch_many_views,
    torch_overlap,
    torch_laughs,
    torch_laughing_lists,
    torch_deep,
    torch_endless_steps,
    torch_legacy,
    plain_pickle,
    parquet_lists,
    parquet_words,
    parquet_prefixes,
    parquet_zeros,
    parquet_wide,
    sparse_safetensors,
    sparse_npy,
    sparse_npz,
    sparse_csv,
    sparse_parquet,
    sparse_torch,
    sparse_json,
    sparse_rows,
    nul_csv,
    nul_gzip,
    nul_rows,
    late_long_line,
    wide_header,
    many_columns,
    one_long_label,
    many_lists_in_json,
    named_pipe,
    endless_device,
    endless_store,
    socket_file,
    kernel_file,
]
