"""Greedy search on typed graphs, for models of which nothing but the reach of a change is known.

Only the scores of the target's nodes count, and messages go one way: what a model of L layers reads of an arc u → v are
the targets within L − 1 hops of v, along arcs that still lead to a target. So even the edges of hubs reach few
targets, and many trials share one forward pass exactly.

The search goes in rounds. Each takes the best edges by the gradient of the divergence, at a temperature as large as the
margin between answers: many small rounds did better than few with exact trials. Where a model has no gated edges, the
most promising ones are tried.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.graph.typed import TypedEdges
from gst.methods.greedy.divergence import SHARPNESS, Target
from gst.nn.network import Network
from gst.nn.own_model import layers_of
from gst.nn.typed_model import target_rows, typed_call
from gst.nn.typed_network import TypedNative, TypedOwn

ROUND_SHARE = 0.02  # edges that a round takes, as a share of the kept edges plus a twentieth of all
WITHOUT_GATES = 0.1  # the same share where every round takes trials
BREADTH = 2  # candidates tried per edge that a round takes
PASSES = 12  # forward passes for trials in a round
SOFT = 1.0  # temperature in units of the margin, against SHARPNESS of a search by exact trials
WIDEST = 4096  # nodes that the reach of a trial may have
PROBES = 6  # targets, or edges, at which the reach of a model is measured
DEEPEST = 6  # hops; further ones, as with attention over whole relations, are cut off here


class TypedSearch:
    """Adds edges in rounds, by the mean divergence of networks on a typed graph."""

    def __init__(
        self,
        networks: Sequence[Network],
        edges: TypedEdges,
        wanted: list[Tensor],
        target: Target,
        prior: Tensor | None = None,
        keep_mask: Tensor | None = None,
    ) -> None:
        self.networks, self.edges, self.wanted = networks, edges, wanted
        self.target = replace(target, temperature=target.temperature * SOFT / SHARPNESS)
        self.gated = all(not network.gates for network in networks)  # type: ignore[attr-defined]
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep_mask = np.zeros(edges.num_edges, bool) if keep_mask is None else keep_mask.cpu().numpy().copy()
        self.relation = edges.edge_relation.cpu().numpy()
        self.value = np.full(edges.num_edges, np.inf)  # δ at the last exact trial, where there are no gates
        self.graph = Graph.of(edges)
        degree = edges.degree.cpu()
        u, v = edges.pairs.cpu()
        self.low_end = torch.where(degree[u] <= degree[v], u, v).numpy()
        self.hops = 0 if self.gated else max(reach_of(network, edges) for network in networks)
        self.loss = self._loss(self.keep_mask)

    def advance(self, count: int) -> Tensor:
        """Adds at least ``count`` edges in whole rounds, so that a path does not depend on where it was interrupted."""
        order = [np.zeros(0, np.int64)]
        while count > 0:
            taken = self._round()
            order.append(taken)
            count -= taken.size
        return torch.from_numpy(np.concatenate(order))

    def divergence(self) -> float:
        """D_T of the kept edges, mean over the networks."""
        return float(self.loss.sum())

    def memory(self) -> dict[str, Tensor]:
        """What a later search needs to resume, besides the edges in their order."""
        return {} if self.gated else {"value": torch.from_numpy(self.value.copy())}

    def resume(self, order: Tensor, memory: dict[str, Tensor], down: bool = False) -> None:
        """Continues an earlier search."""
        self.keep_mask[order.cpu().numpy()] = True
        if "value" in memory:
            self.value = memory["value"].cpu().numpy().copy()
        self.loss = self._loss(self.keep_mask)

    @torch.no_grad()
    def _loss(self, keep_mask: np.ndarray) -> np.ndarray:
        """D of each target, mean over the networks."""
        sparse = self.edges.subset(torch.from_numpy(keep_mask).to(self.edges.pairs.device))
        losses = [self.target.loss(w, n.logits(sparse)) for n, w in zip(self.networks, self.wanted, strict=True)]
        return torch.stack(losses).double().mean(0).cpu().numpy()

    def _gradient(self) -> np.ndarray:
        gate = torch.from_numpy(self.keep_mask).to(self.edges.loops).requires_grad_()
        losses = [
            self.target.loss(w, n.logits(self.edges, gate)).sum()
            for n, w in zip(self.networks, self.wanted, strict=True)
        ]
        return torch.autograd.grad(torch.stack(losses).mean(), gate)[0].double().cpu().numpy()

    def _round(self) -> np.ndarray:
        room = self._room()
        is_candidate = ~self.keep_mask & (room[self.relation] > 0)
        num_kept, total = int(self.keep_mask.sum()), self.keep_mask.size
        share = ROUND_SHARE if self.gated else WITHOUT_GATES
        size = max(1, min(int(share * (num_kept + total / 20)), int(is_candidate.sum())))
        if self.gated:
            value = self._gradient() - self.prior
        else:  # never tried: before all that do harm, by id
            value = np.where(np.isinf(self.value), 0.0, self.value) - self.prior
        value[~is_candidate] = np.inf
        shortlist = np.argsort(value, kind="stable")[: min(BREADTH * size, int(is_candidate.sum()))]
        if not self.gated:
            shortlist = np.union1d(shortlist, np.flatnonzero(np.isinf(self.value) & is_candidate))
            self._try(shortlist, value)
        ranked = shortlist[np.lexsort((shortlist, value[shortlist]))]  # ties by id
        taken = within(ranked, size, self.low_end, self.relation, room, 1 + size // 500)
        self.keep_mask[taken] = True
        self.loss = self._loss(self.keep_mask)
        return taken

    def _room(self) -> np.ndarray:
        """How many more edges of each relation may stay."""
        count = len(self.edges.schema.relations)
        if self.edges.quota is None:
            return np.full(count, self.keep_mask.size)
        return np.array(self.edges.quota) - np.bincount(self.relation[self.keep_mask], minlength=count)

    def _try(self, candidates: np.ndarray, value: np.ndarray) -> None:
        """Puts exact δ in the place of older ones, as far as a few forward passes go."""
        candidates = candidates[np.argsort(value[candidates], kind="stable")]
        for _ in range(PASSES):
            owner, state = pack(candidates, *self.graph, self.keep_mask, self.hops, WIDEST)
            tried = np.flatnonzero(state == 1)
            if tried.size == 0:
                break
            keep_mask = self.keep_mask.copy()
            keep_mask[candidates[tried]] = True
            change = self._loss(keep_mask) - self.loss
            owner = owner[: change.size]
            owned = owner >= 0
            found = np.bincount(owner[owned], change[owned], candidates.size)[tried] - self.prior[candidates[tried]]
            value[candidates[tried]] = found
            self.value[candidates[tried]] = found
            candidates = candidates[state == 0]


class Graph(NamedTuple):
    """The arcs of a typed graph by source, and where a change of an edge begins."""

    start: np.ndarray  # where the arcs out of each node begin
    head: np.ndarray  # the target of each arc
    edge: np.ndarray  # its edge; −1: one that stays
    distance: np.ndarray  # of each node, by its type: hops to the nearest type of targets
    heads: np.ndarray  # [E, 2] the nodes that an edge sends messages to; −1: none
    pairs: np.ndarray  # [2, E] its ends

    @classmethod
    def of(cls, edges: TypedEdges) -> "Graph":
        schema, columns = edges.schema, edges.columns.cpu()
        source, target = edges.union[:, columns]
        edge, pairs = edges.column_edge.cpu(), edges.pairs.cpu()
        order = torch.sort(source, stable=True).indices
        start = torch.cat(
            [torch.zeros(1, dtype=torch.long), torch.bincount(source, minlength=edges.num_nodes).cumsum(0)]
        )
        heads = torch.full((edges.num_edges, 2), -1)
        real = edge >= 0
        for side in range(2):
            ends = pairs[side][edge[real]]
            hit = target[real] == ends
            heads[edge[real][hit], side] = ends[hit]
        hops = {schema.target: 0}
        for _ in schema.node_types:
            for kind in schema.edge_types:
                if kind[2] in hops:
                    hops[kind[0]] = min(hops.get(kind[0], edges.num_nodes), hops[kind[2]] + 1)
        by_type = torch.tensor([hops.get(name, edges.num_nodes) for name in schema.node_types])
        distance = by_type.repeat_interleave(torch.tensor(schema.num_nodes))
        parts = (start, target[order], edge[order], distance, heads, pairs)
        return cls(*(part.numpy() for part in parts))


def reach_of(network: Network, edges: TypedEdges) -> int:
    """How many hops a change of an arc u → v travels on from v; more than :data:`DEEPEST` if it reaches everything."""
    if isinstance(network, TypedNative):
        return len(network.module.layers) - 1
    assert isinstance(network, TypedOwn)
    schema = edges.schema
    number, probes = schema.num_nodes[0], min(PROBES, schema.num_nodes[0])
    hops = 0
    for probe in torch.linspace(0, number - 1, probes).long().tolist():
        from_here = _hops_to(probe, edges)
        touched = _edges_read(network, edges, probe) if not network.gates else _nodes_read(network, edges, probe)
        if touched.numel() == 0:  # no features to tell by
            hops = max(hops, min(len(layers_of(network.module)), DEEPEST))
        else:
            hops = max(hops, int(from_here[touched].amin(-1).max() if touched.dim() == 2 else from_here[touched].max()))
    return hops


def _hops_to(probe: int, edges: TypedEdges) -> Tensor:
    """Of every node (and, last, of none): how many hops it is away from a target, along the arcs."""
    source, target = edges.union[:, edges.columns.cpu()]
    hops = torch.full((edges.num_nodes + 1,), DEEPEST + 1)
    hops[probe] = 0
    for step in range(1, DEEPEST + 1):
        reached = source[hops[target] == step - 1]
        hops[reached] = hops[reached].clamp(max=step)
    return hops


def _edges_read(network: TypedOwn, edges: TypedEdges, probe: int) -> Tensor:
    """[edges, 2] the nodes that the edges that a target's scores depend on send messages to."""
    gate = torch.ones_like(edges.edge_weight).requires_grad_()
    logits = network.logits(edges, gate)[probe]
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(probe)).to(logits)
    slope = torch.autograd.grad((logits * weights).sum(), gate)[0].cpu()
    return torch.from_numpy(Graph.of(edges).heads)[slope != 0]


def _nodes_read(network: TypedOwn, edges: TypedEdges, probe: int) -> Tensor:
    """The nodes whose features a target's scores depend on."""
    schema, graph = edges.schema, network.data.clone()
    given = [name for name in schema.node_types if "x" in graph[name]]
    for name in given:
        graph[name].x = graph[name].x.requires_grad_()
    with torch.enable_grad():
        logits = target_rows(typed_call(network.module, graph)(network.module), graph, schema, network.module)[probe]
        slopes = torch.autograd.grad(logits.sum(), [graph[name].x for name in given], allow_unused=True)
    found = [
        slope.abs().sum(1).nonzero().flatten().cpu() + schema.offset[name]
        for name, slope in zip(given, slopes, strict=True)
        if slope is not None
    ]
    return torch.cat(found) if found else torch.zeros(0, dtype=torch.long)


@njit(cache=True)
def pack(
    candidates: np.ndarray,
    start: np.ndarray,
    head: np.ndarray,
    edge: np.ndarray,
    distance: np.ndarray,
    heads: np.ndarray,
    pairs: np.ndarray,
    keep_mask: np.ndarray,
    hops: int,
    widest: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Packs candidates that reach different targets, first come, first served.

    Returns for every node the index of the candidate that reaches it (−1: none), and of each candidate whether it is
    packed (1), is left for another pass (0) or reaches more than ``widest`` nodes (2).
    """
    size = start.size - 1
    owner, state = np.full(size, -1), np.zeros(candidates.size, np.int8)
    reached, is_tail = np.zeros(size, np.bool_), np.zeros(size, np.bool_)  # by, and of, those packed
    tails = np.empty(2, np.int64)
    is_listed, nodes = np.zeros(size, np.bool_), np.empty(size, np.int64)
    for k in range(candidates.size):
        count, free = 0, True
        tails[:] = -1
        for side in range(2):
            node = heads[candidates[k], side]
            if node >= 0 and not is_listed[node] and distance[node] <= hops:
                is_listed[node] = True
                nodes[count] = node
                count += 1
                tails[side] = pairs[1 - side, candidates[k]]
                free = free and not reached[tails[side]]  # or another's change would come along this edge
        begin, step = 0, 0
        while step < hops and begin < count <= widest:
            end = count
            for i in range(begin, end):
                for arc in range(start[nodes[i]], start[nodes[i] + 1]):
                    node = head[arc]
                    stays = edge[arc] < 0 or keep_mask[edge[arc]]
                    if stays and not is_listed[node] and distance[node] <= hops - step - 1:
                        is_listed[node] = True
                        nodes[count] = node
                        count += 1
            begin = end
            step += 1
        for i in range(count):
            is_listed[nodes[i]] = False
            free = free and not is_tail[nodes[i]] and (distance[nodes[i]] > 0 or owner[nodes[i]] < 0)
        if count > widest:
            state[k] = 2
        elif free:
            state[k] = 1
            for side in range(2):
                if tails[side] >= 0:
                    is_tail[tails[side]] = True
            for i in range(count):
                reached[nodes[i]] = True
                if distance[nodes[i]] == 0:
                    owner[nodes[i]] = k
    return owner, state


@njit(cache=True)
def within(
    ranked: np.ndarray, size: int, low_end: np.ndarray, relation: np.ndarray, room: np.ndarray, most: int
) -> np.ndarray:
    """The first of the ranked edges, at most ``size``: ``most`` at a node, and no more of a relation than have room."""
    taken, count = np.empty(size, np.int64), 0
    used, left = np.zeros(low_end.max() + 1, np.int64), room.copy()
    for e in ranked:
        if count == size:
            break
        if left[relation[e]] > 0 and used[low_end[e]] < most:
            left[relation[e]] -= 1
            used[low_end[e]] += 1
            taken[count] = e
            count += 1
    return taken[:count]
