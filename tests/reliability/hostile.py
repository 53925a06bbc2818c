"""Files made to do harm: refused in two seconds and with less than 500 MiB."""

import gzip
import io
import json
import os
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

import gst
from gst.base.errors import InputError
from gst.data.nodes import read_features, read_labels
from gst.data.tables import read_npz
from gst.storage import files
from reliability import unfolding

MANY = 10**9


class Gadget:
    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch {self.mark}",))


def pickle_gadget(place: Path) -> Callable[[], Any]:
    torch.save({"x": Gadget(str(place / "owned"))}, place / "evil.pt")
    return lambda: gst.load(place / "evil.pt")


def pickled_array(place: Path) -> Callable[[], Any]:
    np.save(place / "evil.npy", np.array([[Gadget(str(place / "owned"))]], dtype=object), allow_pickle=True)
    return lambda: read_features(place / "evil.npy")


def zip_bomb(place: Path, name: str = "bomb.npz") -> Callable[[], Any]:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (MANY, 1)})
    with zipfile.ZipFile(place / name, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as entry:
        entry.write(header.getvalue())
        for _ in range(1024):
            entry.write(bytes(2**20))
    return lambda: read_npz(place / name)


def torch_bomb(place: Path) -> Callable[[], Any]:
    torch.save({"x": torch.zeros(2**26)}, place / "plain.pt")
    with zipfile.ZipFile(place / "plain.pt") as plain, zipfile.ZipFile(place / "bomb.pt", "w", 8) as bomb:
        for name in plain.namelist():
            bomb.writestr(name, plain.read(name))
    (place / "plain.pt").unlink()
    return lambda: gst.load(place / "bomb.pt")


def gzip_bomb(place: Path) -> Callable[[], Any]:
    with gzip.open(place / "labels.csv.gz", "wb") as file:
        for _ in range(1024):
            file.write(b"0\n" * 2**19)
    return lambda: read_labels(place / "labels.csv.gz", MANY)


def repeated_rows(place: Path) -> Callable[[], Any]:
    """One row of memory that claims to be 10⁹."""
    x, y = torch.zeros(1, 5).expand(MANY, 5), torch.zeros(1, dtype=torch.long).expand(MANY)
    torch.save({"x": x, "y": y, "edge_index": torch.tensor([[0, 1], [1, 0]])}, place / "many.pt")
    return lambda: gst.load(place / "many.pt", split="random")


def lying_header(place: Path) -> Callable[[], Any]:
    with (place / "many.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (MANY, 100)})
    return lambda: read_features(place / "many.npy")


def empty_sparse(place: Path) -> Callable[[], Any]:
    sp.save_npz(place / "many.npz", sp.coo_matrix(([1.0], ([0], [0])), shape=(MANY, 4)))
    return lambda: read_features(place / "many.npz")


def constant_parquet(place: Path) -> Callable[[], Any]:
    pd.DataFrame({"a": np.zeros(5 * 10**7, dtype=np.int8)}).to_parquet(place / "many.parquet", index=False)
    return lambda: read_features(place / "many.parquet")


def synthetic(place: Path) -> Callable[[], Any]:
    return lambda: gst.load(f"synthetic:nodes={MANY}")


def long_header(place: Path) -> Callable[[], Any]:
    (place / "long.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    return lambda: files.read_tensors(place / "long.safetensors", sealed=False)


def large_shape(place: Path) -> Callable[[], Any]:
    header = json.dumps({"x": {"dtype": "F32", "shape": [MANY, MANY], "data_offsets": [0, 4]}}).encode()
    (place / "large.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    return lambda: files.read_tensors(place / "large.safetensors", sealed=False)


def deep_json(place: Path) -> Callable[[], Any]:
    (place / "run.json").write_text("[" * 10**6 + "]" * 10**6)
    return lambda: gst.Result.load(place)


def _run(place: Path, words: dict[str, Any], **changes: Any) -> Callable[[], Any]:
    """A result of format 1, which has no hashes, with changed words."""
    graph = {"edge_index": torch.zeros(2, 0, dtype=torch.long), "edge_mask": torch.zeros(0), "scores": torch.zeros(0)}
    rows = {f"x/{part}": torch.zeros(0, dtype=torch.long) for part in ("row", "column")} | {"x/value": torch.zeros(0)}
    files.write_tensors(place / "graph.safetensors", graph | rows, {"x_shape": [3, 2], "num_nodes": 3} | words)
    files.write_tensors(place / "model.safetensors", {"layers.0.bias": torch.zeros(2)})
    run = {"format": 1, "metrics": {"backbone": "gcn"}, "settings": {}, **changes}
    (place / "run.json").write_text(json.dumps(run))
    return lambda: gst.Result.load(place)


def many_nodes_in_a_run(place: Path) -> Callable[[], Any]:
    return _run(place, {"x_shape": [MANY, 8], "num_nodes": MANY})


def wide_model(place: Path) -> Callable[[], Any]:
    return _run(place, {}, settings={"hidden": MANY})


def deep_model(place: Path) -> Callable[[], Any]:
    return _run(place, {}, settings={"layers": MANY})


def path_out_of_the_folder(place: Path) -> Callable[[], Any]:
    """Names in files are never paths: such a run is refused and nothing is read or written outside."""
    return _run(place, {}, files={"../../secret": "0" * 32}, metrics={"backbone": "../../secret"})


ALL = [
    pickle_gadget,
    pickled_array,
    zip_bomb,
    torch_bomb,
    gzip_bomb,
    repeated_rows,
    lying_header,
    empty_sparse,
    constant_parquet,
    synthetic,
    long_header,
    large_shape,
    deep_json,
    many_nodes_in_a_run,
    wide_model,
    deep_model,
    path_out_of_the_folder,
    *unfolding.ALL,
]


def refusal(make: Callable[[Path], Callable[[], Any]], place: Path) -> tuple[float, float]:
    """Seconds and MiB that refusing takes; fails where the file is taken, or with another error."""
    read = make(place)
    Path("/proc/self/clear_refs").write_text("5")  # the highest use of memory is counted from here on
    before = _memory("VmRSS")
    start = time.perf_counter()
    try:
        read()
    except InputError as error:
        assert "\n" not in str(error)
    else:
        raise AssertionError(f"{make.__name__} was not refused")
    seconds = time.perf_counter() - start
    assert not (place / "owned").exists(), "code from a file was run"
    return seconds, _memory("VmHWM") - before


def _memory(field: str) -> float:
    """MiB of this process, as the kernel counts."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))
