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
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import make_search
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
    result = Deploy(model, sparsity=0.5, callbacks=lambda step: phases.add(step.phase)).fit(data, dense=True).result_
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


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat"])
@pytest.mark.parametrize("directed", [False, True])
def test_no_node_reads_more_than_max_degree(backbone, directed, tmp_path):
    data = random_graph(nodes=40, edges=160, loops=True, directed=directed)
    edges = EdgeSet.from_data(data, "arcs")
    reads = torch.bincount(edges.pairs[1], minlength=40)
    whole = fit(data, backbone=backbone, sparsity=None, max_degree=2)
    assert int(whole.found_.keep_mask.sum()) == int(reads.clamp(max=2).sum())
    part = fit(data, backbone=backbone, sparsity=None, keep=20, max_degree=2, cache=Cache(tmp_path))
    order = whole.result_.scores[part.result_.edge_mask & (edges.column_edge >= 0)]
    assert float(order.min()) > edges.num_edges - 20, "one path serves every budget under the same cap"
    again = fit(data, backbone=backbone, sparsity=None, max_degree=2, cache=Cache(tmp_path))
    assert same(again, whole), "a stored path goes on under its cap"
    for result in (whole.result_, part.result_):
        assert result.metrics["max_degree"] == 2
        kept = edges.pairs[1][torch.unique(edges.column_edge[result.edge_mask & (edges.column_edge >= 0)])]
        assert int(torch.bincount(kept).max()) <= 2
    free = fit(data, backbone=backbone, sparsity=None, keep=20, max_degree=1000)
    assert same(free, fit(data, backbone=backbone, sparsity=None, keep=20))


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat"])
def test_a_capped_search_is_the_greedy_of_brute_force(backbone):
    run = Deploy(sparsity=0.5, backbone=backbone, max_degree=2, cache=False, **QUICK).run(random_graph(14, 30))
    edges, logits, network = run.edges, run.dense.logits, run.network()
    network.module.load_state_dict(run.dense.model)
    network.module.eval()
    target = Target.of(logits)
    search = make_search([network], edges, [logits], target, room=run.cap.room)
    order, deltas = search.add(run.cap.capacity, tolerance=0.0)
    kept = torch.zeros(edges.num_edges, dtype=torch.bool)

    @torch.no_grad()
    def divergence(edge):
        mask = kept.index_fill(0, torch.tensor([edge]), True) if edge is not None else kept
        return float(target.loss(logits.double(), network.logits(edges.subset(mask)).double()).sum())

    for edge, delta in zip(order.tolist(), deltas.tolist(), strict=True):
        reads = torch.bincount(edges.pairs[1][kept], minlength=14)
        fits = [e for e in range(edges.num_edges) if not kept[e] and reads[edges.pairs[1][e]] < 2]
        values = {e: divergence(e) - divergence(None) for e in fits}
        assert delta == pytest.approx(values[edge], abs=0.02) and delta <= min(values.values()) + 0.02
        kept[edge] = True
    assert not [e for e in fits if e != order[-1] and int((edges.pairs[1][kept] == edges.pairs[1][e]).sum()) < 2]


@pytest.mark.parametrize("kind", [GCN, GAT])
def test_the_cap_holds_for_models_of_ones_own_and_for_new_nodes(kind):
    data = random_graph(nodes=40, edges=160)
    torch.manual_seed(0)
    old = data.subgraph(torch.arange(40) < 30)
    result = Deploy(kind(5, 8, 2, 3), sparsity=0.5, max_degree=3).fit(old).result_
    grown = result.extend(data)
    for graph in (result.graph, grown.graph):
        assert int(torch.bincount(graph.edge_index[1]).max()) <= 3
    assert grown.metrics["edges_kept"] > result.metrics["edges_kept"]
