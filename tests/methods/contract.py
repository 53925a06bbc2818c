"""Every method in a quick form, and what else the tests of methods share; the tester itself is gst.testing."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data

from gst import EdgeSet
from gst.base.randomness import seeded
from gst.methods import METHODS as REGISTRY
from gst.methods import (
    DSpar,
    EffectiveResistance,
    ImportanceScores,
    KNeighbor,
    LearnedSparsifier,
    LocalSimilarity,
    Random,
    TopologySparsifier,
)
from gst.methods.iterative import IterativeSparsifier

# a learned method is the same code at any size: one short epoch of a narrow network shows what the contract is about
NARROW = {"hidden": 4, "heads": 2, "anchor_epochs": 1, "sparse_epochs": 2, "cache": False}
ROUNDS = {"prune_ratio": 0.4}
QUICK: dict[str, dict[str, Any]] = {
    "deploy": {},
    "attribution": {"steps": 2},
    "neural-sparse": {},
    "retrain": {},
    "ugs": {"round_epochs": 1, **ROUNDS},
    "wd-glt": {"round_epochs": 1, "sample_size": 8, **ROUNDS},
    "mgspar": {"inner_steps": 1, "meta_epochs": 1, **ROUNDS},
    **{name: {"interval": 1} for name in ("gst", "snip", "set", "snfs", "rigl", "mest")},
}
BACKBONE_OF = {"ugs": "gin", "wd-glt": "sage", "mgspar": "cluster-gcn"}  # the tests of each method try all of them


def _learned(name: str, **more: Any) -> Callable[..., LearnedSparsifier]:
    return partial(REGISTRY[name], **{**NARROW, **QUICK[name], **more})


def _lengths(**given: Any) -> TopologySparsifier:
    """Scores that the user brings: a function of the graph that no two edges share."""

    class Brought(TopologySparsifier):  # no dataclass of its own: it has no arguments of its own
        def edge_scores(self, edges: EdgeSet) -> torch.Tensor:
            return ImportanceScores(torch.arange(edges.num_edges).flip(0), keep=1).edge_scores(edges)

    return Brought(**{**NARROW, **given})


TOPOLOGY: dict[str, Callable[..., TopologySparsifier]] = {
    **{name: partial(method, **NARROW) for name, method in REGISTRY.items() if method.kind == "topology"},
    "dspar-highest": partial(DSpar, sample=False, **NARROW),
    "resistance-exact": partial(EffectiveResistance, projections=None, **NARROW),
    "resistance-highest": partial(EffectiveResistance, projections=None, sample=False, **NARROW),
    "importance": _lengths,
}
LEARNED: dict[str, Callable[..., LearnedSparsifier]] = {
    **{name: _learned(name) for name, method in REGISTRY.items() if method.kind == "learned"},
    **{f"{name}-{backbone}": _learned(name, backbone=backbone) for name, backbone in BACKBONE_OF.items()},
    "gst-gin": _learned("gst", backbone="gin", matrix="adjacency", eigenpairs=3),
    "gst-gat": _learned("gst", backbone="gat", matrix="normalised", eigenpairs=3),
    "deploy-gat": _learned("deploy", backbone="gat"),
    "retrain-sage": _learned("retrain", backbone="sage"),
    "ugs-tickets": _learned("ugs", backbone="gat", weight_prune_ratio=0.2),
}
METHODS: dict[str, Callable[..., Any]] = {**TOPOLOGY, **LEARNED}
# scores that are a function of the graph alone, with no draw that goes by edge id and no rank that goes by node id
DRAWN = (Random, KNeighbor, DSpar, EffectiveResistance, LocalSimilarity)


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
        return method.fit(data).result_.scores
    run = method.run(data)
    with seeded(0):
        scores = method.stage(run, run.edges, 0, {})[0]["scores"]
    return run.edges.to_columns(scores.double(), torch.inf)


def same(a: LearnedSparsifier, b: LearnedSparsifier) -> bool:
    """Whether two fits agree to the last bit."""
    states = zip(a.result_.model.state_dict().values(), b.result_.model.state_dict().values(), strict=True)
    return (
        torch.equal(a.result_.edge_mask, b.result_.edge_mask)
        and torch.equal(a.result_.scores, b.result_.scores)
        and torch.equal(a.found_.logits, b.found_.logits)
        and a.found_.history == b.found_.history
        and all(torch.equal(x, y) for x, y in states)
    )
