"""What Deploy promises beyond the contract of every sparsifier."""

import pytest
import torch
from contract import same
from torch_geometric.nn.models import GAT, GCN

import gst
from graphs import random_graph
from gst import Deploy
from gst.graph.select import budget, top_k
from gst.storage.cache import Cache

QUICK = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 9}


def fit(data=None, **params):
    data = random_graph(nodes=40, edges=120) if data is None else data
    return Deploy(**{"sparsity": 0.5, "cache": False, **QUICK, **params}).fit(data)


@pytest.mark.parametrize("sparsities", [(0.8, 0.6, 0.4), (0.3, 0.2, 0.1)], ids=["up", "down"])
@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_one_path_serves_every_sparsity_on_its_side(backbone, sparsities, tmp_path):
    """Stored, extended or found in one go: the same edges."""
    fresh = {s: fit(sparsity=s, backbone=backbone) for s in sparsities}
    for number, order in enumerate([sparsities, sparsities[::-1]]):
        cache = Cache(tmp_path / str(number))
        for sparsity in order:
            assert same(fit(sparsity=sparsity, backbone=backbone, cache=cache), fresh[sparsity])
    most, middle, least = (fresh[s].found_.keep_mask for s in sparsities)
    assert bool((most <= middle).all() and (middle <= least).all()), "nested"
    if sparsities[0] < 0.35:  # of a path down only the edges that go are in order
        return
    scores = fresh[sparsities[-1]].result_.scores
    for sparsity, fitted in fresh.items():
        edges = fitted.edges_
        per_edge = torch.zeros(edges.num_edges, dtype=torch.float64)
        per_edge[edges.column_edge] = scores
        assert torch.equal(top_k(per_edge, budget(edges.num_edges, sparsity)), fitted.found_.keep_mask)


def test_the_dense_model_itself_is_returned():
    data = random_graph(nodes=40, edges=120)
    result = gst.sparsify(data, "deploy", sparsity=0.5, dense=True, retrain=True, cache=False, **QUICK)
    assert {"test", "dense_test", "retrain_test", "agreement"} <= set(result.metrics)
    logits = result.model(data.x, data.edge_index)
    accuracy = 100 * float((logits.argmax(-1) == data.y)[data.test_mask].float().mean())
    assert accuracy == pytest.approx(result.metrics["dense_test"])


@pytest.mark.parametrize("kind", [GCN, GAT])
def test_a_model_is_taken_with_the_weights_it_has(kind):
    data = random_graph(nodes=40, edges=120)
    torch.manual_seed(0)
    model = kind(5, 8, 2, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    phases = set()
    result = Deploy(model, sparsity=0.5, watch=lambda step: phases.add(step.phase)).fit(data, dense=True).result_
    assert phases == {"greedy"}
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items()), "the user's own changed"
    assert all(torch.equal(value, result.model.state_dict()[name]) for name, value in before.items())
    with torch.no_grad():
        right = (model.eval()(data.x, data.edge_index).argmax(-1) == data.y)[data.test_mask]
    assert result.metrics["dense_test"] == pytest.approx(100 * float(right.float().mean()))


def test_deploy_is_the_default_and_other_arguments_do_not_change_that():
    data = random_graph(nodes=40, edges=120)
    assert gst.sparsify(data, sparsity=0.5, cache=False, **QUICK).metrics["method"] == "deploy"
    with pytest.raises(gst.InputError, match="unknown argument 'interval' of method deploy"):
        gst.sparsify(data, sparsity=0.5, interval=3)
