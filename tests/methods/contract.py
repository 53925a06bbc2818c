"""The one tester that every sparsifier passes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data

from gst import EdgeSet
from gst.base.randomness import seeded
from gst.graph.select import budget, top_k
from gst.methods import METHODS as REGISTRY
from gst.methods import (
    DSpar,
    EffectiveResistance,
    ImportanceScores,
    LearnedSparsifier,
    LocalSimilarity,
    Random,
    TopologySparsifier,
)
from gst.methods.iterative import IterativeSparsifier
from gst.train.run import Problem

# a learned method is the same code at any size: one short epoch of a narrow network shows what the contract is about
NARROW = {"hidden": 4, "heads": 2, "anchor_epochs": 1, "sparse_epochs": 2, "interval": 1, "cache": False}
ROUNDS = {"prune_ratio": 0.4}
QUICK: dict[str, dict[str, Any]] = {
    "gst": {},
    "ugs": {"round_epochs": 1, **ROUNDS},
    "wd-glt": {"round_epochs": 1, "sample": 8, **ROUNDS},
    "mgspar": {"inner_steps": 1, "meta_epochs": 1, **ROUNDS},
    **{name: {} for name in ("snip", "set", "snfs", "rigl", "mest")},
}
BACKBONE_OF = {"ugs": "gin", "wd-glt": "sage", "mgspar": "cluster-gcn"}  # the tests of each method try all of them


def _learned(name: str, **more: Any) -> Callable[..., LearnedSparsifier]:
    return partial(REGISTRY[name].make, **{**NARROW, **QUICK[name], **more})


def _lengths(**given: Any) -> TopologySparsifier:
    """Scores that the user brings: a function of the graph that no two edges share."""

    class Brought(TopologySparsifier):
        def edge_scores(self, edges: EdgeSet) -> torch.Tensor:
            return ImportanceScores(torch.arange(edges.num_edges).flip(0), keep=1).edge_scores(edges)

    return Brought(**given)


TOPOLOGY: dict[str, Callable[..., TopologySparsifier]] = {
    **{name: method.make for name, method in REGISTRY.items() if method.kind == "topology"},
    "dspar-highest": partial(DSpar, sample=False),
    "resistance-exact": partial(EffectiveResistance, projections=None),
    "resistance-highest": partial(EffectiveResistance, projections=None, sample=False),
    "importance": _lengths,
}
LEARNED: dict[str, Callable[..., LearnedSparsifier]] = {
    **{name: _learned(name) for name, method in REGISTRY.items() if method.kind == "learned"},
    **{f"{name}-{backbone}": _learned(name, backbone=backbone) for name, backbone in BACKBONE_OF.items()},
    "gst-gin": _learned("gst", backbone="gin", matrix="adjacency", eigenpairs=3),
    "gst-gat": _learned("gst", backbone="gat", matrix="normalised", eigenpairs=3),
    "gst-deploy": _learned("gst", recipe="deploy"),
    "gst-deploy-gat": _learned("gst", recipe="deploy", backbone="gat"),
    "gst-retrain-sage": _learned("gst", recipe="retrain", backbone="sage"),
    "ugs-tickets": _learned("ugs", backbone="gat", weight_prune_ratio=0.2),
}
METHODS: dict[str, Callable[..., Any]] = {**TOPOLOGY, **LEARNED}
# scores that are a function of the graph alone, with no draw that goes by edge id and no rank that goes by node id
DRAWN = (Random, DSpar, EffectiveResistance, LocalSimilarity)


def check(method: TopologySparsifier | LearnedSparsifier, data: Data, **amount: Any) -> None:
    """Exact budget, a subset of the input, both arcs alike, attributes aligned, scores that belong to the mask."""
    edges = EdgeSet.from_data(data)
    if isinstance(method, LearnedSparsifier):
        mask, scores, sparse = method.fit(data).mask_, method.scores_, method.transform(data)
    else:
        keep, edge_scores = method.select(edges)
        mask, scores, sparse = edges.to_columns(keep, True), method.score(data), method(data)
        assert torch.equal(scores, edges.to_columns(edge_scores, torch.inf))
        assert torch.equal(keep, top_k(edge_scores, budget(edges.num_edges, **amount)))
    check_mask(data, mask, **amount)
    check_graph_of(data, sparse, mask)
    assert scores.dtype == torch.float64 and scores.shape == mask.shape
    loops = edges.column_edge < 0
    assert bool(scores[loops].isinf().all()) and not bool(scores.isnan().any())
    for edge in range(edges.num_edges):
        assert scores[edges.column_edge == edge].unique().numel() == 1, "columns of one edge score differently"


def check_mask(data: Data, mask: torch.Tensor, sparsity: float | None = None, keep: int | None = None) -> None:
    """Exact budget, both arcs alike, self-loops untouched, duplicates together."""
    edges = EdgeSet.from_data(data)
    assert mask.dtype == torch.bool and mask.numel() == data.edge_index.shape[1]
    kept: dict[int, bool] = {}
    for edge, stays in zip(edges.column_edge.tolist(), mask.tolist(), strict=True):
        if edge < 0:
            assert stays, "a self-loop was removed"
        else:
            assert kept.setdefault(edge, stays) == stays, "columns of one edge parted"
    assert sum(kept.values()) == budget(edges.num_edges, sparsity, keep)


def check_graph_of(data: Data, sparse: Data, mask: torch.Tensor) -> None:
    """The sparse graph is the input without the removed columns, and nothing else."""
    assert torch.equal(sparse.edge_index, data.edge_index[:, mask])
    assert sparse.num_nodes == data.num_nodes
    for name in data.keys():  # noqa: SIM118 - Data iterates over pairs
        if name == "edge_index":
            continue
        expected = data[name][mask] if name.startswith("edge_") else data[name]
        same = expected == sparse[name]
        assert bool(same.all()) if isinstance(same, torch.Tensor) else same


def renamed(data: Data, seed: int = 1) -> Data:
    """The same graph with its nodes in another order, its columns in the old one."""
    order = torch.randperm(int(data.num_nodes), generator=torch.Generator().manual_seed(seed))
    other = data.clone()
    other.edge_index = order[data.edge_index]
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        if name in data:
            other[name] = torch.empty_like(data[name]).index_copy_(0, order, data[name])
    return other


def column_opinion(method: TopologySparsifier | LearnedSparsifier, data: Data) -> torch.Tensor:
    """What a method thinks of every column before it breaks ties or goes by its own earlier choices."""
    if isinstance(method, TopologySparsifier):
        return method.score(data)
    if not isinstance(method, IterativeSparsifier):
        return method.fit(data).scores_
    problem = Problem(data, backbone=method.backbone, cache=False, **method.settings)
    with seeded(0):
        scores = method.stage(problem, problem.edges, 0, {})[0]["scores"]
    return problem.edges.to_columns(scores.double(), torch.inf)


def same(a: LearnedSparsifier, b: LearnedSparsifier) -> bool:
    """Whether two fits agree to the last bit."""
    states = zip(a.model_.state_dict().values(), b.model_.state_dict().values(), strict=True)
    return (
        torch.equal(a.mask_, b.mask_)
        and torch.equal(a.scores_, b.scores_)
        and torch.equal(a.logits_, b.logits_)
        and a.history_ == b.history_
        and all(torch.equal(x, y) for x, y in states)
    )
