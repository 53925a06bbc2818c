"""Features and links as published: only Planetoid's bags of words are divided by their row sum."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from gst.data import load, wikipedia
from gst.data.registry import DATASETS

PLANETOID = {"Cora", "CiteSeer", "PubMed"}
REAL = [name for name, dataset in DATASETS.items() if dataset.info.source.startswith("PyG")]


def small() -> Data:
    """60 nodes of 2 classes with bags of words, and directed links, one of them a self-loop."""
    index = torch.tensor([[0, 1, 2, 2, 3], [1, 0, 0, 3, 3]])
    masks = {f"{part}_mask": torch.arange(60) % 3 == i for i, part in enumerate(("train", "val", "test"))}
    return Data(x=torch.tensor([[1.0, 1.0, 0.0, 2.0]]).repeat(60, 1), edge_index=index, y=torch.arange(60) % 2, **masks)


@pytest.mark.parametrize("name", REAL)
def test_only_planetoid_is_divided_by_row_sums(name, monkeypatch):
    monkeypatch.setitem(DATASETS._entries, name, replace(DATASETS[name], make=lambda root: small()))
    expected = [0.25, 0.25, 0.0, 0.5] if name in PLANETOID else [1.0, 1.0, 0.0, 2.0]
    assert load(name, split="random").x[0].tolist() == expected


@pytest.mark.parametrize("name", ["Chameleon", "Squirrel"])
def test_links_go_both_ways_unless_directed(name, monkeypatch):
    monkeypatch.setattr(wikipedia, "fetch", lambda source, info, root: small())
    both, one_way = load(name), load(f"{name}:directed=1")
    assert both.edge_index.tolist() == [[0, 0, 1, 2, 2, 3, 3], [1, 2, 0, 0, 3, 2, 3]]
    assert torch.equal(one_way.edge_index, small().edge_index)
    assert (both.name, one_way.name) == (name, f"{name}:directed=1")
