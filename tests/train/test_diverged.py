"""A run that ends in NaN is an error that says at which epoch; so is a split that judges by what it learned from."""

import pytest
import torch
from torch_geometric.nn import GCN

import gst
from graphs import random_graph
from gst.base.errors import DivergedError, InputError
from gst.train.task import Task

FEW = {"anchor_epochs": 2, "sparse_epochs": 3, "hidden": 8, "sparsity": 0.5, "cache": False}
CALLS = {
    "gst": {"method": "gst", "interval": 1},
    "deploy": {"method": "deploy"},
    "retrain": {"method": "retrain", "turns": 1},
    "random": {"method": "random"},
    "ugs": {"method": "ugs", "round_epochs": 2},
    "wd-glt": {"method": "wd-glt", "round_epochs": 2, "sample_size": 8},
    "mgspar": {"method": "mgspar", "inner_steps": 1, "meta_epochs": 1, "outer": "train"},
    "set": {"method": "set", "interval": 1},
}


@pytest.mark.parametrize("name", CALLS)
def test_features_that_overflow_are_an_error_that_names_the_epoch(name):
    data = random_graph(nodes=30, edges=80)
    data.x = data.x * 1e38
    with pytest.raises(DivergedError, match=r"epoch 1 of the \w+ phase: .* not finite"):
        gst.sparsify(data, **FEW, **CALLS[name])


def test_a_trained_model_that_gives_no_numbers_is_refused():
    model = GCN(5, 4, 2, 3)
    torch.nn.init.constant_(model.convs[0].lin.weight, torch.nan)
    with pytest.raises(InputError, match=r"finite|difference nan"):
        gst.Deploy(model, sparsity=0.5).fit(random_graph(nodes=30, edges=80))


@pytest.mark.parametrize(("one", "two"), [("train", "val"), ("train", "test"), ("val", "test")])
def test_a_node_is_in_one_part_of_the_split(one, two):
    data = random_graph(nodes=30, edges=80)
    data[f"{two}_mask"] = data[f"{one}_mask"].clone()
    with pytest.raises(InputError, match=f"in both {one}_mask and {two}_mask"):
        Task.from_data(data)
