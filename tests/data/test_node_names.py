"""Nodes with names: text or sparse numbers, from files to exports."""

import json
import warnings

import networkx
import numpy as np
import pandas as pd
import pytest
import torch

import gst
from gst.data.node_names import Nodes
from gst.storage.export import export

FEW = {"hidden": 4, "anchor_epochs": 1, "sparse_epochs": 1, "cache": False}
NAMES = [f"user {i}" for i in range(12)]


def write(folder, names, edges, shuffled=None):
    """People with features and labels by name, in an order of their own."""
    order = shuffled or list(range(len(names)))
    pd.DataFrame({"id": [names[i] for i in order], "age": order, "size": 1.0}).to_csv(folder / "x.csv", index=False)
    labels = pd.DataFrame({"id": names, "label": ["ab"[i % 2] for i in range(len(names))]})
    labels.to_csv(folder / "y.csv", index=False)
    table = pd.DataFrame([(names[u], names[v]) for u, v in edges], columns=["source", "target"])
    table.to_csv(folder / "e.csv", index=False)
    return folder / "e.csv", folder / "x.csv", folder / "y.csv"


@pytest.mark.parametrize("names", [NAMES, [7 * i + 100 for i in range(12)], [f"{i:03}x" for i in range(12)]])
def test_names_are_mapped_kept_and_given_back(tmp_path, names):
    edges = [(i, (i + 1) % 12) for i in range(12)] + [(0, 5), (3, 9)]
    shuffled = [5, 0, 11, *(i for i in range(12) if i not in (5, 0, 11))]
    data = gst.from_files(*write(tmp_path, names, edges, shuffled), split="random", undirected=True)
    kept = data.node_id.tolist() if isinstance(data.node_id, torch.Tensor) else data.node_id
    assert kept == [names[i] for i in shuffled]
    assert data.x[:, 0].tolist() == shuffled
    named = {(kept[u], kept[v]) for u, v in data.edge_index.T.tolist()}
    assert named == {(names[u], names[v]) for a, b in edges for u, v in ((a, b), (b, a))}
    assert [data.y[i].item() for i in range(12)] == [i % 2 for i in shuffled]

    result = gst.sparsify(data, "random", sparsity=0.5, **FEW)
    result.save(tmp_path / "run")
    graph = gst.Result.load(tmp_path / "run").graph
    table = pd.read_csv(export(graph, "csv", tmp_path / "kept.csv"))
    assert set(zip(table.source, table.target, strict=True)) <= named and len(table) == graph.num_edges
    content = json.loads(export(graph, "networkx", tmp_path / "kept.json").read_text())
    again = networkx.node_link_graph(content, edges="edges")
    assert set(again.nodes) == set(names)


def test_numbers_from_zero_are_numbers_in_any_order(tmp_path):
    data = gst.from_files(*write(tmp_path, list(range(12)), [(0, 1), (2, 3)], list(range(11, -1, -1))), split="random")
    assert "node_id" not in data and data.x[:, 0].tolist() == list(range(12))


def test_a_name_without_features_is_an_error_that_names_its_row(tmp_path):
    files = write(tmp_path, NAMES, [(0, 1), (1, 2)])
    files[0].write_text("source,target\nuser 1,user 2\nuser 1,nobody\n")
    with pytest.raises(gst.InputError, match=r"row 2 names node nobody: it is none of the 12 nodes .* such as user 0"):
        gst.from_files(*files, split="random")


def test_repeated_and_missing_names_are_refused():
    with pytest.raises(gst.InputError, match="x: row 3 repeats node a"):
        Nodes.named(pd.Series(["a", "b", " a"]), "x")
    with pytest.raises(gst.InputError, match="x: row 2 has no node"):
        Nodes.named(pd.Series(["a", None, "b"]), "x")


def test_formulas_as_names_are_escaped_in_tables(tmp_path):
    names = ["=cmd()", *NAMES[1:]]
    data = gst.from_files(*write(tmp_path, names, [(0, 1), (1, 2), (2, 0)]), split="random")
    assert data.node_id[0] == "=cmd()"
    assert "\n=cmd" not in export(data, "csv", tmp_path / "kept.csv").read_text()


def test_what_is_left_out_or_repeated_is_said_once(tmp_path):
    files = write(tmp_path, NAMES, [(0, 1)])
    files[0].write_text("source,target,note\nuser 0,user 1,hi\nuser 0,user 1,ho\nuser 2,user 2,hm\n")
    with pytest.warns(gst.DataWarning) as seen:
        data = gst.from_files(*files, split="random")
    assert len(seen) == 1 and data.edge_index.shape == (2, 3)
    text = str(seen[0].message)
    assert "columns of text are left out: note" in text and "1 rows repeat an edge" in text and "1 self-loops" in text
    assert seen[0].filename == __file__


def test_a_clean_table_says_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", gst.DataWarning)
        gst.from_files(*write(tmp_path, NAMES, [(0, 1), (1, 0)]), split="random")


def test_a_header_that_may_be_an_edge_is_said(tmp_path):
    files = write(tmp_path, NAMES, [(0, 1)])
    files[0].write_text("user 0,user 1\nuser 1,user 2\n")
    with pytest.warns(gst.DataWarning, match="first line is taken for names: source is user 0, target user 1"):
        gst.from_files(*files, split="random")


@pytest.mark.parametrize(
    ("times", "since", "until", "kept"),
    [
        (["2024-01-01", "2024-02-01", "2024-03-01 12:00"], "2024-02-01", None, [1, 2]),
        (["2024-01-01", "2024-02-01", "2024-03-01 12:00"], None, "2024-03-01", [0, 1]),
        ([10, 20, 30], 15, 30, [1]),
        ([1.5, 2.5, 3.5], None, 2.5, [0]),
    ],
)
def test_edges_are_cut_by_time(tmp_path, times, since, until, kept):
    files = write(tmp_path, NAMES, [(0, 1)])
    pd.DataFrame({"source": NAMES[:3], "target": NAMES[3:6], "time": times}).to_csv(files[0], index=False)
    with pytest.warns(gst.DataWarning, match=f"{len(kept)} of 3 rows are in the period"):
        data = gst.from_files(*files, split="random", since=since, until=until)
    assert data.edge_index[0].tolist() == kept


@pytest.mark.parametrize(
    ("header", "options", "reason"),
    [
        ("time", {"since": "soon"}, "since=soon: a date such as"),
        ("time", {"until": "1999-01-01"}, "no edge is in that period"),
        ("size", {"since": "2024-01-01"}, "has no column time"),
    ],
)
def test_bad_periods_are_one_line(tmp_path, header, options, reason):
    files = write(tmp_path, NAMES, [(0, 1)])
    files[0].write_text(f"source,target,{header}\nuser 0,user 1,2024-01-01\n")
    with pytest.raises(gst.InputError, match=reason):
        gst.from_files(*files, split="random", **options)


def test_names_survive_a_damaged_file(tmp_path):
    data = gst.from_files(*write(tmp_path, NAMES, [(0, 1), (1, 2)]), split="random")
    from gst.storage.graph_file import pack_graph, unpack_graph  # noqa: PLC0415

    tensors, facts = pack_graph(data)
    assert unpack_graph(dict(tensors), dict(facts), tmp_path).node_id == NAMES
    tensors["node_id/text"] = tensors["node_id/text"][:-3]
    with pytest.raises(gst.InputError, match="names that are not one per node"):
        unpack_graph(tensors, facts, tmp_path)
    assert np.array_equal(data.y.numpy(), [i % 2 for i in range(12)])
