"""The twins at a hundredth of their size, where only proteins is too dense for heavy-tailed degrees."""

import pytest
import torch

from gst import EdgeSet, load
from gst.base.errors import InputError
from gst.data import datasets
from gst.data.ogb_spec import PROTEINS, SPECS
from gst.data.ogb_twins import twin
from gst.train.task import Task

SIZES = {
    "synthetic-arxiv": (169_343, 1_166_243, 128, 40),
    "synthetic-proteins": (132_534, 39_561_252, 8, 112),
    "synthetic-products": (2_449_029, 61_859_140, 100, 47),
}
NAMES = list(SIZES)


@pytest.fixture(scope="module")
def small():
    return {name: load(name, scale=0.01) for name in NAMES}


def degree(data):
    return torch.bincount(data.edge_index[0], minlength=data.num_nodes).double()


def test_the_table_has_the_published_sizes():
    table = {info.name: (info.nodes, info.edges, info.features, info.classes) for info in datasets()}
    assert {name: table[name] for name in NAMES} == SIZES
    assert all(sum(spec.parts) == spec.nodes for spec in SPECS)


@pytest.mark.parametrize("name", NAMES)
def test_exact_sizes(name, small):
    data = small[name]
    nodes, edges, features, classes = SIZES[name]
    assert data.num_nodes == round(nodes / 100) and data.num_edges == 2 * round(edges / 100)
    assert data.is_undirected() and data.is_coalesced() and not data.has_self_loops()
    assert data.x.shape == (data.num_nodes, features) and bool(data.x.isfinite().all())
    task = Task.from_data(data)
    assert task.num_classes == classes and task.multilabel == (name == "synthetic-proteins")
    assert EdgeSet.from_data(data).num_edges == round(edges / 100)
    assert data.name == f"{name}:scale=0.01"


@pytest.mark.parametrize("name", NAMES)
def test_parts_have_the_published_shares(name, small):
    spec, data = next(spec for spec in SPECS if name.endswith(spec.name)), small[name]
    sizes = [int(data[key].sum()) for key in ("train_mask", "val_mask", "test_mask")]
    assert sizes == pytest.approx([part / 100 for part in spec.parts], abs=1) and sum(sizes) == data.num_nodes


def test_arxiv_of_full_size():
    data = load("synthetic-arxiv")
    assert (data.num_nodes, data.num_edges) == (169_343, 2 * 1_166_243)
    assert [int(data[key].sum()) for key in ("train_mask", "val_mask", "test_mask")] == [90_941, 29_799, 48_603]
    assert data.is_coalesced() and data.name == "synthetic-arxiv"
    assert data.y.unique().numel() == 40
    assert degree(data).max() > 200 * degree(data).mean()


@pytest.mark.parametrize(
    ("name", "scale", "times"), [("arxiv", 0.01, 20), ("products", 0.01, 20), ("proteins", 0.1, 5)]
)
def test_a_few_nodes_have_most_edges(name, scale, times):
    degrees = degree(load(f"synthetic-{name}:scale={scale}"))
    assert degrees.max() > times * degrees.mean() and degrees.median() < 0.8 * degrees.mean()


@pytest.mark.parametrize("name", ["synthetic-arxiv", "synthetic-products"])
def test_edges_join_nodes_of_one_class(name, small):
    data = small[name]
    source, target = data.edge_index
    same = (data.y[source] == data.y[target]).double().mean()
    shuffled = data.y[target[torch.randperm(target.numel(), generator=torch.Generator().manual_seed(0))]]
    assert same > 3 * (data.y[source] == shuffled).double().mean()


def test_edges_join_nodes_of_like_labels():
    data = load("synthetic-proteins", scale=0.05)
    source, target = data.edge_index[:, ::97]
    y = data.y.double()
    together = (y[source] * y[target]).sum(1).mean()
    shuffled = y[target[torch.randperm(target.numel(), generator=torch.Generator().manual_seed(0))]]
    assert together > 1.3 * (y[source] * shuffled).sum(1).mean()


def test_node_ids_tell_nothing_about_the_graph():
    """Else neighbours would lie together in memory, and measured times would be too good."""
    data = load("synthetic-arxiv", scale=0.1)
    source, target = data.edge_index
    gap = (source - target).abs().double().mean() / data.num_nodes
    assert float(gap) == pytest.approx(1 / 3, abs=0.05)


def test_features_tell_the_community():
    data = load("synthetic-arxiv", scale=0.05)
    source, target = data.edge_index
    near = torch.nn.functional.cosine_similarity(data.x[source], data.x[target]).mean()
    far = torch.nn.functional.cosine_similarity(data.x[source], data.x[target.flip(0)]).mean()
    assert near > far + 0.002


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides(name, small):
    again, other = load(name, scale=0.01), load(name, scale=0.01, seed=1)
    for key in ("x", "y", "edge_index", "train_mask"):
        assert torch.equal(again[key], small[name][key])
    assert not torch.equal(other.edge_index, again.edge_index) and not torch.equal(other.x, again.x)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("arxiv:scale=0", "synthetic-arxiv: scale=0.0 must be a number above 0"),
        ("arxiv:scale=nan", "scale=nan must be a number above 0"),
        ("arxiv:scale=inf", "scale=inf must be a number above 0"),
        ("arxiv:scale=0.0001", "gives 17 nodes and 117 edges: at least 120 nodes are needed"),
        ("proteins:scale=0.005", "edges at most half of all pairs; raise scale"),
        ("products:scale=1000", "fewer than 2³¹ are possible"),
        ("arxiv:seed=-1", "seed=-1 must be 0 or more"),
        ("arxiv:size=2", "unknown option of synthetic-arxiv 'size'"),
        ("proteins:scale=0.01,split=random", "a random split goes by class"),
    ],
)
def test_impossible_options_are_refused(name, reason):
    with pytest.raises(InputError) as error:
        load(f"synthetic-{name}")
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_the_densest_possible_graph_is_found():
    data = twin(PROTEINS, scale=0.00905)
    assert data.num_edges / (data.num_nodes * (data.num_nodes - 1)) > 0.49
