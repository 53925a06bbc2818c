"""Why an edge is kept or removed: its place in the method's order, and what would change with it."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.graph.edgeset import EdgeSet
from gst.inference.serving import Decisions
from gst.methods.greedy.divergence import Target
from gst.train.models import build_network
from gst.train.settings import Training


@dataclass(frozen=True)
class Turn:
    """A node whose answer turns; an answer is a class, or of several labels those that are given."""

    node: int
    now: Any  # on the sparse graph
    then: Any  # with the edge removed or returned
    dense: Any  # on all edges


@dataclass(frozen=True)
class Why:
    """The case of one edge.

    Attributes:
        u: source of the arc, or one end of the pair.
        v: target, or the other end.
        by: ``"arcs"`` or ``"pairs"``: what the method decided about.
        kept: whether it is in the sparse graph.
        rank: its place by the method's score, from 1; of equal scores all have the first place.
        tied: how many edges have this score, itself included; edges that a search never came to share the last place.
        num_kept: edges in the sparse graph.
        num_edges: edges in the dense graph.
        score: what the method gave it.
        divergence: D_T of the sparse graph's answers from those on all edges, summed over all nodes.
        change: of D_T, if the edge were removed (kept) or returned (removed).
        affected: nodes whose outputs that changes at all.
        turns: nodes whose answers it turns.
    """

    u: int
    v: int
    by: str
    kept: bool
    rank: int
    tied: int
    num_kept: int
    num_edges: int
    score: float
    divergence: float
    change: float
    affected: int
    turns: tuple[Turn, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@plain_torch()
@torch.no_grad()
def why(model: nn.Module, data: Data, decisions: Decisions, training: Training, u: int, v: int) -> Why:
    """See :meth:`gst.Result.why`; ``data``: the dense graph."""
    edges, kept, scores = decisions.edges, decisions.keep_mask, decisions.scores
    edge = find_edge(edges, u, v)
    network = build_network(model, "gcn", data, None, training.model_copy(update={"device": "cpu"}))
    network.module.eval()
    other = kept.clone()
    other[edge] = ~other[edge]
    dense, now, then = (network.logits(part) for part in (edges, edges.subset(kept), edges.subset(other)))
    target = Target.of(dense, decisions.multilabel)
    before, after = (target.loss(dense, logits) for logits in (now, then))
    answers = [_answers(logits, decisions.multilabel) for logits in (now, then, dense)]
    turned = (answers[0] != answers[1]).any(-1).nonzero().flatten().tolist()
    score = scores[edge]
    return Why(
        u=u,
        v=v,
        by="arcs" if edges.directed else "pairs",
        kept=bool(kept[edge]),
        rank=1 + int((scores > score).sum()),
        tied=int((scores == score).sum()),
        num_kept=int(kept.sum()),
        num_edges=edges.num_edges,
        score=float(score),
        divergence=float(before.double().sum()),
        change=float((after.double() - before.double()).sum()),
        affected=int((now != then).any(-1).sum()),
        turns=tuple(Turn(node, *(_shown(each[node], decisions.multilabel) for each in answers)) for node in turned),
    )


def find_edge(edges: EdgeSet, u: int, v: int) -> int:
    """The number of the edge from u to v, or between them."""
    for node in (u, v):
        if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < edges.num_nodes:
            raise InputError(f"node {node!r} is not in the graph: its nodes are 0 … {edges.num_nodes - 1}")
    if u == v:
        raise InputError(f"{u}–{v} is a self-loop: those always stay")
    ends = (u, v) if edges.directed else (min(u, v), max(u, v))
    found = ((edges.pairs[0] == ends[0]) & (edges.pairs[1] == ends[1])).nonzero().flatten()
    if not found.numel():
        line = f"{u} → {v}" if edges.directed else f"{u}–{v}"
        back = " (the other direction is there)" if edges.directed and _has(edges, v, u) else ""
        raise InputError(f"the dense graph has no edge {line}{back}")
    return int(found[0])


def _has(edges: EdgeSet, u: int, v: int) -> bool:
    return bool(((edges.pairs[0] == u) & (edges.pairs[1] == v)).any())


def _answers(logits: Tensor, multilabel: bool) -> Tensor:
    """[N, 1] classes, or [N, C] labels."""
    if multilabel or logits.shape[1] == 1:
        return (logits > 0).long()
    return logits.argmax(-1, keepdim=True)


def _shown(answer: Tensor, multilabel: bool) -> Any:
    return answer.nonzero().flatten().tolist() if multilabel else int(answer[0])
