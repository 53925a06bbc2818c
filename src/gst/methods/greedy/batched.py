"""Greedy search for networks of which nothing is known but their depth.

L layers carry a change at most L hops. So candidates whose neighbourhoods do not meet are tried in one forward pass:
the change of every answer belongs to one of them. The slope of the divergence says which candidates deserve a trial.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from gst.base.jit import njit
from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.network_arrays import as_lists
from gst.methods.greedy.walk import Incidence
from gst.nn.network import NativeNetwork, Network

PACE = 0.04  # a round changes this share of the edges that are kept, and of the first fortieth of all
BREADTH = 20  # candidates considered for each edge that a round takes


class Trials:
    """Edges added to and dropped from a graph in rounds, by the mean divergence of networks of any kind."""

    def __init__(
        self,
        networks: Sequence[Network],
        edges: EdgeSet,
        wanted: list[Tensor],
        target: Target,
        prior: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> None:
        self.networks, self.edges, self.wanted, self.target = networks, edges, wanted, target
        self.depth = max(hops(network, edges) for network in networks)
        self.incidence = as_lists(edges)[1]
        self.pairs = edges.pairs.cpu().numpy()
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep = np.zeros(edges.num_edges, bool) if keep is None else keep.cpu().numpy().copy()
        self.value = np.full(edges.num_edges, np.inf)
        self.tried = np.full(edges.num_edges, -1)  # the round in which the value was found
        self.changed = np.zeros(edges.num_nodes, np.int64)  # the round in which a node's answer last changed
        self.round, self.sign = 0, 1.0
        self.loss = self._loss(self.keep)

    def add(self, count: int, pace: float = PACE, breadth: int = BREADTH) -> tuple[Tensor, Tensor]:
        """Adds the edges of least δ = ΔD − prior; which, and their δ at the beginning of the round that took them."""
        return self._rounds(count, 1.0, pace, breadth, exact=True)

    def drop(self, count: int, pace: float = PACE, breadth: int = BREADTH) -> tuple[Tensor, Tensor]:
        """Drops the edges of least δ = ΔD + prior, likewise."""
        return self._rounds(count, -1.0, pace, breadth, exact=True)

    def advance(self, count: int) -> Tensor:
        """Adds edges in whole rounds, so many or a few more: where a path stops must not matter to how it goes on."""
        return self._rounds(count, 1.0, PACE, BREADTH, exact=False)[0]

    def divergence(self) -> float:
        """D_T of the edges now kept, mean over the networks."""
        return float(self.loss.sum())

    def memory(self) -> dict[str, Tensor]:
        """All that a later search needs besides the edges in their order."""
        arrays = {"value": self.value, "tried": self.tried, "changed": self.changed, "round": np.array(self.round)}
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def resume(self, order: Tensor, memory: dict[str, Tensor], down: bool = False) -> None:
        """Goes on where an earlier search ended."""
        self.sign = -1.0 if down else 1.0
        self.keep[order.cpu().numpy()] = not down
        self.value, self.tried, self.changed = (memory[n].cpu().numpy().copy() for n in ("value", "tried", "changed"))
        self.round, self.loss = int(memory["round"]), self._loss(self.keep)

    def _rounds(self, count: int, sign: float, pace: float, breadth: int, exact: bool) -> tuple[Tensor, Tensor]:
        if sign != self.sign:  # values of the other direction say nothing
            self.value[:], self.tried[:], self.sign = np.inf, -1, sign
        order, paid = [np.zeros(0, np.int64)], [np.zeros(0)]
        while count > 0:
            kept = int(self.keep.sum())
            size = max(1, int(pace * (kept + self.keep.size / 40)))
            size = min(size, self.keep.size - kept if sign > 0 else kept, count if exact else size)
            shortlist = self._shortlist(breadth * size)
            self._try(shortlist)
            ranked = shortlist[np.lexsort((shortlist, self.value[shortlist]))]  # ties by id
            taken = matching(ranked[: 2 * size], size, self.pairs, self.edges.num_nodes)
            order.append(taken)
            paid.append(self.value[taken])
            self._take(taken)
            count -= taken.size
        return torch.from_numpy(np.concatenate(order)), torch.from_numpy(np.concatenate(paid))

    @torch.no_grad()
    def _loss(self, keep: np.ndarray) -> np.ndarray:
        """D of each node, mean over the networks."""
        sparse = self.edges.subset(torch.from_numpy(keep).to(self.edges.pairs.device))
        losses = [self.target.loss(w, n.logits(sparse)) for n, w in zip(self.networks, self.wanted, strict=True)]
        return torch.stack(losses).double().mean(0).cpu().numpy()

    def _open(self) -> np.ndarray:
        return ~self.keep if self.sign > 0 else self.keep

    def _shortlist(self, size: int) -> np.ndarray:
        """The most promising open edges: half by the values last found, half by the slope of the divergence."""
        if size >= self._open().sum():
            return np.flatnonzero(self._open())
        gate = torch.from_numpy(self.keep).to(self.edges.loops).requires_grad_()
        losses = [
            self.target.loss(w, n.logits(self.edges, gate)).sum()
            for n, w in zip(self.networks, self.wanted, strict=True)
        ]
        slope = torch.autograd.grad(torch.stack(losses).mean(), gate)[0].double().cpu().numpy()
        slope = self.sign * (slope - self.prior)
        slope[~self._open()] = np.inf
        known = np.flatnonzero(self.value < np.inf)
        known = known[np.argsort(self.value[known], kind="stable")[: size // 2]]
        slope[known] = np.inf
        return np.union1d(known, np.argsort(slope, kind="stable")[: size - known.size])

    def _try(self, candidates: np.ndarray) -> None:
        """Finds δ of those candidates around which something changed since it was last found."""
        self.round += 1
        around = (self.pairs, self.keep, self.incidence, self.depth)
        candidates = candidates[stale(candidates, self.tried, self.changed, *around)]
        while candidates.size:
            owner = apart(candidates, *around)
            chosen = np.unique(owner[owner >= 0])
            keep = self.keep.copy()
            keep[candidates[chosen]] = self.sign > 0
            change = self._loss(keep) - self.loss
            inside = owner >= 0
            values = np.bincount(owner[inside], change[inside], candidates.size)
            values -= self.sign * self.prior[candidates]
            self.value[candidates[chosen]] = values[chosen]
            self.tried[candidates[chosen]] = self.round
            candidates = np.delete(candidates, chosen)

    def _take(self, taken: np.ndarray) -> None:
        self.keep[taken] = self.sign > 0
        self.value[taken] = np.inf
        before, self.loss = self.loss, self._loss(self.keep)
        self.changed[before != self.loss] = self.round


@torch.no_grad()
def hops(network: Network, edges: EdgeSet) -> int:
    """How far a change can travel: the number of times that the network passes messages."""
    if isinstance(network, NativeNetwork):
        return len(network.module.layers)
    calls: list[int] = []
    layers = [module for module in network.module.modules() if isinstance(module, MessagePassing)]
    hooks = [layer.register_propagate_forward_pre_hook(lambda *_: calls.append(1)) for layer in layers]
    try:
        network.logits(edges)
    finally:
        for hook in hooks:
            hook.remove()
    return len(calls)


@njit(cache=True)
def _ball(
    edge: int,
    pairs: np.ndarray,
    keep: np.ndarray,
    incidence: Incidence,
    depth: int,
    mark: np.ndarray,
    nodes: np.ndarray,
) -> int:
    """Lists the nodes within ``depth`` hops of an edge, along kept ones, in ``nodes``; their number."""
    nodes[0], nodes[1] = pairs[0, edge], pairs[1, edge]
    mark[nodes[0]] = mark[nodes[1]] = True
    begin, size = 0, 2
    for _ in range(depth):
        end = size
        for k in range(begin, end):
            for at in range(incidence.start[nodes[k]], incidence.start[nodes[k] + 1]):
                other = incidence.edge[at]
                if keep[other]:
                    for side in range(2):
                        node = pairs[side, other]
                        if not mark[node]:
                            mark[node] = True
                            nodes[size] = node
                            size += 1
        begin = end
    for k in range(size):
        mark[nodes[k]] = False
    return size


@njit(cache=True)
def apart(candidates: np.ndarray, pairs: np.ndarray, keep: np.ndarray, incidence: Incidence, depth: int) -> np.ndarray:
    """For every node, which of the candidates reaches it: those that fit go in, first come, first served."""
    size = incidence.start.size - 1
    owner, mark, nodes = np.full(size, -1), np.zeros(size, np.bool_), np.empty(size, np.int64)
    for k in range(candidates.size):
        if owner[pairs[0, candidates[k]]] >= 0 or owner[pairs[1, candidates[k]]] >= 0:
            continue
        found = nodes[: _ball(candidates[k], pairs, keep, incidence, depth, mark, nodes)]
        if (owner[found] < 0).all():
            owner[found] = k
    return owner


@njit(cache=True)
def stale(
    candidates: np.ndarray,
    tried: np.ndarray,
    changed: np.ndarray,
    pairs: np.ndarray,
    keep: np.ndarray,
    incidence: Incidence,
    depth: int,
) -> np.ndarray:
    """Whether an answer in reach of a candidate changed in or after the round of its trial."""
    size = incidence.start.size - 1
    mark, nodes = np.zeros(size, np.bool_), np.empty(size, np.int64)
    found = np.zeros(candidates.size, np.bool_)
    for k in range(candidates.size):
        edge = candidates[k]
        reach = nodes[: _ball(edge, pairs, keep, incidence, depth, mark, nodes)]
        found[k] = tried[edge] < 0 or (changed[reach] >= tried[edge]).any()
    return found


@njit(cache=True)
def matching(ranked: np.ndarray, size: int, pairs: np.ndarray, num_nodes: int) -> np.ndarray:
    """The first of the ranked edges, at most ``size``, of which no two share an end."""
    taken, used = np.empty(size, np.int64), np.zeros(num_nodes, np.bool_)
    count = 0
    for edge in ranked:
        if count == size:
            break
        if not (used[pairs[0, edge]] or used[pairs[1, edge]]):
            used[pairs[0, edge]] = used[pairs[1, edge]] = True
            taken[count] = edge
            count += 1
    return taken[:count]
