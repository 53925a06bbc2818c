"""Learned and topology methods on typed graphs: exact budgets, results, files."""

import pytest
import torch

import gst
from gst.graph.typed import TypedEdges
from gst.methods.criteria.typed import topology_by_relation
from gst.storage.cache import Cache, fingerprint
from typed_graphs import QUICK, library

METHODS = ("gst", "random", "local-similarity", "ugs", "wdglt", "snip", "set", "rigl", "mest", "snfs")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("amount", [0.5, {"writes": 0.25, "has": 0.75}])
def test_budgets_are_exact(method: str, amount: float | dict[str, float]) -> None:
    data = library()
    result = gst.sparsify(data, method, sparsity=amount, **QUICK)
    metrics, edges = result.metrics, TypedEdges.from_hetero(data)
    if isinstance(amount, dict):
        names = {"writes": "author__writes__paper", "has": "paper__has__term"}
        for name, share in amount.items():
            row = metrics["relations"][names[name]]
            assert row["kept"] == row["total"] - round(share * row["total"])
        assert metrics["protected"] == ["paper__cites__paper", "author__near__author"]
    else:
        assert metrics["edges_total"] == edges.num_edges
        assert metrics["edges_kept"] == edges.num_edges - round(amount * edges.num_edges)
    for kind in data.edge_types:
        mask = result.edge_mask[kind]
        assert torch.equal(result.graph[kind].edge_index, data[kind].edge_index[:, mask])
    writes, back = result.edge_mask["author", "writes", "paper"], result.edge_mask["paper", "rev_writes", "author"]
    assert torch.equal(writes, back)


def test_the_same_seed_gives_the_same_graph() -> None:
    masks = [gst.sparsify(library(), "gst", sparsity=0.5, seed=3, **QUICK).edge_mask for _ in range(2)]
    assert all(torch.equal(masks[0][kind], masks[1][kind]) for kind in masks[0])


def test_a_result_is_saved_and_loaded(tmp_path: object) -> None:
    data = library()
    result = gst.sparsify(data, "gst", sparsity=0.5, **QUICK)
    result.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert again.metrics == result.metrics and again.graph.edge_types == result.graph.edge_types
    for kind in data.edge_types:
        assert torch.equal(again.edge_mask[kind], result.edge_mask[kind])
        assert torch.equal(again.scores[kind], result.scores[kind])
        for name, value in result.graph[kind].items():
            assert torch.equal(again.graph[kind][name], value)
    result.model.eval()
    logits = [r.model(r.graph.x_dict, r.graph.edge_index_dict) for r in (result, again)]
    assert torch.equal(*logits)
    for call in (again.compile, lambda: again.extend(data)):
        with pytest.raises(gst.InputError, match="graphs of one type"):
            call()


def test_transform_and_call_agree() -> None:
    data = library()
    est = gst.LocalSimilarity(0.5, **QUICK).fit(data)
    called = gst.LocalSimilarity(0.5)(data)
    for graph in (est.transform(data), est.result_.graph):
        assert all(torch.equal(graph[kind].edge_index, called[kind].edge_index) for kind in data.edge_types)
    with pytest.raises(gst.InputError, match="transform takes the graph that fit has seen"):
        est.transform(called)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"method": "retrain"}, "for graphs of one type"),
        ({"method": "mgspar"}, "for graphs of one type"),
        ({"method": "gst", "backbone": "gat"}, "typed graph takes rgcn"),
        ({"method": "gst", "batch": "clusters"}, "a typed graph takes full"),
        ({"method": "gst", "inductive": True}, "leave it off"),
        ({"method": "dspar", "weights": True}, "leave weights off"),
    ],
)
def test_what_typed_graphs_do_not_have(arguments: dict, reason: str) -> None:
    with pytest.raises(gst.InputError, match=reason):
        gst.sparsify(library(), sparsity=0.5, **{**QUICK, **arguments})


def test_which_type_has_labels_is_asked_for() -> None:
    data = library()
    data["paper"].y = torch.zeros(40, dtype=torch.long)
    data["paper"].train_mask = torch.ones(40, dtype=torch.bool)
    with pytest.raises(gst.InputError, match="name it by target="):
        gst.sparsify(data, "random", sparsity=0.5, **QUICK)
    result = gst.sparsify(data, "random", sparsity=0.5, target="author", **QUICK)
    assert result.metrics["target"] == "author"


@pytest.mark.parametrize(
    "change",
    [
        {"sparsity": {"writes": 0.5}},
        {"sparsity": {"writes": 0.25}},
        {"protect": "has"},
        {"scope": "relation"},
        {"seed": 1},
        {"lr": 0.1},
    ],
)
@pytest.mark.parametrize("method", ["gst", "local-similarity"])
def test_a_changed_run_is_the_same_with_the_cache_of_another(method: str, change: dict, tmp_path: object) -> None:
    cache = Cache(tmp_path)
    gst.sparsify(library(), method, sparsity=0.5, **{**QUICK, "cache": cache})
    arguments = {"sparsity": 0.5, **QUICK, **change}
    expected = gst.sparsify(library(), method, **arguments)
    cached = gst.sparsify(library(), method, **{**arguments, "cache": cache})
    for kind, mask in expected.edge_mask.items():
        assert torch.equal(cached.edge_mask[kind], mask) and torch.equal(cached.scores[kind], expected.scores[kind])


def test_another_graph_has_another_fingerprint() -> None:
    data, other = library(), library()
    other["author", "writes", "paper"].edge_attr[0] = 7
    assert fingerprint(data) == fingerprint(library()) != fingerprint(other)


def test_topology_by_relation_is_resistance_within_each_relation() -> None:
    edges = TypedEdges.from_hetero(library())
    ones = torch.ones(edges.num_edges)
    found = topology_by_relation(edges, ones, matrix="laplacian", eigenpairs="all")
    for relation in range(4):
        ids = (edges.edge_relation == relation).nonzero().flatten()
        u, v = edges.pairs[:, ids]
        laplacian = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
        for i, j in {(min(a, b), max(a, b)) for a, b in zip(u.tolist(), v.tolist(), strict=True)}:
            laplacian[i, i] += 1
            laplacian[j, j] += 1
            laplacian[i, j] = laplacian[j, i] = -1
        inverse = torch.linalg.pinv(laplacian)
        expected = inverse[u, u] + inverse[v, v] - 2 * inverse[u, v]
        assert torch.allclose(found[ids], expected / expected.mean(), rtol=0.6) and float(
            found[ids].mean()
        ) == pytest.approx(1)
        assert torch.corrcoef(torch.stack([found[ids], expected]))[0, 1] > 0.9 or expected.std() < 1e-6
