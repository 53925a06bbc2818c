"""Settings that go with a data set: the paper's table as literal numbers, and who may override what."""

from types import SimpleNamespace

import pytest
import torch

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.data import datasets
from gst.train.presets import DENSE, PAPER, preset
from gst.train.settings import Batching, Training, Updates, make_config

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


def settings(dataset, backbone, **given):
    """All settings of training, batches and updates that go with a data set, by name."""
    layers = preset(dataset, backbone), given
    configs = [make_config(kind, *layers) for kind in (Training, Batching, Updates)]
    return SimpleNamespace(**{name: value for config in configs for name, value in config.model_dump().items()})


@pytest.mark.parametrize(("dataset", "backbones"), TABLE)
def test_the_table_of_the_paper(dataset, backbones):
    for backbone, *expected in zip(backbones, *TABLE[dataset, backbones], strict=True):
        values = settings(dataset, backbone)
        assert [values.anchor_epochs, values.sparse_epochs, values.lr, values.interval] == expected
        assert (values.swap_ratio, values.decay) == (0.3, 1.0)


@pytest.mark.parametrize("dataset", OGB)
@pytest.mark.parametrize(("backbone", "batch"), [("sage", "neighbors"), ("cluster-gcn", "clusters"), ("gcn", "full")])
def test_graphs_of_ogb_are_inductive_with_the_batches_of_the_backbone(dataset, backbone, batch):
    values = settings(dataset, backbone)
    assert (values.batch, values.inductive) == (batch, backbone != "gcn")
    twin = dataset.replace("ogbn", "synthetic") + ":scale=0.1"
    assert settings(twin, backbone) == values


def test_what_the_user_gives_wins_and_no_default_gets_in_the_way():
    given = {"batch": "full", "inductive": False, "lr": 0.5, "interval": 7, "sparse_epochs": 9}
    values = settings("ogbn-arxiv", "sage", **given)
    assert {key: getattr(values, key) for key in given} == given
    data = gst.load("synthetic-arxiv:scale=0.002")
    assert not gst.Retrain(backbone="sage", sparsity=0.2).config(Training, data).inductive
    assert gst.GST(backbone="sage", sparsity=0.2).config(Training, data).inductive
    values = settings("Tolokers", "gcn", layers=2, residual=False)
    assert (values.layers, values.residual, values.dropout) == (2, False, 0.2)


def test_methods_that_need_all_at_once_say_what_to_give():
    data = gst.load("synthetic-arxiv:scale=0.002")
    with pytest.raises(InputError, match="take batch full and no inductive"):
        gst.sparsify(data, "ugs", backbone="sage", sparsity=0.2, cache=False)


def test_every_table_is_of_a_registered_data_set():
    names = {info.name.lower().replace("-", "").replace("ogbn", "") for info in datasets()}
    assert set(DENSE) | set(PAPER) <= names


@pytest.mark.parametrize("dataset", ["Computers", "Photo", "CS", "Physics"])
def test_amazon_and_coauthor_are_trained_as_published(dataset):
    values = settings(dataset, "gcn")
    assert (values.hidden, values.layers, values.lr, values.weight_decay, values.residual) == (64, 2, 0.01, 5e-4, False)
    assert values.anchor_epochs + values.sparse_epochs == 200


@pytest.mark.parametrize("dataset", HETEROPHILOUS)
def test_heterophilous_graphs_are_trained_with_skip_connections(dataset):
    for backbone in ("gcn", "gat", "sage"):
        values = settings(dataset, backbone)
        assert (values.layers, values.residual, values.weight_decay, values.dropout) == (3, True, 0, 0.2)


@pytest.mark.parametrize("name", ["mine", "synthetic", "physics", "ogbn-arxiv", None])
def test_own_data_keep_the_defaults_whatever_their_name(name):
    data = random_graph()
    data.name = name
    run = gst.GST(backbone="sage", sparsity=0.5, cache=False).run(data)
    assert (run.training, run.batching) == (Training(), Batching())


def test_published_data_get_theirs_by_name_and_size():
    data = random_graph(features=8415)
    data.name = "Physics"
    assert gst.GST(sparsity=0.5).config(Training, data).hidden == 64
    data.x = torch.zeros(12, 64)
    data.name = "digits:nodes=12"
    assert gst.GST(sparsity=0.5).config(Training, data).sparse_epochs == 200
