"""Every format can be read by the library it is for."""

import importlib.util
import json

import networkx
import pandas
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.storage.export import FORMATS, default_name, edge_table, export


@pytest.fixture
def graph() -> Data:
    data = random_graph(nodes=15, edges=30, weighted=True, directed=True, loops=True)
    data.edge_attr = torch.rand(data.edge_index.shape[1], 2)
    data.name, data.metric = "mine", "accuracy"
    return data


def arcs(index) -> set[tuple[int, int]]:
    return {tuple(arc) for arc in torch.as_tensor(index).t().tolist()}


def test_pyg(graph, tmp_path):
    again = gst.load(export(graph, "pyg", tmp_path / "graph.pt"))
    assert torch.equal(again.edge_index, graph.edge_index) and torch.equal(again.edge_attr, graph.edge_attr)
    assert torch.equal(again.x, graph.x) and torch.equal(again.train_mask, graph.train_mask)


def test_networkx(graph, tmp_path):
    content = json.loads(export(graph, "networkx", tmp_path / "g.json").read_text())
    again = networkx.node_link_graph(content, edges="edges")
    assert again.is_directed() and again.number_of_nodes() == 15 and set(again.edges) == arcs(graph.edge_index)
    first = tuple(graph.edge_index[:, 0].tolist())
    assert again.edges[first]["edge_weight"] == pytest.approx(float(graph.edge_weight[0]))
    assert [again.nodes[n]["y"] for n in range(15)] == graph.y.tolist()


def test_scipy(graph, tmp_path):
    again = scipy.sparse.load_npz(export(graph, "scipy", tmp_path / "g.npz"))
    expected = to_scipy_sparse_matrix(graph.edge_index, graph.edge_weight, 15)
    assert again.format == "csr" and abs(again - expected.tocsr()).max() == 0


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_tables(graph, tmp_path, to):
    path = export(graph, to, tmp_path / default_name(to))
    again = pandas.read_csv(path) if to == "csv" else pandas.read_parquet(path)
    assert list(again.columns) == ["source", "target", "edge_weight", "edge_attr_0", "edge_attr_1"]
    assert torch.equal(torch.tensor(again[["source", "target"]].to_numpy().T), graph.edge_index)
    pandas.testing.assert_frame_equal(again, edge_table(graph), check_dtype=False)


@pytest.mark.skipif(importlib.util.find_spec("dgl") is not None, reason="dgl is installed")
def test_missing_dgl_is_reported(graph, tmp_path):
    with pytest.raises(InputError, match="needs dgl, which is not installed"):
        export(graph, "dgl", tmp_path / "g.dgl")
    assert not (tmp_path / "g.dgl").exists()


@pytest.mark.skipif(importlib.util.find_spec("dgl") is None, reason="dgl is not installed")
def test_dgl(graph, tmp_path):
    dgl = importlib.import_module("dgl")
    (again,), _ = dgl.load_graphs(str(export(graph, "dgl", tmp_path / "g.dgl")))
    assert arcs(torch.stack(again.edges())) == arcs(graph.edge_index)


def test_unknown_format_and_unwritable_path(graph, tmp_path):
    with pytest.raises(InputError, match=r"unknown format 'gml': .*choose from pyg, networkx"):
        export(graph, "gml", tmp_path / "g")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        export(graph, "csv", tmp_path / "file" / "edges.csv")
    assert set(FORMATS) == {"pyg", "networkx", "scipy", "csv", "parquet", "dgl"}
