"""The user's own graphs: a saved ``Data``, single files, or a folder of them."""

import os
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.data.edges import ALWAYS, Instant, Period, read_edges
from gst.data.node_names import Nodes
from gst.data.nodes import read_labels, read_nodes, read_split
from gst.data.saved import SUFFIXES, read_saved
from gst.data.splits import RANDOM, Masks, choose
from gst.data.typed import own_typed
from gst.data.validate import METRICS, finish, stored_masks
from gst.sparse.layouts import from_scipy

Split = int | str | os.PathLike[str] | None
NO_SPLIT = (
    "there is no split: give split='random' (20 training and 30 validation labels per class), a seed or a split file"
)


@plain_torch()
def from_files(
    edges: str | os.PathLike[str],
    features: str | os.PathLike[str],
    labels: str | os.PathLike[str],
    *,
    split: Split = None,
    undirected: bool = False,
    metric: str = "accuracy",
    since: Instant = None,
    until: Instant = None,
) -> Data:
    """A graph from an edge list, a feature matrix and labels.

    Row i of the features is node i. Where they are a table with a column ``node`` or ``id`` of texts or sparse numbers,
    these are the names of the nodes in all files; ``data.node_id`` keeps them, and exports give them back. What is left
    out, repeated or assumed is said by a :class:`gst.DataWarning`.

    Args:
        edges: text (``.txt``, ``.edgelist``, ``.tsv``, ``.csv``, each also ``.gz``; comments after ``#`` or ``%``),
            ``.parquet`` or ``.npy`` [2, E]; the columns source and target, perhaps ``weight``, and numbers for
            ``edge_attr``.
        features: ``.npy``, ``.npz`` (first array, or a scipy sparse matrix, which stays sparse: ``x`` is then a CSR
            tensor), text or ``.parquet``.
        labels: one column, or the two columns node and label; numbers or text, −1 or empty if unknown.
        split: ``"random"``, a seed, or a file: train, val, test or 0, 1, 2 for each node, or an ``.npz`` of the arrays
            train, val and test.
        undirected: adds the opposite of every arc that is listed in one direction only.
        metric: ``"accuracy"`` or, for two classes, ``"rocauc"``.
        since: only edges whose column ``time`` (``timestamp``, ``date``) is not before this number or date.
        until: only edges whose time is before this.

    Returns:
        ``x`` [N, F], ``y`` [N], ``edge_index`` [2, E], ``edge_weight`` [E] and ``edge_attr`` [E, A] if there are any,
        the three masks [N], and ``node_id`` if nodes have names.

    Raises:
        InputError: a file cannot be read, or names a node that has no features.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> people = [f"p{i}" for i in range(9)]
    >>> for file, lines in {
    ...     "people.csv": ["id,age", *(f"{name},{30 + i}" for i, name in enumerate(people))],
    ...     "ties.csv": ["source,target", "p0,p1", "p8,p0"],
    ...     "labels.csv": ["id,label", *(f"{name},{'ab'[i % 2]}" for i, name in enumerate(people))],
    ... }.items():
    ...     _ = (folder / file).write_text("\\n".join(lines))
    >>> data = from_files(folder / "ties.csv", folder / "people.csv", folder / "labels.csv", split="random")
    >>> data.edge_index.tolist(), data.node_id[8]
    ([[0, 8], [1, 0]], 'p8')
    """
    edge_file, period = as_path("edges", edges), Period(since, until)
    data, nodes = _read_parts(edge_file, as_path("features", features), as_path("labels", labels), period)
    return completed(data, split, edge_file.name.partition(".")[0], undirected, metric, nodes)


def load_path(
    path: Path,
    split: Split = None,
    *,
    undirected: bool = False,
    metric: str | None = None,
    since: Instant = None,
    until: Instant = None,
) -> Any:
    """A ``.pt`` file, or a folder that holds ``edges.*``, ``features.*``, ``labels.*`` and perhaps ``split.*``."""
    if path.is_dir():
        edges, features, labels = (_part(path, part) for part in ("edges", "features", "labels"))
        if split is None and any(path.glob("split.*")):
            split = _part(path, "split")
        data, nodes = _read_parts(edges, features, labels, Period(since, until))
        return completed(data, split, path.resolve().name, undirected, metric or "accuracy", nodes)
    if path.suffix.lower() in SUFFIXES:
        if Period(since, until):
            raise InputError(f"{path} has no times: since and until are for edge lists with a column time")
        data = read_saved(path)
        if isinstance(data, HeteroData):
            return own_typed(data, split, name=path.stem, metric=metric, undirected=undirected)
        return completed(data, split, path.stem, undirected, metric or default_metric(data))
    if not path.exists():
        raise InputError(f"no such file or folder: {path}")
    raise InputError(f"{path} is neither a .pt file nor a folder: single files go to gst.data.from_files")


def read_folder(path: Path, features: str = "features") -> Data:
    """The graph of a folder with its split; ``features`` is the name of the file that holds them."""
    data, nodes = _read_parts(_part(path, "edges"), _part(path, features), _part(path, "labels"))
    data.train_mask, data.val_mask, data.test_mask = read_split(_part(path, "split"), nodes)
    return data


def add_reverse(data: Data) -> Data:
    """Adds the opposite of every arc that lacks it, with the same weight and attributes."""
    assert data.edge_index is not None
    source, target = data.edge_index
    nodes = int(data.num_nodes or 0)
    unpaired = ~torch.isin(target * nodes + source, source * nodes + target)
    out = copy(data)
    for key, value in data.to_dict().items():
        if data.is_edge_attr(key) and key != "edge_index":
            out[key] = torch.cat([value, value[unpaired]])
    out.edge_index = torch.cat([data.edge_index, data.edge_index[:, unpaired].flip(0)], dim=1)
    return out


def default_metric(data: Data) -> str:
    """The metric that the data name, else the one for their kind of labels."""
    stored = data.get("metric")
    return str(stored) if stored in METRICS else "accuracy" if data.y.dim() == 1 else "rocauc"


def _read_parts(edges: Path, features: Path, labels: Path, period: Period = ALWAYS) -> tuple[Data, Nodes]:
    matrix, nodes = read_nodes(features)
    y = read_labels(labels, nodes)
    return assembled(matrix, y, read_edges(edges, nodes, period), nodes), nodes


def assembled(matrix: Any, y: np.ndarray, arcs: dict[str, np.ndarray], nodes: Nodes) -> Data:
    """A ``Data`` of these arrays; ``matrix`` is dense or sparse."""
    x = torch.from_numpy(matrix) if isinstance(matrix, np.ndarray) else from_scipy(matrix)
    data = Data(x=x, y=torch.from_numpy(y), **{key: torch.from_numpy(values) for key, values in arcs.items()})
    if nodes.names is not None:
        data.node_id = nodes.stored
    return data


def completed(data: Data, split: Split, name: str, undirected: bool, metric: str, nodes: Nodes | None = None) -> Data:
    """With split, name and metric, like every graph that is loaded."""
    masks = _masks(data, split, name, nodes or Nodes(int(data.num_nodes or 0)))
    return finish(add_reverse(data) if undirected else data, masks, name=name, metric=metric)


def _masks(data: Data, split: Split, name: str, nodes: Nodes) -> Masks:
    stored = stored_masks(data)
    if split is None and stored is None:
        raise InputError(f"{name}: {NO_SPLIT}")
    if split is not None and is_split_file(split):
        return read_split(Path(str(split)), nodes)
    return choose(name, data.y, None if split is None else str(split), RANDOM, stored)


def is_split_file(split: int | str | os.PathLike[str]) -> bool:
    """Whether ``split`` means a file: a path object, or text with a suffix or a folder."""
    return not isinstance(split, int | str) or (
        isinstance(split, str) and (Path(split).suffix != "" or len(Path(split).parts) > 1)
    )


def _part(folder: Path, part: str) -> Path:
    """The one file ``part.*`` of a folder."""
    files = sorted(folder.glob(f"{part}.*"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or f"no {part}.*"
        raise InputError(f"{folder} has {names}: a folder needs exactly one file {part}.*")
    return files[0]
