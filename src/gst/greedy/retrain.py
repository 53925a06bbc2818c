"""On which graph does a fresh network train as well as on all edges? Search and training take turns."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from gst.graph import EdgeSet
from gst.greedy.engine import Search
from gst.nn.csr import row_sum
from gst.nn.network import NativeNetwork
from gst.select import top_k

EXCHANGES = (1.0, 0.5, 0.3, 0.2, 0.1)  # τ of each turn
TEMPERATURE = 0.15
FLOOR = 1e-3  # agreement of ends that do not agree at all
Train = Callable[[EdgeSet, int], NativeNetwork]


def retrain(edges: EdgeSet, logits: Tensor, y: Tensor, labelled: Tensor, kept: int, train: Train) -> Tensor:
    """The ``kept`` edges found by five turns: two fresh networks, then a smaller exchange by their mean divergence.

    Args:
        edges: all edges.
        logits: Z^A of a network trained on all edges.
        y: the labels; only those of ``labelled``, the training nodes, are read.
        kept: number of edges to keep.
        train: trains a fresh network on some edges; its second argument numbers the networks, from 0 on.
    """
    agreement = edge_agreement(edges, logits, y, labelled)
    prior = 0.5 * agreement + 2 * label_flow(edges, agreement, labelled)
    keep = top_k(local_rank(edges, agreement), kept)
    for turn, ratio in enumerate(EXCHANGES):
        sparse = edges.subset(keep)
        networks = [train(sparse, 2 * turn + k) for k in range(2)]
        count = math.floor(ratio * min(kept, edges.num_edges - kept))
        start = keep if count < kept else torch.zeros_like(keep)  # to drop all needs no search
        search = Search(networks, edges, [logits] * 2, TEMPERATURE, prior, start)
        search.drop(count if count < kept else 0)
        search.add(count)
        keep = torch.from_numpy(search.keep.copy()).to(keep.device)
    return keep


def edge_agreement(edges: EdgeSet, logits: Tensor, y: Tensor, labelled: Tensor) -> Tensor:
    """a_uv = P_u · P_v with P = softmax(Z^A / 0.3), the labels of training nodes in place of beliefs."""
    belief = (logits.double() / 0.3).softmax(-1)
    belief[labelled] = torch.nn.functional.one_hot(y[labelled], logits.shape[1]).to(belief)
    u, v = edges.pairs
    return torch.stack([belief[u, c] * belief[v, c] for c in range(belief.shape[1])]).sum(0)


def label_flow(edges: EdgeSet, agreement: Tensor, labelled: Tensor) -> Tensor:
    """How much of what starts at labelled nodes passes an edge: x ← 0.3·1_train + 0.7·Wᵀ(x / d), 20 times."""
    weight = agreement + FLOOR
    pattern, along = edges.arc_pattern, weight[edges.arc_edge]
    outflow = weight.new_zeros(edges.num_nodes).index_add(0, edges.arcs[0], along).clamp(min=FLOOR)
    source = torch.zeros_like(outflow)
    source[labelled] = 1.0
    x = source
    for _ in range(20):
        x = 0.3 * source + 0.7 * row_sum(pattern, along * (x / outflow)[pattern.col])
    u, v = edges.pairs
    flow = (x[u] / outflow[u] + x[v] / outflow[v]) * weight
    return flow / flow.max()


def local_rank(edges: EdgeSet, agreement: Tensor) -> Tensor:
    """Every node keeps its best: max over both ends of 1 − ln rank / ln degree, ties by agreement."""
    ends = edges.pairs.flatten()
    edge = torch.arange(edges.num_edges, device=ends.device).repeat(2)
    order = torch.sort(agreement[edge], descending=True, stable=True).indices
    order = order[torch.sort(ends[order], stable=True).indices]
    first = edges.degree.cumsum(0) - edges.degree
    rank = torch.empty_like(ends)
    rank[order] = torch.arange(ends.numel(), device=ends.device) - first[ends[order]] + 1
    degree = edges.degree[ends].double()
    score = torch.where(degree > 1, 1 - rank.double().log() / degree.log().clamp(min=FLOOR), 1.0)
    return score.view(2, -1).amax(0) + 1e-6 * agreement
