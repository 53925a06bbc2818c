"""Greedy search for networks of which only the depth is known: many trials share one forward pass.

A network of L message-passing layers carries a change at most L hops: the receptive field of a candidate is the set of
nodes within L hops of its ends, along kept edges. Candidates with disjoint receptive fields are tried in one forward
pass: every node whose loss changes belongs to exactly one of them, so each trial is as exact as one by itself.

The search goes in rounds. Each round shortlists candidates, half by their last values and half by the gradient of the
divergence (or by need, :mod:`~gst.methods.greedy.shortlist`), tries those whose values are stale, the most promising
first and in a bounded number of forward passes, and takes the best ones of which no two share an end.

Some models, such as ChebConv, give a message no weight unless both its ends have arcs out: no arc does anything by
itself, and no search by single arcs could begin. Then opposite arcs are tried and taken together.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from gst.base.jit import njit
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.network_arrays import as_lists
from gst.methods.greedy.shortlist import by_need, likeness
from gst.methods.greedy.walk import Incidence
from gst.nn.backbones import Backbone
from gst.nn.links import LinkNetwork
from gst.nn.network import Network
from gst.nn.recognise import TapeNetwork
from gst.nn.trained import TrainedNetwork

ROUND_SHARE = 0.04  # edges that a round takes, as a share of the kept edges plus a fortieth of all
BREADTH = 20  # candidates shortlisted per edge that a round takes
PASSES = 12  # forward passes that a round spends on trials at most
PASSES_TOGETHER = 32  # and on those of opposite arcs together; other models gain nothing by more
HOPS = 3  # assumed of a model whose layers cannot be counted


class Trials(TypedDict, total=False):
    """How a search tries candidates: forward passes in a round, and whether opposite arcs are taken together."""

    most_passes: int
    together: bool


class BatchedSearch:
    """Adds and drops edges in rounds, by the mean divergence of networks of any kind."""

    def __init__(
        self,
        networks: Sequence[Network],
        edges: EdgeSet,
        wanted: list[Tensor],
        target: Target,
        prior: Tensor | None = None,
        keep_mask: Tensor | None = None,
        room: Tensor | None = None,
        most_passes: int = PASSES,
        together: bool = False,
    ) -> None:
        self.most_passes = most_passes
        self.opposite = opposite(edges).cpu().numpy() if together else None  # the arc that comes and goes with each
        self.networks = networks
        self.edges = edges
        self.wanted = wanted
        self.target = target
        self.depth = max(num_hops(network, edges) for network in networks)
        self.incidence = as_lists(edges)[1]
        self.pairs = edges.pairs.cpu().numpy()
        self.forward = edges.directed and not any(reads_backwards(network) for network in networks)
        self.has_slopes = all(not isinstance(network, TrainedNetwork) or network.has_slopes() for network in networks)
        self.alike = np.zeros(0) if self.has_slopes else likeness(edges, wanted[0])
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep_mask = np.zeros(edges.num_edges, bool) if keep_mask is None else keep_mask.cpu().numpy().copy()
        self.room = None if room is None else room.cpu().numpy()  # for arcs into each node
        self.value = np.full(edges.num_edges, np.inf)  # δ of each candidate at its last trial
        self.tried = np.full(edges.num_edges, -1)  # the round of that trial
        self.changed = np.zeros(edges.num_nodes, np.int64)  # the last round that changed the loss of a node
        self.round = 0
        self.sign = 1.0
        self.loss = self._loss(self.keep_mask)

    def add(self, count: int, round_share: float = ROUND_SHARE, breadth: int = BREADTH) -> tuple[Tensor, Tensor]:
        """Adds edges of least δ = ΔD − prior; returns them, and their δ at the start of the round that took them."""
        return self._rounds(count, 1.0, round_share, breadth, exact=True)

    def drop(self, count: int, round_share: float = ROUND_SHARE, breadth: int = BREADTH) -> tuple[Tensor, Tensor]:
        """Drops edges of least δ = ΔD + prior; returns them, and their δ at the start of the round that took them."""
        return self._rounds(count, -1.0, round_share, breadth, exact=True)

    def advance(self, count: int) -> Tensor:
        """Adds at least ``count`` edges in whole rounds, so that a path does not depend on where it was interrupted."""
        return self._rounds(count, 1.0, ROUND_SHARE, BREADTH, exact=False)[0]

    def passes(self, count: int) -> int:
        """The forward passes, at most, that adding ``count`` more edges takes; a pass for slopes counts three times."""
        num_kept, rounds = int(self.keep_mask.sum()), 0
        while count > 0:
            size = max(1, int(ROUND_SHARE * (num_kept + self.keep_mask.size / 40)))
            num_kept, count, rounds = num_kept + size, count - size, rounds + 1
        return rounds * len(self.networks) * (self.most_passes + 1 + (3 if self.has_slopes else 0))

    def divergence(self) -> float:
        """D_T of the kept edges, mean over the networks."""
        return float(self.loss.sum())

    def memory(self) -> dict[str, Tensor]:
        """What a later search needs to resume, besides the edges in their order."""
        arrays = {"value": self.value, "tried": self.tried, "changed": self.changed, "round": np.array(self.round)}
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def resume(self, order: Tensor, memory: dict[str, Tensor], down: bool = False) -> None:
        """Continues an earlier search."""
        self.sign = -1.0 if down else 1.0
        self.keep_mask[order.cpu().numpy()] = not down
        self.value, self.tried, self.changed = (memory[n].cpu().numpy().copy() for n in ("value", "tried", "changed"))
        self.round = int(memory["round"])
        self.loss = self._loss(self.keep_mask)

    def _rounds(self, count: int, sign: float, round_share: float, breadth: int, exact: bool) -> tuple[Tensor, Tensor]:
        if sign != self.sign:  # values of the other direction do not apply
            self.value[:] = np.inf
            self.tried[:] = -1
            self.sign = sign
        order, deltas = [np.zeros(0, np.int64)], [np.zeros(0)]
        while count > 0:
            num_kept = int(self.keep_mask.sum())
            size = max(1, int(round_share * (num_kept + self.keep_mask.size / 40)))
            size = size if self.opposite is None else max(1, size // 2)
            size = min(size, int(self._is_candidate().sum()), count if exact else size)
            shortlist = self._shortlist(breadth * size)
            self._try(shortlist)
            ranked = shortlist[np.argsort(self.value[shortlist], kind="stable")]  # ties by promise
            taken = without_shared_ends(ranked[: 2 * size], size, self.pairs, self.edges.num_nodes)
            deltas.append(self.value[taken])
            taken = self._whole(taken)
            order.append(taken)
            self._take(taken)
            count -= taken.size
        return torch.from_numpy(np.concatenate(order)), torch.from_numpy(np.concatenate(deltas))

    @torch.no_grad()
    def _loss(self, keep_mask: np.ndarray) -> np.ndarray:
        """D of each node, mean over the networks."""
        sparse = self.edges.subset(torch.from_numpy(keep_mask).to(self.edges.pairs.device))
        losses = [
            at_nodes(n, self.target.loss(w, n.logits(sparse))) for n, w in zip(self.networks, self.wanted, strict=True)
        ]
        return torch.stack(losses).double().mean(0).cpu().numpy()

    def _whole(self, taken: np.ndarray) -> np.ndarray:
        """The edges that come and go with those taken, each beside its own."""
        return taken if self.opposite is None else np.stack([taken, self.opposite[taken]], 1).flatten()

    def _is_candidate(self) -> np.ndarray:
        if self.opposite is not None:  # the first of two stands for both
            return (self.keep_mask == (self.sign < 0)) & (self.opposite > np.arange(self.opposite.size))
        if self.sign < 0:
            return self.keep_mask
        if self.room is None:
            return ~self.keep_mask
        target = self.pairs[1]
        fan_in = np.bincount(target[self.keep_mask], minlength=self.room.size)
        return ~self.keep_mask & (fan_in < self.room)[target]

    def _shortlist(self, size: int) -> np.ndarray:
        """The most promising candidates: half by their last values, half by the gradient of the divergence."""
        is_candidate = self._is_candidate()
        if size >= is_candidate.sum():
            return np.flatnonzero(is_candidate)
        change = self._slopes() if self.has_slopes else by_need(self.edges, self.alike, self.loss)
        change = change if self.opposite is None else change + change[self.opposite]
        estimate = self.sign * (change - self.prior)  # δ to first order
        estimate[~is_candidate] = np.inf
        by_value = np.flatnonzero(is_candidate & (self.value < np.inf))
        by_value = by_value[np.argsort(self.value[by_value], kind="stable")[: size // 2]]
        estimate[by_value] = np.inf
        return np.concatenate([by_value, np.argsort(estimate, kind="stable")[: size - by_value.size]])

    def _slopes(self) -> np.ndarray:
        """∂D/∂gate of every edge, mean over the networks: what its return would change, to first order."""
        gate = torch.from_numpy(self.keep_mask).to(self.edges.loops).requires_grad_()
        losses = [
            at_nodes(n, self.target.loss(w, n.logits(self.edges, gate))).sum()
            for n, w in zip(self.networks, self.wanted, strict=True)
        ]
        return torch.autograd.grad(torch.stack(losses).mean(), gate)[0].double().cpu().numpy()

    def _try(self, candidates: np.ndarray) -> None:
        """Renews the values of those candidates that are stale, in as few forward passes as a greedy packing allows."""
        self.round += 1
        graph = (self.pairs, self.keep_mask, self.incidence, self.depth, self.forward)
        candidates = candidates[is_stale(candidates, self.tried, self.changed, *graph)]
        for _ in range(self.most_passes):
            if candidates.size == 0:
                break
            owner = pack_receptive_fields(candidates, *graph)
            is_covered = owner >= 0
            packed = np.unique(owner[is_covered])
            keep_mask = self.keep_mask.copy()
            keep_mask[self._whole(candidates[packed])] = self.sign > 0
            change = self._loss(keep_mask) - self.loss
            values = np.bincount(owner[is_covered], change[is_covered], candidates.size)
            values -= self.sign * self.prior[candidates]
            self.value[candidates[packed]] = values[packed]
            self.tried[candidates[packed]] = self.round
            candidates = np.delete(candidates, packed)

    def _take(self, taken: np.ndarray) -> None:
        self.keep_mask[taken] = self.sign > 0
        self.value[taken] = np.inf
        before = self.loss
        self.loss = self._loss(self.keep_mask)
        self.changed[before != self.loss] = self.round


def at_nodes(network: Network, losses: Tensor) -> Tensor:
    """The loss of every node; of scores of links, half of each training pair's loss is at either end."""
    if not isinstance(network, LinkNetwork):
        return losses
    pairs = network.pairs
    halves = (losses[pairs.searched] / 2).repeat(2)
    return losses.new_zeros(pairs.num_nodes).index_add(0, pairs.ends[:, pairs.searched].flatten(), halves)


@torch.no_grad()
def num_hops(network: Network, edges: EdgeSet) -> int:
    """How far a change can travel: the number of times that the network passes messages."""
    module = network.module
    if isinstance(module, Backbone):
        return len(module.layers)
    if isinstance(network, TapeNetwork):
        return network.tape.depth
    calls: list[int] = []
    layers = [module for module in network.module.modules() if isinstance(module, MessagePassing)]
    hooks = [layer.register_propagate_forward_pre_hook(lambda *_: calls.append(1)) for layer in layers]
    try:
        network.logits(edges)
    finally:
        for hook in hooks:
            hook.remove()
    return len(calls) or HOPS


@torch.no_grad()
def needs_both_arcs(network: Network, edges: EdgeSet) -> bool:
    """Whether arcs of an undirected graph do nothing as long as no node has arcs both in and out."""
    if not (edges.directed and edges.symmetric):
        return False
    is_source = torch.rand(edges.num_nodes, generator=torch.Generator().manual_seed(0)) < 0.5
    source, target = is_source.to(edges.pairs.device)[edges.pairs]
    one_way, none = (network.logits(edges.subset(mask)) for mask in (source & ~target, torch.zeros_like(source)))
    return torch.equal(one_way, none)


def trials_of_path(network: Network, edges: EdgeSet, capped: bool) -> Trials:
    """How a path that serves every sparsity is searched; under a cap on arcs into a node, they come one by one."""
    together = not capped and needs_both_arcs(network, edges)
    return {"most_passes": PASSES_TOGETHER if together else PASSES, "together": together}


def opposite(edges: EdgeSet) -> Tensor:
    """The number of v → u for every arc u → v of an undirected graph."""
    source, target = edges.pairs
    return torch.argsort(target * edges.num_nodes + source)  # the k-th by target, then source, is opposite to arc k


def reads_backwards(network: Network) -> bool:
    """Whether messages may flow against the direction of the arcs."""
    layers = [module for module in network.module.modules() if isinstance(module, MessagePassing)]
    return not layers or any(layer.flow != "source_to_target" for layer in layers)


@njit(cache=True)
def _receptive_field(
    edge: int,
    pairs: np.ndarray,
    keep_mask: np.ndarray,
    incidence: Incidence,
    depth: int,
    forward: bool,
    is_listed: np.ndarray,
    nodes: np.ndarray,
) -> int:
    """Lists in ``nodes`` the nodes within ``depth`` hops of an edge, along kept edges; returns their number.

    ``forward``: arcs lead from their source to their target only. ``is_listed`` is scratch space, all False before
    and after.
    """
    nodes[0], nodes[1] = pairs[0, edge], pairs[1, edge]
    is_listed[nodes[0]] = is_listed[nodes[1]] = True
    begin, size = 0, 2
    for _ in range(depth):
        end = size
        for k in range(begin, end):
            for position in range(incidence.start[nodes[k]], incidence.start[nodes[k] + 1]):
                other = incidence.edge[position]
                if keep_mask[other] and not (forward and pairs[0, other] != nodes[k]):
                    for side in range(2):
                        node = pairs[side, other]
                        if not is_listed[node]:
                            is_listed[node] = True
                            nodes[size] = node
                            size += 1
        begin = end
    for k in range(size):
        is_listed[nodes[k]] = False
    return size


@njit(cache=True)
def pack_receptive_fields(
    candidates: np.ndarray,
    pairs: np.ndarray,
    keep_mask: np.ndarray,
    incidence: Incidence,
    depth: int,
    forward: bool = False,
) -> np.ndarray:
    """Packs candidates with disjoint receptive fields, first come, first served.

    Returns for every node the index of the packed candidate whose receptive field holds it; −1: none.
    """
    size = incidence.start.size - 1
    owner, is_listed, nodes = np.full(size, -1), np.zeros(size, np.bool_), np.empty(size, np.int64)
    for k in range(candidates.size):
        if owner[pairs[0, candidates[k]]] >= 0 or owner[pairs[1, candidates[k]]] >= 0:
            continue
        reach = nodes[: _receptive_field(candidates[k], pairs, keep_mask, incidence, depth, forward, is_listed, nodes)]
        if (owner[reach] < 0).all():
            owner[reach] = k
    return owner


@njit(cache=True)
def is_stale(
    candidates: np.ndarray,
    tried: np.ndarray,
    changed: np.ndarray,
    pairs: np.ndarray,
    keep_mask: np.ndarray,
    incidence: Incidence,
    depth: int,
    forward: bool = False,
) -> np.ndarray:
    """Whether the loss of a node in the receptive field of a candidate changed in or after the round of its trial."""
    size = incidence.start.size - 1
    is_listed, nodes = np.zeros(size, np.bool_), np.empty(size, np.int64)
    stale = np.zeros(candidates.size, np.bool_)
    for k in range(candidates.size):
        edge = candidates[k]
        reach = nodes[: _receptive_field(edge, pairs, keep_mask, incidence, depth, forward, is_listed, nodes)]
        stale[k] = tried[edge] < 0 or (changed[reach] >= tried[edge]).any()
    return stale


@njit(cache=True)
def without_shared_ends(ranked: np.ndarray, size: int, pairs: np.ndarray, num_nodes: int) -> np.ndarray:
    """The first of the ranked edges, at most ``size``, of which no two share an end."""
    taken, is_used = np.empty(size, np.int64), np.zeros(num_nodes, np.bool_)
    count = 0
    for edge in ranked:
        if count == size:
            break
        if not (is_used[pairs[0, edge]] or is_used[pairs[1, edge]]):
            is_used[pairs[0, edge]] = is_used[pairs[1, edge]] = True
            taken[count] = edge
            count += 1
    return taken[:count]
