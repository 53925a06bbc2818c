"""On which graph does a fresh network train as well as on all edges? Search and training take turns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import make_search
from gst.nn.network import Network
from gst.sparse.csr import row_sum
from gst.train.task import Task

EXCHANGES = (0.5, 0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1)  # τ of each turn
NETWORKS = 2  # fresh ones in each turn
FLOOR = 1e-3  # agreement of ends that do not agree at all


@dataclass(frozen=True)
class Prior:
    """What is thought of edges before any search; only the labels of training nodes are read."""

    agreement: Tensor  # the semantic head
    flow: Tensor  # the topology head
    nodes: int

    @classmethod
    def of(cls, edges: EdgeSet, logits: Tensor, task: Task) -> "Prior":
        agreement = edge_agreement(edges, logits, task)
        return cls(agreement, label_flow(edges, agreement, task.train), edges.num_nodes)

    def worth(self, kept: int) -> Tensor:
        """w·a + 2·flow, in units of the divergence, with w = (N / 3k)⁵ between 0.1 and 4.

        The fewer of the edges are kept, the more it matters that their ends agree: 1 for a third of an edge a node.
        """
        weight = min(max((self.nodes / (3 * max(kept, 1))) ** 5, 0.1), 4.0)
        return weight * self.agreement + 2 * self.flow

    def first(self, edges: EdgeSet, kept: int) -> Tensor:
        """The edges to begin with."""
        return top_k(local_rank(edges, self.agreement), kept)


def turn(
    edges: EdgeSet,
    keep: Tensor,
    networks: Sequence[Network],
    logits: Tensor,
    target: Target,
    prior: Prior,
    ratio: float,
) -> Tensor:
    """Drops ⌊τ · min(kept, pruned)⌋ edges by the mean divergence of networks trained on the others; adds as many."""
    kept = int(keep.sum())
    count = math.floor(ratio * min(kept, edges.num_edges - kept))
    start = keep if count < kept else torch.zeros_like(keep)  # to drop all needs no search
    search = make_search(networks, edges, [logits] * len(networks), target, prior.worth(kept), start)
    search.drop(count if count < kept else 0)
    search.add(count)
    return torch.from_numpy(search.keep.copy()).to(keep.device)


def edge_agreement(edges: EdgeSet, logits: Tensor, task: Task) -> Tensor:
    """a_uv = P_u · P_v with P = softmax(Z^A / 0.3), the labels of training nodes in place of beliefs.

    Of several labels, the mean over them of the chance that both ends answer alike.
    """
    belief, u, v = logits.double() / 0.3, *edges.pairs
    belief = belief.sigmoid() if task.multilabel else belief.softmax(-1)
    labels = task.y[task.train]
    belief[task.train] = (labels if task.multilabel else torch.nn.functional.one_hot(labels, logits.shape[1])).to(
        belief
    )
    agreement = belief.new_zeros(edges.num_edges)
    for chance in belief.unbind(1):  # a column at a time: nothing E × C
        agreement += chance[u] * chance[v]
        if task.multilabel:
            agreement += (1 - chance[u]) * (1 - chance[v])
    return agreement / belief.shape[1] if task.multilabel else agreement


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
