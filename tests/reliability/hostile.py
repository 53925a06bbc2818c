"""Malicious files: refused within two seconds and 500 MiB."""

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


def pickle_gadget(root: Path) -> Callable[[], Any]:
    torch.save({"x": Gadget(str(root / "owned"))}, root / "evil.pt")
    return lambda: gst.load(root / "evil.pt")


def pickled_array(root: Path) -> Callable[[], Any]:
    np.save(root / "evil.npy", np.array([[Gadget(str(root / "owned"))]], dtype=object), allow_pickle=True)
    return lambda: read_features(root / "evil.npy")


def zip_bomb(root: Path, name: str = "bomb.npz") -> Callable[[], Any]:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (MANY, 1)})
    with zipfile.ZipFile(root / name, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as entry:
        entry.write(header.getvalue())
        for _ in range(1024):
            entry.write(bytes(2**20))
    return lambda: read_npz(root / name)


def torch_bomb(root: Path) -> Callable[[], Any]:
    torch.save({"x": torch.zeros(2**26)}, root / "plain.pt")
    with zipfile.ZipFile(root / "plain.pt") as plain, zipfile.ZipFile(root / "bomb.pt", "w", 8) as bomb:
        for name in plain.namelist():
            bomb.writestr(name, plain.read(name))
    (root / "plain.pt").unlink()
    return lambda: gst.load(root / "bomb.pt")


def gzip_bomb(root: Path) -> Callable[[], Any]:
    with gzip.open(root / "labels.csv.gz", "wb") as file:
        for _ in range(1024):
            file.write(b"0\n" * 2**19)
    return lambda: read_labels(root / "labels.csv.gz", MANY)


def repeated_rows(root: Path) -> Callable[[], Any]:
    """One row of memory that claims to be 10⁹."""
    x, y = torch.zeros(1, 5).expand(MANY, 5), torch.zeros(1, dtype=torch.long).expand(MANY)
    torch.save({"x": x, "y": y, "edge_index": torch.tensor([[0, 1], [1, 0]])}, root / "many.pt")
    return lambda: gst.load(root / "many.pt", split="random")


def lying_header(root: Path) -> Callable[[], Any]:
    with (root / "many.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (MANY, 100)})
    return lambda: read_features(root / "many.npy")


def empty_sparse(root: Path) -> Callable[[], Any]:
    sp.save_npz(root / "many.npz", sp.coo_matrix(([1.0], ([0], [0])), shape=(MANY, 4)))
    return lambda: read_features(root / "many.npz")


def constant_parquet(root: Path) -> Callable[[], Any]:
    pd.DataFrame({"a": np.zeros(5 * 10**7, dtype=np.int8)}).to_parquet(root / "many.parquet", index=False)
    return lambda: read_features(root / "many.parquet")


def synthetic(root: Path) -> Callable[[], Any]:
    return lambda: gst.load(f"synthetic:nodes={MANY}")


def long_header(root: Path) -> Callable[[], Any]:
    (root / "long.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    return lambda: files.read_tensors(root / "long.safetensors", sealed=False)


def large_shape(root: Path) -> Callable[[], Any]:
    header = json.dumps({"x": {"dtype": "F32", "shape": [MANY, MANY], "data_offsets": [0, 4]}}).encode()
    (root / "large.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    return lambda: files.read_tensors(root / "large.safetensors", sealed=False)


def deep_json(root: Path) -> Callable[[], Any]:
    (root / "run.json").write_text("[" * 10**6 + "]" * 10**6)
    return lambda: gst.Result.load(root)


def _run(root: Path, metadata: dict[str, Any], **changes: Any) -> Callable[[], Any]:
    """A result of format 1, which has no hashes, with altered metadata."""
    graph = {"edge_index": torch.zeros(2, 0, dtype=torch.long), "edge_mask": torch.zeros(0), "scores": torch.zeros(0)}
    rows = {f"x/{part}": torch.zeros(0, dtype=torch.long) for part in ("row", "column")} | {"x/value": torch.zeros(0)}
    files.write_tensors(root / "graph.safetensors", graph | rows, {"x_shape": [3, 2], "num_nodes": 3} | metadata)
    files.write_tensors(root / "model.safetensors", {"layers.0.bias": torch.zeros(2)})
    run = {"format": 1, "metrics": {"backbone": "gcn"}, "settings": {}, **changes}
    (root / "run.json").write_text(json.dumps(run))
    return lambda: gst.Result.load(root)


def many_nodes_in_a_run(root: Path) -> Callable[[], Any]:
    return _run(root, {"x_shape": [MANY, 8], "num_nodes": MANY})


def wide_model(root: Path) -> Callable[[], Any]:
    return _run(root, {}, settings={"hidden": MANY})


def deep_model(root: Path) -> Callable[[], Any]:
    return _run(root, {}, settings={"layers": MANY})


def path_out_of_the_folder(root: Path) -> Callable[[], Any]:
    """File names in a run are never used as paths: it is refused, and nothing outside is read or written."""
    return _run(root, {}, files={"../../secret": "0" * 32}, metrics={"backbone": "../../secret"})


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


def refusal(make: Callable[[Path], Callable[[], Any]], root: Path) -> tuple[float, float]:
    """Processor seconds and MiB that the refusal takes; fails if the file is accepted or another error is raised."""
    read = make(root)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory
    before = _memory("VmRSS")
    start = time.process_time()
    try:
        read()
    except InputError as error:
        assert "\n" not in str(error)
    else:
        raise AssertionError(f"{make.__name__} was not refused")
    seconds = time.process_time() - start
    assert not (root / "owned").exists(), "code from a file was run"
    return seconds, _memory("VmHWM") - before


def _memory(field: str) -> float:
    """MiB of this process according to the kernel."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))
