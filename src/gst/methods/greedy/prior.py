"""On which graph does a fresh network train as well as on all edges? Exchanges of edges, guided by a prior.

Training and search alternate: fresh networks train on the kept edges, then the search drops the edges that these
networks need least and adds those they need most, by δ = ΔD ∓ prior. The prior, which needs no trained network, rewards
edges whose ends agree and edges through which much flows from labelled nodes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import make_search
from gst.nn.network import Network
from gst.sparse.csr import row_sum
from gst.train.links import LinkTask
from gst.train.task import Task

EXCHANGES = (0.5, 0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1)  # τ, the share of edges exchanged in each turn
NETWORKS_PER_TURN = 2  # fresh networks per turn
FLOOR = 1e-3  # least agreement in the label flow, least divisor


@dataclass(frozen=True)
class Prior:
    """What each edge is worth before any search; only the labels of training nodes are read."""

    agreement: Tensor  # see edge_agreement
    flow: Tensor  # see label_flow
    nodes: int

    @classmethod
    def of(cls, edges: EdgeSet, logits: Tensor, task: Task) -> "Prior":
        if isinstance(task, LinkTask):
            agreement, known = link_agreement(edges, logits, task), task.pairs.ends[:, task.train].unique()
        else:
            agreement, known = edge_agreement(edges, logits, task), task.train
        return cls(agreement, label_flow(edges, agreement, known), edges.num_nodes)

    def bonus(self, num_kept: int) -> Tensor:
        """w·a + 2·flow of every edge, in units of the divergence, with w = (N / 3k)⁵ between 0.1 and 4.

        The fewer edges are kept, the more it matters that their ends agree: w = 1 at a third of an edge per node.
        """
        weight = min(max((self.nodes / (3 * max(num_kept, 1))) ** 5, 0.1), 4.0)
        return weight * self.agreement + 2 * self.flow

    def start_scores(self, edges: EdgeSet) -> Tensor:
        """The edges to start from have the highest."""
        return local_rank(edges, self.agreement)


def exchange_edges(
    edges: EdgeSet,
    keep_mask: Tensor,
    networks: Sequence[Network],
    logits: Tensor,
    target: Target,
    prior: Prior,
    ratio: float,
    room: Tensor | None = None,
) -> Tensor:
    """Exchanges ⌊τ · min(kept, pruned)⌋ edges, by the divergence of networks trained on the kept ones; the new mask."""
    num_kept = int(keep_mask.sum())
    count = math.floor(ratio * min(num_kept, edges.num_edges - num_kept))
    drops_all = count >= num_kept  # which needs no search
    start = torch.zeros_like(keep_mask) if drops_all else keep_mask
    bonus = prior.bonus(num_kept)
    search = make_search(networks, edges, [logits] * len(networks), target, bonus, start, room=room)
    search.drop(0 if drops_all else count)
    search.add(count)
    return torch.from_numpy(search.keep_mask.copy()).to(keep_mask.device)


def edge_agreement(edges: EdgeSet, logits: Tensor, task: Task) -> Tensor:
    """a_uv = P_u · P_v with P = softmax(Z^A / 0.3), and one-hot labels instead at training nodes.

    For several labels, the mean over them of the probability that both ends give the same answer.
    """
    scaled = logits.double() / 0.3
    probability = scaled.sigmoid() if task.multilabel else scaled.softmax(-1)
    labels = task.y[task.train]
    known = labels if task.multilabel else torch.nn.functional.one_hot(labels, logits.shape[1])
    probability[task.train] = known.to(probability)
    agreement = probability.new_zeros(edges.num_edges)
    u, v = edges.pairs
    for column in probability.unbind(1):  # one class at a time avoids an array E × C
        agreement += column[u] * column[v]
        if task.multilabel:
            agreement += (1 - column[u]) * (1 - column[v])
    return agreement / probability.shape[1] if task.multilabel else agreement


def link_agreement(edges: EdgeSet, logits: Tensor, task: LinkTask) -> Tensor:
    """How likely the links of an edge's two ends are, by the scores of the training pairs at them."""
    ends = task.pairs.ends[:, task.train]
    probability = logits[task.train, 0].double().sigmoid().repeat(2)
    total = probability.new_zeros(edges.num_nodes).index_add(0, ends.flatten(), probability)
    count = torch.bincount(ends.flatten(), minlength=edges.num_nodes).clamp(min=1)
    u, v = edges.pairs
    return (total / count)[u] * (total / count)[v]


def label_flow(edges: EdgeSet, agreement: Tensor, labelled: Tensor) -> Tensor:
    """The flow over each edge of walks that restart at labelled nodes: x ← 0.3·1_train + 0.7·Wᵀ(x / d), 20 times.

    W is the agreement of the edges, d its row sums. The largest flow is 1.
    """
    weight = agreement + FLOOR
    pattern, arc_weight = edges.arc_pattern, weight[edges.arc_edge]
    degree = weight.new_zeros(edges.num_nodes).index_add(0, edges.arcs[0], arc_weight).clamp(min=FLOOR)
    source = torch.zeros_like(degree)
    source[labelled] = 1.0
    x = source
    for _ in range(20):
        x = 0.3 * source + 0.7 * row_sum(pattern, arc_weight * (x / degree)[pattern.col])
    u, v = edges.pairs
    flow = (x[u] / degree[u] + x[v] / degree[v]) * weight
    return flow / flow.max()


def local_rank(edges: EdgeSet, agreement: Tensor) -> Tensor:
    """Scores by which every node keeps its best edges: max over both ends of 1 − ln rank / ln degree.

    A node ranks its edges by agreement; agreement, times 1e-6, also breaks ties.
    """
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
