"""Settings that go with a data set: the paper's table as literal numbers, and who may override what."""

import pytest
import torch

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.data import datasets
from gst.train.presets import DENSE, PAPER
from gst.train.run import Problem
from gst.train.settings import Settings, make_settings

SMALL = ("gcn", "gin", "gat")
LARGE = ("sage", "cluster-gcn")
TABLE = {  # the table of the paper's appendix, row by row: E, D, lr, ΔT of each data set and backbone
    ("Cora", SMALL): ((100, 100, 100), (400, 400, 400), (0.001, 0.001, 0.001), (20, 20, 20)),
    ("CiteSeer", SMALL): ((100, 200, 200), (500, 500, 500), (0.001, 0.001, 0.001), (20, 20, 20)),
    ("PubMed", SMALL): ((200, 200, 200), (600, 600, 600), (0.001, 0.001, 0.001), (20, 20, 20)),
    ("ogbn-arxiv", LARGE): ((200, 100), (300, 300), (0.01, 0.01), (3, 3)),
    ("ogbn-proteins", LARGE): ((200, 200), (300, 300), (0.01, 0.01), (3, 3)),
    ("ogbn-products", LARGE): ((200, 200), (300, 300), (0.01, 0.01), (3, 3)),
}
OGB = [name for name, _ in TABLE if name.startswith("ogbn")]
HETEROPHILOUS = ("Tolokers", "Minesweeper", "Questions", "Roman-empire", "Amazon-ratings")


@pytest.mark.parametrize(("dataset", "backbones"), TABLE)
def test_the_table_of_the_paper(dataset, backbones):
    for backbone, *expected in zip(backbones, *TABLE[dataset, backbones], strict=True):
        found = make_settings(dataset, backbone, {})
        assert [found.anchor_epochs, found.sparse_epochs, found.lr, found.interval] == expected
        assert (found.swap_ratio, found.decay, found.recipe) == (0.3, 1.0, "deploy")


@pytest.mark.parametrize("dataset", OGB)
@pytest.mark.parametrize(("backbone", "batch"), [("sage", "neighbors"), ("cluster-gcn", "clusters"), ("gcn", "full")])
def test_graphs_of_ogb_are_inductive_with_the_batches_of_the_backbone(dataset, backbone, batch):
    found = make_settings(dataset, backbone, {})
    assert (found.batch, found.setting) == (batch, "transductive" if backbone == "gcn" else "inductive")
    twin = dataset.replace("ogbn", "synthetic") + ":scale=0.1"
    assert make_settings(twin, backbone, {}) == found


def test_what_the_user_gives_wins_and_no_default_gets_in_the_way():
    given = {"batch": "full", "setting": "transductive", "lr": 0.5, "interval": 7, "sparse_epochs": 9}
    found = make_settings("ogbn-arxiv", "sage", given)
    assert {key: getattr(found, key) for key in given} == given
    assert make_settings("ogbn-arxiv", "sage", {"recipe": "retrain"}).setting == "transductive"
    with pytest.raises(InputError, match="retrain trains on edges of all nodes"):
        make_settings("ogbn-arxiv", "sage", {"recipe": "retrain", "setting": "inductive"})
    found = make_settings("Tolokers", "gcn", {"layers": 2, "residual": False})
    assert (found.layers, found.residual, found.dropout) == (2, False, 0.2)


def test_methods_that_need_all_at_once_say_what_to_give():
    data = gst.load("synthetic-arxiv:scale=0.002")
    with pytest.raises(InputError, match="take batch full and setting transductive"):
        gst.sparsify(data, "ugs", backbone="sage", sparsity=0.2, cache=False)


def test_every_table_is_of_a_registered_data_set():
    names = {info.name.lower().replace("-", "").replace("ogbn", "") for info in datasets()}
    assert set(DENSE) | set(PAPER) <= names


@pytest.mark.parametrize("dataset", ["Computers", "Photo", "CS", "Physics"])
def test_amazon_and_coauthor_are_trained_as_published(dataset):
    found = make_settings(dataset, "gcn", {})
    assert (found.hidden, found.layers, found.lr, found.weight_decay, found.residual) == (64, 2, 0.01, 5e-4, False)
    assert found.anchor_epochs + found.sparse_epochs == 200


@pytest.mark.parametrize("dataset", HETEROPHILOUS)
def test_heterophilous_graphs_are_trained_with_skip_connections(dataset):
    for backbone in ("gcn", "gat", "sage"):
        found = make_settings(dataset, backbone, {})
        assert (found.layers, found.residual, found.weight_decay, found.dropout) == (3, True, 0, 0.2)


@pytest.mark.parametrize("name", ["mine", "synthetic", "physics", "ogbn-arxiv", None])
def test_own_data_keep_the_defaults_whatever_their_name(name):
    data = random_graph()
    data.name = name
    assert Problem(data, backbone="sage", cache=False).settings == Settings()


def test_published_data_get_theirs_by_name_and_size():
    data = random_graph(features=8415)
    data.name = "Physics"
    assert Problem(data, cache=False).settings.hidden == 64
    data.x = torch.zeros(12, 64)
    data.name = "digits:nodes=12"
    assert Problem(data, cache=False).settings.sparse_epochs == 200
