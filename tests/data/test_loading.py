import pytest
import torch

from gst.base.errors import InputError
from gst.data import DatasetInfo, datasets, load


def test_every_name_is_listed():
    table = datasets()
    assert all(isinstance(info, DatasetInfo) for info in table)
    names = "digits Cora CiteSeer PubMed Computers Photo CS Physics Tolokers Minesweeper Questions Roman-empire"
    names = f"{names} Amazon-ratings Chameleon Squirrel debian arxiv-citations"
    large = "ogbn-arxiv ogbn-proteins ogbn-products"
    random = "synthetic synthetic-arxiv synthetic-proteins synthetic-products"
    typed = "ACM DBLP IMDB debian-typed papers fraud"
    assert [info.name for info in table] == f"{names} {large} {random} {typed}".split()
    assert not any(info.directed for info in table)
    assert {info.name for info in table if info.metric == "rocauc"} == {
        "Tolokers",
        "Minesweeper",
        "Questions",
        "ogbn-proteins",
        "synthetic-proteins",
        "fraud",
    }


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_table_and_graph_agree(name):
    info = next(info for info in datasets() if info.name == name)
    data = load(name)
    assert (*data.x.shape, data.num_edges, int(data.y.max()) + 1) == (
        info.nodes,
        info.features,
        2 * info.edges,
        info.classes,
    )
    assert data.name == name and data.metric == info.metric
    assert data.x.dtype == torch.float32 and data.y.dtype == torch.int64
    for key in ("train_mask", "val_mask", "test_mask"):
        assert data[key].dtype == torch.bool and data[key].shape == (info.nodes,)


def test_options_from_text_and_by_name_agree():
    text = load("Synthetic:nodes=300, degree=4.5,split=random:2")
    named = load("synthetic", nodes=300, degree=4.5, split="random:2")
    assert torch.equal(text.edge_index, named.edge_index) and torch.equal(text.train_mask, named.train_mask)
    assert text.name == named.name == "synthetic:nodes=300,degree=4.5"
    assert torch.equal(load(text.name).x, text.x)
    assert load("synthetic:nodes=1e3").num_nodes == 1000


def test_synthetic_has_twenty_labels_per_class():
    data = load("synthetic")
    assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * 5
    assert not torch.equal(data.train_mask, load("synthetic", split=1).train_mask)


@pytest.mark.parametrize(
    ("dataset", "options", "reason"),
    [
        ("coar", {}, "unknown data set 'coar': did you mean 'Cora'?"),
        ("", {}, "unknown data set ''"),
        ("synthetic:nodes", {}, "cannot read the option 'nodes': write name=value"),
        ("synthetic:nodes=many", {}, "nodes='many' is not a whole number"),
        ("synthetic:nodes=10.5", {}, "nodes='10.5' is not a whole number"),
        ("synthetic:nodes=inf", {}, "nodes='inf' is not a whole number"),
        ("synthetic:degree=x", {}, "degree='x' is not a number"),
        ("synthetic:nodes=10", {"nodes": 20}, "the option 'nodes' is given twice"),
        ("synthetic:split=1", {"split": 2}, "the option 'split' is given twice"),
        ("synthetic", {"vertices": 3}, "unknown option of synthetic 'vertices'"),
        ("synthetic:nodes=1000000000000000", {}, "synthetic: a graph of 1000000000000000 nodes needs about"),
        ("Cora", {"nodes": 3}, "Cora takes no option 'nodes'"),
        ("digits", {"nodes": 10}, "digits: nodes=10 is not between 11 and 1797"),
        ("digits:nodes=1798", {}, "digits: nodes=1798 is not between 11 and 1797"),
        ("digits", {"split": "paper"}, "digits has no split 'paper'"),
        ("digits", {"split": "public"}, "digits ships no public split"),
        ("digits", {"split": "half"}, "unknown split 'half'"),
    ],
)
def test_bad_requests_give_one_line(dataset, options, reason):
    with pytest.raises(InputError) as error:
        load(dataset, **options)
    assert reason in str(error.value) and "\n" not in str(error.value)
