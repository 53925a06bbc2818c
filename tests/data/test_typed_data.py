"""Typed graphs from files and by name."""

import pytest
import torch

import gst
from gst.data.hgb import parse
from gst.graph.typed import TypedEdges
from typed_graphs import library


@pytest.mark.parametrize("form", ["object", "dict"])
def test_a_saved_typed_graph_is_read_without_running_code(tmp_path, form):
    data = library()
    torch.save(data if form == "object" else data.to_dict(), tmp_path / "graph.pt")
    loaded = gst.load(tmp_path / "graph.pt")
    assert loaded.metadata() == data.metadata() and loaded.metric == "accuracy" and loaded.name == "graph"
    for kind in data.edge_types:
        assert all(torch.equal(loaded[kind][name], value) for name, value in data[kind].items())
    assert torch.equal(loaded["author"].train_mask, data["author"].train_mask) and loaded["term"].num_nodes == 10


def damaged(change):
    data = library()
    if change == "y":
        data["author"].y = data["author"].y[:5]
    elif change == "mask":
        data["author"].train_mask = torch.ones(3, dtype=torch.bool)
    elif change == "dangling":
        data["author", "writes", "paper"].edge_index[0, 0] = 400
    elif change == "attr":
        data["author", "writes", "paper"].edge_attr = torch.ones(2)
    elif change == "labels":
        del data["author"].y
    return data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("y", "y should be labels"),
        ("mask", "train_mask should be a bool tensor"),
        ("dangling", "author__writes__paper: column 0"),
        ("attr", "edge_attr of author__writes__paper"),
        ("labels", "no node type has labels"),
    ],
)
def test_damaged_files_are_one_line(tmp_path, change, reason):
    torch.save(damaged(change), tmp_path / "graph.pt")
    with pytest.raises(gst.InputError, match=reason):
        gst.load(tmp_path / "graph.pt")


def test_the_drawn_graph_is_as_listed():
    data = gst.load("papers")
    info = next(info for info in gst.datasets() if info.name == "papers")
    edges = TypedEdges.from_hetero(data)
    assert sum(edges.schema.num_nodes) == info.nodes and data["author"].x.shape[1] == info.features
    assert edges.num_edges == info.edges and all(relation.backward for relation in edges.schema.relations)
    again = gst.load("papers:authors=60", seed=1)
    assert again["author"].num_nodes == 60
    with pytest.raises(gst.InputError, match="12 or more"):
        gst.load("papers:authors=3")


FILES = {
    "info.dat": """{"node.dat": {"node type": {"0": "movie", "1": "actor"}},
        "link.dat": {"link type": {"0": {"start": "0", "end": "1", "meaning": "movie->actor"},
                                   "1": {"start": "1", "end": "0", "meaning": "actor->movie"}}},
        "label.dat": {"node type": {"0": {"0": "a", "1": "b", "2": "c"}}}}""",
    "node.dat": "0\tM0\t0\t1,0\n1\tA0\t1\n2\tM1\t0\t0,1\n3\tA1\t1\n4\tM2\t0\t1,1\n",
    "link.dat": "0\t1\t0\t1.0\n2\t3\t0\t1.0\n1\t0\t1\t1.0\n3\t2\t1\t1.0\n",
    "label.dat": "0\tM0\t0\t0,2\n2\tM1\t0\t1\n",
    "label.dat.test": "4\tM2\t0\t2\n",
}


def test_the_benchmarks_layout_is_parsed(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    data = parse(lambda part: (tmp_path / part).open("rb"))
    assert data.edge_types == [("movie", "to", "actor"), ("actor", "to", "movie")]
    assert data["movie"].x.tolist() == [[1, 0], [0, 1], [1, 1]] and data["actor"].num_nodes == 2
    assert data["movie"].y.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
    assert data["movie"].train_mask.tolist() == [True, True, False] and data["movie"].test_mask.tolist()[2]
    assert data["movie", "to", "actor"].edge_index.tolist() == [[0, 1], [0, 1]]


@pytest.mark.real
@pytest.mark.parametrize("name", ["ACM", "DBLP", "IMDB", "debian-typed"])
def test_real_typed_graphs_are_as_listed(name):
    try:
        data = gst.load(name)
    except gst.InputError as error:
        pytest.skip(str(error))
    info = next(info for info in gst.datasets() if info.name == name)
    edges = TypedEdges.from_hetero(data)
    loops = sum(
        int((data[r.forward].edge_index[0] == data[r.forward].edge_index[1]).sum())
        for r in edges.schema.relations
        if r.forward[0] == r.forward[2]
    )
    assert sum(edges.schema.num_nodes) == info.nodes and abs(edges.num_edges + loops - info.edges) <= info.edges // 50
    store = data[edges.schema.target]
    assert not (store.train_mask & store.val_mask).any() and (store.train_mask | store.val_mask | store.test_mask).any()


def test_several_labels_are_scored_by_f1():
    data = gst.load("papers:authors=60")
    data["author"].y = torch.stack([data["author"].y % 2, data["author"].y // 2], 1)
    data.metric = "f1"
    result = gst.sparsify(data, "deploy", sparsity=0.5, hidden=8, anchor_epochs=3, sparse_epochs=3, cache=False)
    assert result.metrics["metric"] == "f1" and 0 <= result.metrics["test"] <= 100


def test_a_typed_graph_in_memory_is_taken_as_it_is():
    data = library()
    loaded = gst.load(data, name="mine")
    assert loaded.name == "mine" and loaded.metadata() == data.metadata() and not hasattr(data, "name")
    with pytest.raises(gst.InputError, match="undirected is for graphs of one type"):
        gst.load(data, undirected=True)
    with pytest.raises(gst.InputError, match="has one split"):
        gst.load(data, split=4)
