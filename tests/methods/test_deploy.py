"""What Deploy promises beyond the contract of every sparsifier."""

import pytest
import torch
from contract import same
from torch_geometric.nn.models import GAT, GCN

import gst
from graphs import random_graph
from gst import Deploy
from gst.after.drift import drift
from gst.after.structure import inspect_run
from gst.graph.edgeset import EdgeSet
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


@pytest.mark.parametrize("batch", [{}, {"batch": "clusters", "clusters": 4, "clusters_per_batch": 2}])
def test_counting_arcs_changes_no_training_on_all_edges(batch):
    data = random_graph(nodes=40, edges=120, weighted=True)
    dense = [Deploy(sparsity=0.5, by=by, cache=False, **batch, **QUICK).run(data).dense for by in ("arcs", "pairs")]
    assert torch.equal(dense[0].logits, dense[1].logits)
    assert all(torch.equal(weight, dense[1].model[name]) for name, weight in dense[0].model.items())


def test_arcs_are_chosen_one_by_one_and_pairs_together(tmp_path):
    data = random_graph(nodes=40, edges=120, loops=True)
    arcs, pairs = (EdgeSet.from_data(data, by) for by in ("arcs", "pairs"))
    assert arcs.num_edges == 2 * pairs.num_edges and arcs.symmetric
    for by, edges in (("arcs", arcs), ("pairs", pairs)):
        result = fit(data, by=by).result_
        metrics = result.metrics
        assert metrics["by"] == by and not metrics["directed"] and metrics["options"]["by"] == by
        assert metrics["edges_total"] == edges.num_edges and metrics["edges_kept"] == budget(edges.num_edges, 0.5)
        assert result.graph.is_undirected() == (by == "pairs")
        logits = result.model(result.graph.x, result.graph.edge_index)
        full = result.model(data.x, data.edge_index)
        assert metrics["agreement"] == float((logits.argmax(-1) == full.argmax(-1)).double().mean())
        result.save(tmp_path / by)
        again = gst.Result.load(tmp_path / by)
        assert again.metrics == metrics
        assert torch.allclose(again.compile()(), logits, atol=1e-5)
        assert drift(again, data, shares=(0.5,), epochs=(1,))[0]["agreement"] == metrics["agreement"]
        assert inspect_run(again)[by] == (metrics["edges_total"], metrics["edges_kept"])


def test_of_a_directed_graph_arcs_and_pairs_are_the_same():
    data = random_graph(nodes=40, edges=120, directed=True)
    first, second = (fit(data, by=by) for by in ("arcs", "pairs"))
    assert same(first, second) and first.result_.metrics["by"] == second.result_.metrics["by"] == "arcs"
    assert first.result_.metrics["directed"]


def test_a_wrong_by_is_one_line():
    with pytest.raises(gst.InputError, match=r"by = 'edges': choose from arcs, pairs"):
        Deploy(sparsity=0.5, by="edges")


@pytest.mark.parametrize("by", ["arcs", "pairs"])
def test_a_run_grows_by_what_it_counts(by):
    data = random_graph(nodes=40, edges=120)
    old = data.subgraph(torch.arange(40) < 35)
    result = fit(old, by=by).result_
    grown = result.extend(data)
    total = EdgeSet.from_data(data, by).num_edges
    assert grown.metrics["edges_total"] == total and grown.metrics["by"] == by
    assert abs(grown.metrics["edges_kept"] - (total - result.metrics["sparsity"] * total)) <= 0.5
    old_arcs = set(map(tuple, result.graph.edge_index.T.tolist()))
    assert old_arcs <= set(map(tuple, grown.graph.edge_index.T.tolist()))
