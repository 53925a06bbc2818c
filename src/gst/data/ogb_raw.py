"""OGB's raw files to the arrays of a graph on disk, in little more memory than ``edge_index`` takes."""

from pathlib import Path

import numpy as np

from gst.base.errors import InputError
from gst.data.ogb_spec import OGBSpec
from gst.data.stream import read_blocks, read_into
from gst.data.symmetrize import chunks, symmetric

PARTS = ("train", "valid", "test")
ARRAYS = {"edge_index": np.int64, "x": np.float32, "y": np.int64, "part": np.int8}


def raw_files(spec: OGBSpec) -> list[str]:
    """The files to read, relative to the folder that OGB's archive unpacks to."""
    features = "edge-feat" if spec.edge_features else "node-feat"
    raw = ("num-node-list", "num-edge-list", "node-label", "edge", features)
    return [f"raw/{name}.csv.gz" for name in raw] + [f"split/{spec.split}/{part}.csv.gz" for part in PARTS]


def build(spec: OGBSpec, raw: Path, out: Path) -> None:
    """Writes ``edge_index`` [2, A], ``x`` [N, F], ``y`` [N] or [N, C] and ``part`` [N] (0, 1, 2) as ``.npy`` files.

    Small files first, so that an error in them shows at once and not after minutes.
    """
    _check_number(raw / "raw/num-node-list.csv.gz", spec.nodes)
    _check_number(raw / "raw/num-edge-list.csv.gz", spec.rows)
    np.save(out / "part.npy", _parts(spec, raw / "split" / spec.split))
    np.save(out / "y.npy", _labels(spec, raw / "raw/node-label.csv.gz"))
    ends = np.lib.format.open_memmap(out / "ends.npy", "w+", np.int32, (spec.rows, 2))
    read_into(raw / "raw/edge.csv.gz", ends)
    np.save(out / "edge_index.npy", symmetric(_keys(spec, ends, raw / "raw/edge.csv.gz"), spec.nodes))
    x = np.lib.format.open_memmap(out / "x.npy", "w+", np.float32, (spec.nodes, spec.features))
    if spec.edge_features:
        x[:] = _mean_over_edges(raw / "raw/edge-feat.csv.gz", ends, x.shape)
    else:
        read_into(raw / "raw/node-feat.csv.gz", x)
    x.flush()
    (out / "ends.npy").unlink()


def _check_number(path: Path, expected: int) -> None:
    number = np.empty((1, 1), dtype=np.int64)
    read_into(path, number)
    if number != expected:
        raise InputError(f"{path} says {number.item()}: the published number is {expected}")


def _parts(spec: OGBSpec, folder: Path) -> np.ndarray:
    """0, 1 or 2 for training, validation and test nodes, −1 for none."""
    part = np.full(spec.nodes, -1, dtype=np.int8)
    for number, (name, size) in enumerate(zip(PARTS, spec.parts, strict=True)):
        path = folder / f"{name}.csv.gz"
        nodes = np.empty((size, 1), dtype=np.int64)
        read_into(path, nodes)
        _check_range(nodes, spec.nodes, path)
        if bool((part[nodes] >= 0).any()) or np.unique(nodes).size != size:
            raise InputError(f"{path} lists a node twice, or one of another part")
        part[nodes] = number
    return part


def _labels(spec: OGBSpec, path: Path) -> np.ndarray:
    values = np.empty((spec.nodes, spec.classes if spec.multilabel else 1), dtype=np.float32)  # exact: labels are small
    read_into(path, values)
    y = values.astype(np.int64)
    classes = 2 if spec.multilabel else spec.classes
    if (y != values).any() or y.min() < 0 or int(y.max()) + 1 != classes:
        raise InputError(
            f"{path} holds {values.min():g} … {values.max():g}: the published labels are 0 … {classes - 1}"
        )
    return y if spec.multilabel else y[:, 0]


def _keys(spec: OGBSpec, ends: np.ndarray, path: Path) -> np.ndarray:
    """source · N + target of every row."""
    keys = np.empty(spec.rows, dtype=np.int64)
    for rows in chunks(spec.rows):
        _check_range(ends[rows], spec.nodes, path, rows.start)
        keys[rows] = ends[rows, 0].astype(np.int64) * spec.nodes + ends[rows, 1]
    return keys


def _check_range(ids: np.ndarray, nodes: int, path: Path, first_row: int = 0) -> None:
    bad = ((ids < 0) | (ids >= nodes)).any(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(f"{path}: row {first_row + row + 1} is {ids[row].tolist()}: nodes go from 0 to {nodes - 1}")


def _mean_over_edges(path: Path, ends: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Features of a node: the mean over its edges, as in OGB's examples; 0 if it has none."""
    nodes, features = shape
    total = np.zeros((nodes, features))
    degree = np.zeros(nodes)
    for rows, values in read_blocks(path, (len(ends), features), np.float32):
        for end in ends[rows].T:
            degree += np.bincount(end, minlength=nodes)
            for column in range(features):
                total[:, column] += np.bincount(end, values[:, column], nodes)
    return total / np.maximum(degree, 1)[:, None]
