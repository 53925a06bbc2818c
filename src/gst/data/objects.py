"""Graphs that are in memory already: PyG, networkx, scipy, DGL, and data frames of pandas or polars."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.optional import Later
from gst.data.edges import ALWAYS, Period, array_edges, table_edges
from gst.data.files import Split, assembled, completed, default_metric
from gst.data.node_names import Nodes
from gst.data.nodes import as_labels, table_features, table_values
from gst.data.saved import checked

pd = Later("pandas", "a graph from frames or of another library")
KINDS = "a PyG Data, a graph of networkx or DGL, a scipy sparse matrix, or edges as a data frame, array or tensor"


def load_object(
    graph: Any,
    split: Split = None,
    *,
    features: Any = None,
    labels: Any = None,
    undirected: bool = False,
    metric: str | None = None,
    name: str = "own data",
    period: Period = ALWAYS,
) -> Data:
    """A graph in memory as one that gst can work on; nothing of the object is changed.

    Args:
        graph: of which :data:`KINDS`.
        split: as for files.
        features: [N, F], an array, tensor, scipy sparse matrix or data frame (perhaps with a column ``id``); of a
            networkx or DGL graph also the name of its node attribute. None: the attribute ``x`` or ``feat``.
        labels: [N], an array, tensor, series, or a data frame of node and label; or the name of an attribute. None:
            the attribute ``y`` or ``label``.
        undirected: adds the opposite of every arc that is there in one direction only.
        metric: ``"accuracy"`` or ``"rocauc"``.
        name: of the graph.
        period: of edges with a column time.
    """
    kind = _kind(graph)
    if period and kind != "frame":
        raise InputError(f"{name} has no times: since and until are for edge lists with a column time")
    if kind == "pyg":
        if features is not None or labels is not None:
            raise InputError("a PyG Data has its own x and y: set them there instead of features= and labels=")
        data = checked(graph.to_dict(), name)
        return completed(data, split, str(data.get("name") or name), undirected, metric or default_metric(data))
    if kind == "networkx":
        arcs, features, labels, names = _of_networkx(graph, features, labels)
    elif kind == "dgl":
        arcs, features, labels, names = _of_dgl(graph, features, labels)
    else:
        arcs, names = None, None
    if features is None or labels is None:
        raise InputError(f"{name}: give features= and labels=, one row for each node")
    matrix, nodes = _features(features, names)
    y = _labels(labels, nodes)
    if arcs is None:
        arcs = _edges(graph, kind, nodes, period)
    data = assembled(matrix, y, arcs, nodes)
    return completed(data, split, name, undirected, metric or "accuracy", nodes)


def is_graph(value: Any) -> bool:
    """Whether this is an object that :func:`load_object` takes."""
    try:
        _kind(value)
    except InputError:
        return False
    return True


def _kind(graph: Any) -> str:
    """What the object is, by its type; no library is loaded to find out."""
    package = type(graph).__module__.partition(".")[0]
    if isinstance(graph, Data):
        return "pyg"
    if isinstance(graph, Tensor | np.ndarray):
        return "array"
    if sp.issparse(graph):
        return "scipy"
    if package in ("pandas", "polars") and hasattr(graph, "columns"):
        return "frame"
    if package == "dgl" or hasattr(graph, "ndata"):
        return "dgl"
    if package == "networkx" or hasattr(graph, "adj"):
        return "networkx"
    raise InputError(f"dataset is a {type(graph).__name__}: a name of gst.datasets(), a path or {KINDS} is needed")


def _frame(table: Any) -> Any:
    """A pandas frame with names in lower case."""
    frame = table.to_pandas() if type(table).__module__.startswith("polars") else table.copy(deep=False)
    frame.columns = [name.strip().lower() if isinstance(name, str) else name for name in frame.columns]
    return frame.reset_index(drop=True)


def _array(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    return values if sp.issparse(values) else np.asarray(values)


def _features(features: Any, names: Nodes | None) -> tuple[Any, Nodes]:
    if hasattr(features, "columns"):
        return table_features(_frame(features), "features")
    matrix = _array(features)
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "biuf":
        raise InputError(f"features have shape {matrix.shape} of {matrix.dtype}: numbers are needed, [nodes, features]")
    nodes = names or Nodes(matrix.shape[0])
    if matrix.shape[0] != nodes.count:
        raise InputError(f"features have {matrix.shape[0]} rows, but the graph has {nodes.count} nodes")
    if sp.issparse(matrix):
        return sp.csr_array(matrix).astype(np.float32), nodes
    return np.array(matrix, dtype=np.float32), nodes


def _labels(labels: Any, nodes: Nodes) -> np.ndarray:
    if hasattr(labels, "columns"):
        return as_labels(table_values(_frame(labels), "labels", nodes, "labels"), "labels")
    values = _array(labels)
    if values.shape != (nodes.count,):
        raise InputError(f"labels have shape {values.shape}: one per node is needed, [{nodes.count}]")
    return as_labels(values.astype(np.float64 if values.dtype.kind in "biuf" else np.str_), "labels")


def _edges(graph: Any, kind: str, nodes: Nodes, period: Period) -> dict[str, np.ndarray]:
    if kind == "frame":
        return table_edges(_frame(graph), "edges", nodes, period)
    if kind == "array":
        return {"edge_index": array_edges(_array(graph), "edges", Nodes(nodes.count))}
    if graph.shape != (nodes.count, nodes.count):
        raise InputError(f"the adjacency has shape {graph.shape}, but there are {nodes.count} nodes")
    entries = sp.coo_array(graph)
    arcs = {"edge_index": np.stack([entries.row, entries.col]).astype(np.int64)}
    if not (entries.data == 1).all():
        arcs["edge_weight"] = entries.data.astype(np.float32)
    return arcs


def _of_networkx(graph: Any, features: Any, labels: Any) -> tuple[dict[str, np.ndarray], Any, Any, Nodes]:
    """Arcs, features, labels and names; an undirected graph has both arcs of every edge."""
    keys = list(graph.nodes)
    number = {key: i for i, key in enumerate(keys)}
    edges = list(graph.edges(data=True))
    index = np.array([[number[u] for u, *_ in edges], [number[v] for _, v, *_ in edges]], dtype=np.int64).reshape(2, -1)
    weights = [facts.get("weight", facts.get("edge_weight")) for *_, facts in edges]
    arcs = {"edge_index": index}
    if edges and all(weight is not None for weight in weights):
        arcs["edge_weight"] = np.array(weights, dtype=np.float32)
    if not graph.is_directed():
        proper = index[0] != index[1]
        arcs["edge_index"] = np.concatenate([index, index[::-1, proper]], axis=1)
        if "edge_weight" in arcs:
            arcs["edge_weight"] = np.concatenate([arcs["edge_weight"], arcs["edge_weight"][proper]])

    def attribute(given: Any, usual: tuple[str, ...]) -> Any:
        if given is not None and not isinstance(given, str):
            return given
        wanted = usual if given is None else (given,)
        for name in wanted:
            if all(name in facts for _, facts in graph.nodes(data=True)):
                return np.array([facts[name] for _, facts in graph.nodes(data=True)])
        if given is not None:
            raise InputError(f"the graph has no node attribute {given!r} at every node")
        return None

    names = Nodes(len(keys)) if keys == list(range(len(keys))) else Nodes.named(pd.Series(keys), "the graph")
    if names.names is None and keys != list(range(len(keys))):  # numbers in another order: keep that of the graph
        names = Nodes(len(keys), pd.Index(keys))
    return arcs, attribute(features, ("x", "feat")), attribute(labels, ("y", "label")), names


def _of_dgl(graph: Any, features: Any, labels: Any) -> tuple[dict[str, np.ndarray], Any, Any, Nodes]:
    source, target = graph.edges()
    arcs = {"edge_index": torch.stack([source, target]).cpu().numpy().astype(np.int64)}
    for name in ("weight", "edge_weight"):
        if name in graph.edata:
            arcs["edge_weight"] = graph.edata[name].flatten().cpu().numpy().astype(np.float32)

    def attribute(given: Any, usual: tuple[str, ...]) -> Any:
        if given is not None and not isinstance(given, str):
            return given
        wanted = usual if given is None else (given,)
        found = next((graph.ndata[name] for name in wanted if name in graph.ndata), None)
        if found is None and given is not None:
            raise InputError(f"the graph has no node attribute {given!r}")
        return found

    return arcs, attribute(features, ("x", "feat")), attribute(labels, ("y", "label")), Nodes(int(graph.num_nodes()))
