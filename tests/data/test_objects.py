"""Graphs in memory, of every library: the same graph comes out."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import gst

N = 12
PAIRS = [(i, (i + 1) % N) for i in range(N)] + [(0, 5), (3, 9)]
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N) % 2
GIVEN = {"features": X, "labels": Y, "split": "random", "undirected": True}


def arcs(data):
    return {tuple(arc) for arc in data.edge_index.T.tolist()}


EXPECTED = {arc for u, v in PAIRS for arc in ((u, v), (v, u))}


def check(data):
    assert arcs(data) == EXPECTED and data.num_edges == len(EXPECTED)
    assert np.array_equal(data.x.numpy(), X) and data.y.tolist() == Y.tolist()
    assert int(data.train_mask.sum()) > 0
    gst.Random(sparsity=0.5)(data)


def networkx_graph():
    graph = nx.Graph(PAIRS)
    graph = nx.relabel_nodes(graph, {}) if list(graph) == list(range(N)) else graph
    out = nx.Graph()
    out.add_nodes_from((i, {"x": X[i].tolist(), "y": int(Y[i])}) for i in range(N))
    out.add_edges_from(graph.edges)
    return out


def test_networkx_with_attributes_and_with_arrays():
    check(gst.load(networkx_graph(), split="random"))
    check(gst.load(networkx_graph(), features=X, labels="y", split="random"))
    with pytest.raises(gst.InputError, match="no node attribute 'missing' at every node"):
        gst.load(networkx_graph(), labels="missing", split="random")


def test_networkx_names_and_weights_are_kept():
    graph = nx.DiGraph()
    graph.add_nodes_from(("b", "a", "c"))
    graph.add_edge("b", "c", weight=2.0)
    graph.add_edge("a", "b", weight=3.0)
    given = {"features": np.ones((3, 2)), "labels": np.array([0, 1, 0])}
    masks = Data(train_mask=torch.tensor([True, False, False]))
    assert masks is not None
    with pytest.raises(gst.InputError, match="there is no split"):
        gst.load(graph, **given)
    many = nx.relabel_nodes(networkx_graph(), {i: f"n{i}" for i in range(N)})
    nx.set_edge_attributes(many, 2.0, "weight")
    data = gst.load(many, split="random")
    assert data.node_id == [f"n{i}" for i in range(N)] and data.edge_weight.tolist() == [2.0] * len(EXPECTED)
    check(data)


def test_networkx_numbers_in_another_order_keep_their_rows():
    graph = nx.Graph()
    graph.add_nodes_from((i, {"x": X[i].tolist(), "y": int(Y[i])}) for i in reversed(range(N)))
    graph.add_edges_from(PAIRS)
    data = gst.load(graph, split="random")
    assert data.node_id.tolist() == list(reversed(range(N)))
    named = {(N - 1 - u, N - 1 - v) for u, v in arcs(data)}
    assert named == EXPECTED and np.array_equal(data.x.numpy(), X[::-1])


@pytest.mark.parametrize("kind", ["csr_array", "coo_matrix", "csc_array"])
def test_scipy(kind):
    source, target = np.array(PAIRS).T
    check(gst.load(getattr(sp, kind)((np.ones(len(PAIRS)), (source, target)), shape=(N, N)), **GIVEN))
    weighted = sp.csr_array((np.full(len(PAIRS), 0.5), (source, target)), shape=(N, N))
    assert gst.load(weighted, **GIVEN).edge_weight.unique().tolist() == [0.5]
    with pytest.raises(gst.InputError, match=r"adjacency has shape \(3, 3\), but there are 12 nodes"):
        gst.load(sp.csr_array((3, 3)), **GIVEN)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    names = [f"n{i}" for i in range(N)]
    columns = {"source": [names[u] for u, _ in PAIRS], "target": [names[v] for _, v in PAIRS]}
    edges = frames.DataFrame(columns)
    features = frames.DataFrame({"id": names, **{f"f{i}": X[:, i] for i in range(3)}})
    labels = frames.DataFrame({"id": names[::-1], "label": Y[::-1]})
    data = gst.load(edges, features=features, labels=labels, split="random", undirected=True)
    check(data)
    assert data.node_id == names and list(columns) == list(edges.columns)


def test_frames_with_times():
    frame = pd.DataFrame(
        {"source": [0, 1, 2], "target": [1, 2, 3], "time": pd.to_datetime(["2024-01-01", "2024-01-01", "2025-01-01"])}
    )
    with pytest.warns(gst.DataWarning, match="2 of 3 rows"):
        data = gst.load(frame, **{**GIVEN, "undirected": False}, until="2024-06-01")
    assert arcs(data) == {(0, 1), (1, 2)}


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_arrays(make):
    check(gst.load(make(PAIRS).T, **GIVEN))


def test_data_of_pyg_is_copied_and_completed():
    data = Data(x=torch.from_numpy(X), y=torch.from_numpy(Y), edge_index=torch.tensor(PAIRS).T)
    check(gst.load(data, split="random", undirected=True))
    assert "train_mask" not in data and data.num_edges == len(PAIRS)
    with pytest.raises(gst.InputError, match="has its own x and y"):
        gst.load(data, features=X, labels=Y, split="random")


def test_graphs_of_dgl():
    """By what DGL's graphs offer: DGL itself is not there for every torch."""

    class Graph(SimpleNamespace):
        def edges(self):
            return torch.tensor(PAIRS).T

        def num_nodes(self):
            return N

    graph = Graph(ndata={"feat": torch.from_numpy(X), "label": torch.from_numpy(Y)}, edata={})
    check(gst.load(graph, split="random", undirected=True))


@pytest.mark.parametrize(
    ("graph", "options", "reason"),
    [
        (3, {}, "dataset is a int: a name of gst.datasets"),
        (np.array(PAIRS).T, {}, "give features= and labels="),
        (np.array(PAIRS).T, {**GIVEN, "labels": Y[:3]}, r"labels have shape \(3,\): one per node is needed, \[12\]"),
        (np.array(PAIRS).T, {**GIVEN, "features": X[:3]}, "labels have shape"),
        (np.array(PAIRS).T, {**GIVEN, "since": 3}, "no times"),
        (np.array(PAIRS).T, {**GIVEN, "colour": 3}, "takes no option 'colour'"),
        (networkx_graph(), {"features": X[:3], "split": "random"}, "features have 3 rows, but the graph has 12 nodes"),
    ],
)
def test_bad_objects_are_one_line(graph, options, reason):
    with pytest.raises(gst.InputError, match=reason):
        gst.load(graph, **options)
