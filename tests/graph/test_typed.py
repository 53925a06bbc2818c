"""Typed graphs: which columns are one edge, exact budgets by relation and in all, bad input."""

from collections import defaultdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import HeteroData

import gst
from gst.graph.relations import Schema
from gst.graph.typed import TypedEdges
from typed_graphs import library


def edges_by_hand(data: HeteroData) -> dict[tuple, set[tuple[str, int]]]:
    """The columns of each edge of the library, as (edge type, column)."""
    found = defaultdict(set)
    for kind in data.edge_types:
        for column, (i, j) in enumerate(data[kind].edge_index.t().tolist()):
            if kind[1] in ("writes", "has"):
                key = (kind[1], i, j)
            elif kind[1] in ("rev_writes", "of"):
                key = ("writes" if kind[1] == "rev_writes" else "has", j, i)
            elif kind[1] == "near":
                key = ("near", min(i, j), max(i, j))
            else:
                key = ("cites", i, j)
            if kind[0] != kind[2] or i != j:
                found[key].add((kind, column))
    return dict(found)


def check_alike(data: HeteroData, sparse_mask: dict) -> dict[str, int]:
    """Asserts that the columns of an edge share their fate; the number of edges kept by relation."""
    kept = defaultdict(int)
    for (relation, *_), members in edges_by_hand(data).items():
        fates = {bool(sparse_mask[kind][column]) for kind, column in members}
        assert len(fates) == 1
        kept[relation] += fates.pop()
    return dict(kept)


def test_an_edge_and_its_reverse_are_one() -> None:
    data = library()
    edges, by_hand = TypedEdges.from_hetero(data), edges_by_hand(data)
    assert edges.num_edges == len(by_hand)
    column = edges.schema.split(edges.column_edge)
    groups = defaultdict(set)
    for kind, ids in column.items():
        for number, edge in enumerate(ids.tolist()):
            if edge >= 0:
                groups[edge].add((kind, number))
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, by_hand.values()))


def test_nodes_of_the_target_come_first() -> None:
    schema = Schema.of(library())
    assert schema.node_types == ("author", "paper", "term") and schema.offset == {"author": 0, "paper": 24, "term": 64}
    assert [relation.forward[1] for relation in schema.relations] == ["writes", "has", "cites", "near"]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.floats(0, 0.99))
def test_one_budget_over_all_is_exact(seed: int, sparsity: float) -> None:
    data = library(seed, authors=9, papers=12, terms=4)
    est = gst.Random(sparsity, seed=seed)
    graph = est(data)
    total = len(edges_by_hand(data))
    kept = edges_by_hand(graph)
    assert len(kept) == total - round(sparsity * total)
    assert len(edges_by_hand(gst.LocalSimilarity(sparsity)(data))) == total - round(sparsity * total)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.floats(0, 0.99), st.floats(0, 0.99), st.sampled_from(["scan", "random", "dspar"]))
def test_budgets_by_relation_are_exact(seed: int, writes: float, cites: float, method: str) -> None:
    data = library(seed, authors=9, papers=12, terms=4)
    before = check_alike(data, {kind: torch.ones(data[kind].edge_index.shape[1]) for kind in data.edge_types})
    kind = {"scan": gst.SCAN, "random": gst.Random, "dspar": gst.DSpar}[method]
    est = kind({"writes": writes, ("paper", "cites", "paper"): cites})
    edges = est.edges_of(data)
    after = check_alike(data, edges.column_values(est.select(edges)[0], True))
    expected = {"writes": before["writes"] - round(writes * before["writes"])}
    expected["cites"] = before["cites"] - round(cites * before["cites"])
    assert after == {**before, **expected}


def test_attributes_follow_their_edges() -> None:
    data = library()
    graph = gst.SCAN(0.5)(data)
    kept = graph["author", "writes", "paper"]
    assert torch.equal(data["author", "writes", "paper"].edge_index[:, kept.edge_attr], kept.edge_index)
    assert graph["term"].num_nodes == 10 and torch.equal(graph["paper"].x, data["paper"].x)
    flipped = graph["paper", "rev_writes", "author"].edge_index.flip(0)
    assert set(map(tuple, flipped.t().tolist())) == set(map(tuple, kept.edge_index.t().tolist()))


def test_protected_relations_stay_and_are_not_counted() -> None:
    data = library()
    counted = len([key for key in edges_by_hand(data) if key[0] not in ("writes", "near")])
    for protect in ("writes, near", ["rev_writes", "near"], [("author", "writes", "paper"), "author__near__author"]):
        edges = TypedEdges.from_hetero(data, protect=protect)
        assert edges.num_edges == counted
    graph = gst.Random(0.9, protect="writes, near")(data)
    for kind in (("author", "writes", "paper"), ("paper", "rev_writes", "author"), ("author", "near", "author")):
        assert torch.equal(graph[kind].edge_index, data[kind].edge_index)
    assert len([key for key in edges_by_hand(graph) if key[0] in ("has", "cites")]) == counted - round(0.9 * counted)


@pytest.mark.parametrize("scope", ["union", "relation"])
def test_scores_of_the_union_and_of_each_relation(scope: str) -> None:
    data = library()
    scores = gst.SCAN(0.5, scope=scope).score(data)
    assert all(scores[kind].shape == (data[kind].edge_index.shape[1],) for kind in data.edge_types)
    assert scores["author", "near", "author"][-1] == torch.inf  # its self-loop
    writes, back = scores["author", "writes", "paper"], scores["paper", "rev_writes", "author"]
    assert torch.equal(writes, back)
    if scope == "relation":  # the best of every relation has the rank (n − 1) / n
        assert float(writes.max()) == 1 - 1 / writes.numel()


def test_by_relation_a_whole_budget_takes_the_same_share_of_each() -> None:
    data = library()
    before = check_alike(data, {kind: torch.ones(data[kind].edge_index.shape[1]) for kind in data.edge_types})
    est = gst.LocalSimilarity(0.5, scope="relation")
    edges = est.edges_of(data)
    after = check_alike(data, edges.column_values(est.select(edges)[0], True))
    assert all(abs(after[name] - count / 2) <= 1 for name, count in before.items())


def test_own_scores_by_relation() -> None:
    data = library()
    scores = {kind: torch.rand(data[kind].edge_index.shape[1]) for kind in data.edge_types}
    graph = gst.ImportanceScores(scores, keep=10)(data)
    assert len(edges_by_hand(graph)) == 10
    with pytest.raises(gst.InputError, match="one per column is needed"):
        gst.ImportanceScores({("author", "writes", "paper"): torch.ones(3)}, keep=10)(data)


def broken(change: str) -> HeteroData:
    data = library()
    if change == "dangling":
        data["author", "writes", "paper"].edge_index[1, 3] = 99
    elif change == "no nodes":
        del data["term"].num_nodes
    elif change == "unknown type":
        data["author", "at", "school"].edge_index = torch.zeros(2, 1, dtype=torch.long)
    elif change == "empty":
        data["paper", "cites", "paper"].edge_index = torch.zeros(2, 0, dtype=torch.long)
    elif change == "dtype":
        data["paper", "cites", "paper"].edge_index = torch.zeros(2, 2)
    elif change == "one type":
        data = HeteroData()
        data["a"].num_nodes = 3
        data["a", "to", "a"].edge_index = torch.tensor([[0, 1], [1, 2]])
    elif change == "nothing":
        data = HeteroData()
    elif change == "no edge_index":
        data["paper", "cites", "paper"].edge_index = None
    elif change == "NaN":
        data["paper"].x[3, 1] = torch.nan
    return data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("dangling", "column 3 is .* but 'paper' has the nodes 0 … 39 .1 bad columns."),
        ("no nodes", "node type 'term' has neither x nor num_nodes"),
        ("unknown type", "node type 'school'"),
        ("empty", "relation paper__cites__paper has no edges: leave it out"),
        ("dtype", "torch.int64 is needed"),
        ("one type", "one node type and one relation"),
        ("nothing", "no relation"),
        ("no edge_index", "has no edge_index"),
        ("NaN", "node type 'paper': x is NaN or infinite at node 3"),
    ],
)
def test_bad_graphs_are_one_line(change: str, reason: str) -> None:
    with pytest.raises(gst.InputError, match=reason) as caught:
        gst.Random(0.5)(broken(change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"sparsity": {"wrote": 0.5}}, "unknown relation 'wrote': choose from"),
        ({"sparsity": {"writes": 0.5, "rev_writes": 0.1}}, "has two sparsities"),
        ({"sparsity": {"writes": 1.5}}, "outside"),
        ({"sparsity": {}}, "names no relation"),
        ({"sparsity": {"writes": 0.5}, "protect": "writes"}, "is protected and has a sparsity"),
        ({"sparsity": {"writes": 0.5}, "keep": 3}, "give either"),
        ({"sparsity": 0.5, "protect": "writes, has, cites, near"}, "no edge is left"),
        ({"sparsity": 0.5, "target": "editor"}, "unknown node type 'editor': choose from paper, author, term"),
        ({"sparsity": 0.5, "scope": "each"}, "choose from union, relation"),
    ],
)
def test_bad_arguments_are_one_line(arguments: dict, reason: str) -> None:
    with pytest.raises(gst.InputError, match=reason):
        gst.Random(**arguments)(library())


def test_what_is_for_typed_graphs_is_refused_elsewhere() -> None:
    data = gst.load("synthetic:nodes=50,degree=4")
    wrong = ({"sparsity": {"writes": 0.5}}, {"sparsity": 0.5, "protect": "a"}, {"sparsity": 0.5, "scope": "union"})
    for arguments in wrong:
        with pytest.raises(gst.InputError, match="this graph has one type"):
            gst.Random(**arguments)(data)
