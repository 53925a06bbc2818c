"""The search on typed graphs: trials that share a pass are as exact as one by itself; paths and quotas."""

import numpy as np
import pytest
import torch

import gst
from gst.graph.typed import TypedEdges
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.typed import Graph, TypedSearch, pack, reach_of
from nn.test_typed_models import network_of
from typed_graphs import QUICK, library


def search_of(name, data, kept=0.3):
    network, edges = network_of(name, data)
    with torch.no_grad():
        wanted = network.logits(edges)
    keep_mask = torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(2)) < kept
    return TypedSearch([network], edges, [wanted], Target.of(wanted), keep_mask=keep_mask), edges


@pytest.mark.parametrize("name", ["sage", "gat", "hgt", "to_hetero", "rgcn", "max"])
def test_trials_that_share_a_pass_are_exact(name):
    data = library()
    data["term"].x = torch.eye(10)
    search, _ = search_of(name, data)
    candidates = np.flatnonzero(~search.keep_mask)
    value = np.full(search.keep_mask.size, np.nan)
    search.hops = reach_of(search.networks[0], search.edges)
    search._try(candidates, value)
    tried = candidates[np.isfinite(search.value[candidates])]
    assert tried.size > 3
    for edge in tried:
        alone = search.keep_mask.copy()
        alone[edge] = True
        change = (search._loss(alone) - search.loss).sum()
        assert change == pytest.approx(search.value[edge], rel=1e-3, abs=1e-4)


def test_packed_candidates_reach_different_targets():
    edges = TypedEdges.from_hetero(library())
    graph, keep_mask = Graph.of(edges), np.ones(edges.num_edges, bool)
    owner, state = pack(np.arange(edges.num_edges), *graph, keep_mask, 1, 10_000)
    packed = np.flatnonzero(state == 1)
    assert packed.size and set(np.unique(owner[owner >= 0])) <= set(packed)


@pytest.mark.parametrize(("name", "hops"), [("sage", 1), ("hgt", 1), ("rgcn", 1), ("max", 2)])
def test_the_reach_of_a_change_is_measured(name, hops):
    data = library(authors=60, papers=200, terms=60)
    data["term"].x = torch.zeros(60, 10)
    if name == "rgcn":
        pytest.skip("its vectors are for another number of nodes")
    network, edges = network_of(name, data)
    assert reach_of(network, edges) == hops


@pytest.mark.parametrize("amount", [0.3, 0.7, {"writes": 0.5, "cites": 0.75}])
def test_deploy_is_exact_and_better_than_chance(amount):
    data = library()
    result = gst.sparsify(data, "deploy", sparsity=amount, **QUICK)
    metrics = result.metrics
    rows = metrics["relations"].values()
    assert metrics["edges_kept"] == sum(row["kept"] for row in rows)
    if isinstance(amount, dict):
        shares = dict(zip(metrics["relations"], amount.values(), strict=True))
        for name, row in metrics["relations"].items():
            assert row["kept"] == row["total"] - round(shares[name] * row["total"])
    else:
        assert metrics["edges_kept"] == metrics["edges_total"] - round(amount * metrics["edges_total"])


def test_a_path_goes_on_where_a_shorter_one_ended(tmp_path):
    data, cache = library(), gst.storage.cache.Cache(tmp_path)
    options = {**QUICK, "cache": cache}
    gst.sparsify(data, "deploy", sparsity=0.9, **options)
    grown = gst.sparsify(data, "deploy", sparsity=0.5, **options)
    at_once = gst.sparsify(data, "deploy", sparsity=0.5, **QUICK)
    assert all(torch.equal(grown.edge_mask[kind], mask) for kind, mask in at_once.edge_mask.items())
    assert grown.metrics["agreement"] == at_once.metrics["agreement"]
