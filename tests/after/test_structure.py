"""Facts about kept and removed edges, against counting in a loop."""

import json
from collections import Counter

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphs import KINDS, graphs, random_graph
from gst.after.structure import facts_of, neighbourhood
from gst.graph.edgeset import EdgeSet


def half(edges: EdgeSet) -> torch.Tensor:
    return torch.arange(edges.num_edges) % 2 == 0


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_a_loop(kind):
    data = random_graph(nodes=30, edges=90, **kind)
    data.y[4] = -1  # of unknown class
    edges = EdgeSet.from_data(data)
    keep = half(edges)
    facts = facts_of(data, edges, keep)
    degree: dict[str, Counter] = {"kept": Counter(), "removed": Counter()}
    homophily: dict[str, Counter] = {"kept": Counter(), "removed": Counter()}
    for e, (u, v) in enumerate(edges.pairs.t().tolist()):
        part = "kept" if keep[e] else "removed"
        smaller = min(int((edges.pairs == node).sum()) for node in (u, v))
        degree[part][max(p for p in range(20) if 2**p <= smaller)] += 1
        a, b = int(data.y[u]), int(data.y[v])
        homophily[part]["unknown" if min(a, b) < 0 else "same" if a == b else "different"] += 1
    for part in ("kept", "removed"):
        assert facts["degree"][part] == [degree[part][p] for p in range(len(facts["degree"]["from"]))]
        assert facts["homophily"][part] == {w: homophily[part][w] for w in ("same", "different", "unknown")}
    for which, mask in enumerate((torch.ones_like(keep), keep)):
        graph = nx.Graph()
        graph.add_nodes_from(range(edges.num_nodes))
        graph.add_edges_from(edges.pairs[:, mask].t().tolist())
        assert facts["nodes"]["isolated"][which] == nx.number_of_isolates(graph)
        assert facts["nodes"]["components"][which] == nx.number_connected_components(graph)


@given(graphs(), st.integers(0, 2**31))
def test_any_graph_gives_plain_json(data, seed):
    edges = EdgeSet.from_data(data)
    keep = torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(seed)) < 0.5
    facts = facts_of(data, edges, keep)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert sum(facts["degree"]["kept"]) == int(keep.sum()) == sum(facts["homophily"]["kept"].values())
    drawn = facts["neighbourhood"]
    truth = {tuple(pair): int(k) for pair, k in zip(edges.pairs.t().tolist(), keep, strict=True)}
    ids = [node[0] for node in drawn["nodes"]]
    assert len(set(ids)) == len(ids)
    inside = {(ids[i], ids[j]): kept for i, j, kept in drawn["edges"]}
    assert inside == {pair: k for pair, k in truth.items() if set(pair) <= set(ids)}


def test_drawings_of_two_masks_show_the_same_nodes():
    data = random_graph(nodes=200, edges=900)
    edges = EdgeSet.from_data(data)
    keep = half(edges)
    one, other = neighbourhood(edges, keep, data.y), neighbourhood(edges, ~keep, data.y)
    assert one["nodes"] == other["nodes"] and len(one["nodes"]) <= 36
    assert [e[:2] for e in one["edges"]] == [e[:2] for e in other["edges"]]
    assert all(a[2] + b[2] == 1 for a, b in zip(one["edges"], other["edges"], strict=True))
    assert one["nodes"][0][3] == int(data.y[one["nodes"][0][0]])
    assert all(abs(x) <= 1 and abs(y) <= 1 for _, x, y, _ in one["nodes"])


def test_labels_of_several_columns_have_no_homophily():
    data = random_graph()
    data.y = torch.zeros(12, 2)
    edges = EdgeSet.from_data(data)
    facts = facts_of(data, edges, half(edges))
    assert facts["homophily"]["kept"]["unknown"] == int(half(edges).sum())
    assert facts["neighbourhood"]["nodes"][0][3] is None
