"""What the recipes promise beyond the contract of every sparsifier."""

import pytest
import torch
from contract import same
from torch_geometric.nn.models import GAT, GCN

import gst
from graphs import random_graph
from gst import GST, InputError
from gst.graph.select import budget, top_k
from gst.storage.cache import Cache

QUICK = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 9}


def fit(recipe="deploy", data=None, **given):
    data = random_graph(nodes=40, edges=120) if data is None else data
    return GST(**{"sparsity": 0.5, "recipe": recipe, "cache": False, **QUICK, **given}).fit(data)


@pytest.mark.parametrize("sparsities", [(0.8, 0.6, 0.4), (0.3, 0.2, 0.1)], ids=["up", "down"])
@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_one_path_serves_every_sparsity_on_its_side(backbone, sparsities, tmp_path):
    """Stored, extended or found in one go: the same edges."""
    fresh = {s: fit(sparsity=s, backbone=backbone) for s in sparsities}
    for number, order in enumerate([sparsities, sparsities[::-1]]):
        cache = Cache(tmp_path / str(number))
        for sparsity in order:
            found = fit(sparsity=sparsity, backbone=backbone, cache=cache)
            assert same(found, fresh[sparsity])
    most, middle, least = (fresh[s].keep_ for s in sparsities)
    assert bool((most <= middle).all() and (middle <= least).all()), "nested"
    if sparsities[0] < 0.35:  # of a path down only the edges that go are in order
        return
    scores = fresh[sparsities[-1]].scores_
    for sparsity, found in fresh.items():
        edges = found.edges_
        per_edge = torch.zeros(edges.num_edges, dtype=torch.float64)
        per_edge[edges.column_edge] = scores
        assert torch.equal(top_k(per_edge, budget(edges.num_edges, sparsity)), found.keep_)


def test_deploy_returns_the_dense_model_itself():
    data = random_graph(nodes=40, edges=120)
    result = gst.sparsify(data, recipe="deploy", sparsity=0.5, dense=True, retrain=True, cache=False, **QUICK)
    metrics = result.metrics
    assert metrics["recipe"] == "deploy"
    assert {"test", "dense_test", "retrain_test"} <= set(metrics)
    logits = result.model(data.x, data.edge_index)
    accuracy = 100 * float((logits.argmax(-1) == data.y)[data.test_mask].float().mean())
    assert accuracy == pytest.approx(metrics["dense_test"])


@pytest.mark.parametrize("kind", [GCN, GAT])
def test_a_model_that_is_trained_already_is_taken_as_it_is(kind):
    data = random_graph(nodes=40, edges=120)
    torch.manual_seed(0)
    model = kind(5, 8, 2, 3)
    phases = set()
    result = gst.sparsify(
        data, model=model, trained=True, recipe="deploy", sparsity=0.5, dense=True, watch=lambda s: phases.add(s.phase)
    )
    assert phases == {"greedy"}
    assert all(torch.equal(a, b) for a, b in zip(result.model.parameters(), model.parameters(), strict=True))
    with torch.no_grad():
        right = (model.eval()(data.x, data.edge_index).argmax(-1) == data.y)[data.test_mask]
    assert result.metrics["dense_test"] == pytest.approx(100 * float(right.float().mean()))


def test_trained_needs_a_model_and_deploy():
    with pytest.raises(InputError, match="trained is for"):
        fit(trained=True)
    with pytest.raises(InputError, match="trained is for"):
        fit("paper", model=GCN(5, 8, 2, 3), trained=True)


@pytest.mark.parametrize("model", [None, GCN(5, 8, 2, 3)])
def test_retrain_trains_on_from_the_anchor(model):
    found = fit("retrain", model=model)
    assert found.anchor_.logits.shape == found.logits_.shape
    assert torch.equal(found.mask_, found.scores_ >= 1)


def test_turns_bound_how_many_networks_retrain_trains():
    seen = []
    for turns in (0, 2):
        begun = []
        fit("retrain", turns=turns, watch=lambda event, begun=begun: begun.append(event.epoch == 1 and event.phase))
        seen.append(begun.count("turn"))
    assert seen == [4 + 2, 4 + 6]  # four dense ones for the beliefs; two a turn, and two that are only asked


def test_deploy_is_the_default_unless_a_setting_of_the_paper_is_given():
    data = random_graph(nodes=40, edges=120)
    for given, expected in [({}, "deploy"), ({"interval": 3}, "paper"), ({"recipe": "retrain", "decay": 2}, "retrain")]:
        assert GST(sparsity=0.5, cache=False, **QUICK, **given).fit(data).settings_.recipe == expected
