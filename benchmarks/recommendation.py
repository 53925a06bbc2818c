"""LightGCN on Gowalla, dense and on sparse message graphs; prints JSON. Training goes on from --state if it is there.

python benchmarks/recommendation.py --state lightgcn.pt > recommendation.json
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import gst
from gst.data.gowalla import Recommendation, load_gowalla
from gst.methods.recommender import RecommenderPath, with_arcs
from gst.nn.lightgcn import LightGCN, Propagation
from gst.nn.recommend import recommendation_metrics
from gst.train.bpr import BPRState, bpr_steps

STAGES: tuple[dict[str, Any], ...] = (  # steps in all, steps of falling rate at the end, positives drawn by user
    {"steps": 4000, "warm_down": 1000, "by_user": False},
    {"steps": 4700, "warm_down": 350, "by_user": True},
)
SHARED: dict[str, Any] = {"batch": 200_000, "lr": 0.01, "penalty": 1e-4, "seed": 0}
PUBLISHED = {"recall@20": 0.1830, "ndcg@20": 0.1554}
SPARSITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
TOLERANCE = 0.01  # relative, of recall@20


def train(data: Recommendation, state_file: Path) -> LightGCN:
    """The dense model, from the state of an earlier call where there is one."""
    seen = data.seen
    nodes = seen.num_users + seen.num_items
    if state_file.exists():
        state = BPRState(**torch.load(state_file))
    else:
        state = BPRState.of(torch.randn(nodes, 64, generator=torch.Generator().manual_seed(0)) * 0.1)
    propagate = Propagation.of(seen.edge_index, nodes, layers=3)
    for stage in STAGES:
        for step in bpr_steps(state, propagate, seen, **SHARED, **stage):
            if step % 50 == 0:
                print("step", step, round(sum(state.losses[-50:]) / 50, 5), file=sys.stderr, flush=True)
                torch.save(
                    {"embedding": state.embedding, "mean": state.mean, "square": state.square, "step": step}, state_file
                )
    model = LightGCN(nodes)
    model.embedding.data = state.embedding
    return model


def rankers(data: Recommendation, model: LightGCN) -> dict[str, Callable[[float], Tensor]]:
    """By name: the mask of the columns that stay at a sparsity."""
    edge_index = data.seen.edge_index
    arcs, pairs = edge_index.shape[1], edge_index.shape[1] // 2
    degree = torch.bincount(edge_index[1], minlength=model.embedding.shape[0]).double()
    paths: list[RecommenderPath] = []  # made when it is first asked for

    def deployed(sparsity: float) -> Tensor:
        if not paths:
            paths.append(RecommenderPath(model, data.seen))
        return paths[0].sparse(sparsity).edge_mask

    draw = torch.rand(arcs, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    target = edge_index[1]
    order = torch.argsort(draw)
    order = order[torch.argsort(target[order], stable=True)]
    rank = torch.empty(arcs, dtype=torch.long)
    rank[order] = torch.arange(arcs) - (degree.long().cumsum(0) - degree.long())[target[order]]
    graph = gst.EdgeSet.from_edge_index(edge_index, model.embedding.shape[0])

    def top(scores: Tensor, sparsity: float) -> Tensor:
        mask = torch.zeros(scores.numel(), dtype=torch.bool)
        mask[scores.argsort(descending=True, stable=True)[: scores.numel() - round(sparsity * scores.numel())]] = True
        return mask

    def of_pairs(scores: Tensor) -> Callable[[float], Tensor]:
        return lambda sparsity: top(scores, sparsity).repeat(2)

    ends = degree[edge_index[:, :pairs]]
    dspar = gst.DSpar(sparsity=0.5).edge_scores(graph)[graph.column_edge[:pairs]]
    return {
        "deploy": deployed,
        "random arcs": lambda sparsity: top(draw, sparsity),
        "random pairs": of_pairs(draw[:pairs]),
        "k-neighbor": lambda sparsity: top(-rank.double() - 1e-9 * draw, sparsity),
        "dspar": of_pairs(dspar),
        "low degree": of_pairs(-(ends[0] * ends[1])),
        "high degree": of_pairs(ends[0] * ends[1]),
    }


def measured(data: Recommendation, model: LightGCN, mask: Tensor, balanced: bool) -> dict[str, float]:
    embeddings = with_arcs(model, data.seen.edge_index, mask, balanced).embeddings()
    return recommendation_metrics(embeddings, data.seen, data.test)


def rows(data: Recommendation, model: LightGCN, methods: list[str] | None) -> Iterator[dict]:
    everything = torch.ones(data.seen.edge_index.shape[1], dtype=torch.bool)
    dense = measured(data, model, everything, balanced=False)
    yield {"method": "dense", "sparsity": 0.0, **dense}
    for name, mask_at in rankers(data, model).items():
        if methods and name not in methods:
            continue
        for balanced in (True, False):
            for sparsity in SPARSITIES:
                row = measured(data, model, mask_at(sparsity), balanced)
                yield {"method": name, "balanced": balanced, "sparsity": sparsity, **row}
                if row["recall@20"] < 0.985 * dense["recall@20"]:
                    break


def largest(rows: list[dict]) -> dict[str, float]:
    """The sparsity at which each method has lost 1 % of the recall, interpolated between the two rows around it."""
    wanted = (1 - TOLERANCE) * rows[0]["recall@20"]
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows[1:]:
        name = row["method"] + (", weights d / k" if row["balanced"] else "")
        curves.setdefault(name, [(0.0, rows[0]["recall@20"])]).append((row["sparsity"], row["recall@20"]))
    found = {}
    for name, curve in curves.items():
        for (before, high), (after, low) in pairwise(curve):
            if low < wanted:
                found[name] = round(before + (high - wanted) / (high - low) * (after - before), 3)
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--methods", nargs="+")
    options = parser.parse_args()
    data, start = load_gowalla(), time.process_time()
    model = train(data, options.state)
    trained = time.process_time() - start
    found = []
    for row in rows(data, model, options.methods):
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, file=sys.stderr, flush=True)
        found.append(row)
    facts = {"published": PUBLISHED, "stages": STAGES, **SHARED, "cpu seconds of this call's training": trained}
    print(json.dumps({"facts": facts, "largest within 1 %": largest(found), "runs": found}, indent=1))


if __name__ == "__main__":
    main()
