"""What Retrain promises beyond the contract of every sparsifier."""

import pytest
import torch
from torch_geometric.nn.models import GCN

from graphs import random_graph
from gst import InputError, Retrain

QUICK = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 9}


def fit(**params):
    return Retrain(**{"sparsity": 0.5, "cache": False, **QUICK, **params}).fit(random_graph(nodes=40, edges=120))


@pytest.mark.parametrize("model", [None, GCN(5, 8, 2, 3)])
def test_the_returned_model_trains_on_from_the_anchor(model):
    fitted = fit(model=model)
    assert fitted.anchor_.logits.shape == fitted.found_.logits.shape
    assert torch.equal(fitted.result_.edge_mask, fitted.result_.scores >= 1)


def test_turns_bound_how_many_networks_are_trained():
    counts = []
    for turns in (0, 2):
        begun = []
        fit(turns=turns, callbacks=lambda step, begun=begun: begun.append(step.epoch == 1 and step.phase))
        counts.append(begun.count("turn"))
    assert counts == [4 + 2, 4 + 6]  # four dense ones for the ensemble; two per turn, and two that are only judged


def test_unseen_nodes_are_refused():
    with pytest.raises(InputError, match="retrain trains on edges of all nodes"):
        Retrain(sparsity=0.5, inductive=True)
    with pytest.raises(InputError, match="Retrain: turns = 9"):
        Retrain(sparsity=0.5, turns=9)
