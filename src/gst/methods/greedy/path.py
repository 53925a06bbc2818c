r"""Which edges does a trained network need? A greedy path by the divergence D_T from its answers on all edges.

.. math:: M ← M + \arg\min_{e ∉ M} D_T(M + e), \; M = ∅ \text{ at first} \qquad \text{up}

.. math:: M ← M - \arg\min_{e ∈ M} D_T(M - e), \; M = \text{all edges at first} \qquad \text{down}

:class:`Search` does this by compiled trials of single edges, for the networks that the kernels know
(:mod:`~gst.methods.greedy.walk`); :class:`~gst.methods.greedy.batched.BatchedSearch` does it in rounds, for all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.typed import TypedEdges
from gst.methods.greedy.batched import BatchedSearch, num_hops, trials_of_path
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.network_arrays import CAP, all_known, as_lists, as_model
from gst.methods.greedy.tape_arrays import tape_model
from gst.methods.greedy.typed import TypedSearch
from gst.methods.greedy.walk import new_memory, walk
from gst.nn.network import NativeNetwork, Network
from gst.nn.recognise import TapeNetwork

ROWS_PER_STEP = 2000.0  # that an early step may recompute on average, per network, …
ROWS_IF_LAZY = 500.0  # … and in a lazy walk, which saves most trials
LAZY_EDGES = 600_000  # from which walks are lazy
TOLERANCE = 0.003  # drift of an answer above which the candidates around it are tried again
MIN_SHARE_DOWN = 0.65  # share of the edges to keep from which a path goes down; with fewer, that costs more


@dataclass
class Path:
    """The edges that a network needs, most needed first; or, ``down``, those it does not need, least needed first.

    Every prefix of the path is the result for its number of steps: one path serves all sparsities in its direction.
    ``memory`` is what a search needs to resume; an extended path equals, to the last bit, one made in a single search.
    """

    order: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    memory: dict[str, Tensor] = field(default_factory=dict)
    down: bool = False

    @classmethod
    def for_budget(cls, num_kept: int, edges: EdgeSet, network: Network) -> "Path":
        """An empty path in the better direction: down if most edges stay and the cost is acceptable.

        A path down starts with an exact trial of every edge on the full graph. First-order estimates would not do,
        since every gradient of the divergence is zero on all edges; so networks that are tried in batches, which
        rely on gradients, always go up.
        """
        if (
            num_kept < MIN_SHARE_DOWN * edges.num_edges
            or not isinstance(network, NativeNetwork | TapeNetwork)
            or not all_known([network])
        ):
            return cls()
        return cls(down=mean_rows_per_trial(edges, num_hops(network, edges)) <= ROWS_PER_STEP)

    def steps(self, num_kept: int, num_edges: int) -> int:
        """The number of steps to ``num_kept`` edges, or the number of edges kept after so many steps."""
        return num_edges - num_kept if self.down else num_kept

    def scores(self, num_kept: int, num_edges: int) -> Tensor:
        """Up: E for the first edge of the path, one less for each further edge, 0 for all others. Down: E or 0."""
        prefix = self.order[: self.steps(num_kept, num_edges)]
        if self.down:
            scores = torch.full((num_edges,), float(num_edges), dtype=torch.float64)
            scores[prefix] = 0
            return scores
        scores = torch.zeros(num_edges, dtype=torch.float64)
        scores[prefix] = torch.arange(num_edges, num_edges - num_kept, -1, dtype=torch.float64)
        return scores


def mean_rows_per_trial(edges: EdgeSet, depth: int) -> float:
    """Upper bound of the rows that change, on average, when one of all edges goes: dᵀ A^(L−1) d / E for L layers."""
    source, target = edges.arcs
    degree = torch.bincount(target, minlength=edges.num_nodes).double()
    reach = degree
    for _ in range(depth - 1):
        reach = torch.zeros_like(degree).index_add_(0, target, reach[source])
    return float((degree * reach).sum()) / max(edges.num_edges, 1)


def deploy(
    network: Network, edges: EdgeSet, logits: Tensor, num_kept: int, target: Target | None = None
) -> tuple[Tensor, Tensor]:
    """The mask of the edges with which a trained network best keeps its answers, and a score for every edge.

    The network runs in evaluation mode, with degrees, means and attention of the kept edges only. Scores: see
    :meth:`Path.scores`.

    Args:
        network: a trained network in evaluation mode; its weights are not changed.
        edges: all edges of the graph.
        logits: Z^A, the answers of the network on all edges.
        num_kept: number of edges to keep.
        target: the divergence; None: for classes, at a temperature that suits the logits.
    """
    path = Path.for_budget(num_kept, edges, network)
    search = make_search([network], edges, [logits], target or Target.of(logits), path=path)
    extend_path(search, path, path.steps(num_kept, edges.num_edges))
    scores = path.scores(num_kept, edges.num_edges).to(edges.pairs.device)
    return scores > 0, scores


def extend_path(search: "Search | BatchedSearch", path: Path, steps: int) -> None:
    """Extends a path to ``steps`` steps; a batched search finishes its round and may add a few more."""
    missing = steps - path.order.numel()
    order = search.drop(missing)[0] if path.down else search.advance(missing)
    path.order = torch.cat([path.order, order])
    path.memory = search.memory()


def make_search(
    networks: Sequence[Network],
    edges: EdgeSet,
    wanted: list[Tensor],
    target: Target,
    prior: Tensor | None = None,
    keep_mask: Tensor | None = None,
    path: Path | None = None,
    room: Tensor | None = None,
) -> "Search | BatchedSearch":
    """The search that suits the networks, starting from the edges of ``keep_mask`` or from the end of a path.

    Args:
        networks: trained networks in evaluation mode.
        edges: all edges.
        wanted: the logits that each network should give.
        target: the divergence.
        prior: a bonus for keeping each edge, in units of the divergence.
        keep_mask: mask of the edges to start from; None: no edge.
        path: an earlier path of the same networks to resume, or an empty one to start, instead of ``keep_mask``.
        room: how many arcs may enter each node in all, where every edge is an arc; None: any number.
    """
    if isinstance(edges, TypedEdges):
        if room is not None:
            raise InputError("max_degree is for graphs of one type: leave it off for a typed graph")
        search: Any = TypedSearch(networks, edges, wanted, target, prior, keep_mask)
    elif path is not None and path.down:
        all_edges = torch.ones(edges.num_edges, dtype=torch.bool)
        # no node has more arcs than this cap: nothing is deferred
        search = Search(networks, edges, wanted, target, prior, all_edges, cap=edges.num_nodes)  # type: ignore[arg-type]
    elif all_known(networks):
        search = Search(networks, edges, wanted, target, prior, keep_mask, room=room)  # type: ignore[arg-type]
    else:
        how = {} if path is None else trials_of_path(networks[0], edges, room is not None)
        search = BatchedSearch(networks, edges, wanted, target, prior, keep_mask, room, **how)
    if path is not None and path.order.numel():
        search.resume(path.order, path.memory, path.down)
    return search


class Search:
    """Adds and drops single edges by the mean divergence of one or more native networks, in compiled kernels."""

    def __init__(
        self,
        networks: Sequence[Network],
        edges: EdgeSet,
        wanted: list[Tensor],
        target: Target,
        prior: Tensor | None = None,
        keep_mask: Tensor | None = None,
        cap: int = CAP,
        room: Tensor | None = None,
        lazy: bool | None = None,
    ) -> None:
        tapes = [network for network in networks if isinstance(network, TapeNetwork)]
        edges = tapes[0].counted(edges) if tapes else edges
        self.lists, self.incidence = as_lists(edges)
        self.model: Any
        if tapes:
            self.model = tape_model(tapes, edges, wanted, target)
        else:
            self.model = as_model(networks, edges, wanted, target, cap)  # type: ignore[arg-type]
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep_mask = np.zeros(edges.num_edges, bool)
        self._room = np.full(edges.num_nodes, edges.num_edges + 1) if room is None else room.cpu().numpy().copy()
        able = target.damped and len(networks) == 1 and self.model[0].depth <= 2  # what bounds of gains are for
        self._lazy = able and (edges.num_edges >= LAZY_EDGES if lazy is None else lazy)
        self._sign = 0.0
        self._memory = new_memory(edges.num_edges, edges.num_nodes)
        # of undamped KL the kernels compute the cross entropy, whose minimum is the entropy
        self._min_loss = 0.0 if target.damped else self.model[0].entropy.sum(1)
        # what an edge can contribute; rounding may make a divergence of zero negative
        self._mean_gain = max(self.divergence(), 0.0) / edges.num_edges
        if keep_mask is not None:
            self._replay(keep_mask.nonzero().flatten(), 1.0)

    def add(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Adds edges one by one, each of least δ = ΔD − prior; returns them in this order, and their δ."""
        return self._walk(count, 1.0, tolerance)

    def drop(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Drops edges one by one, each of least δ = ΔD + prior; returns them in this order, and their δ."""
        return self._walk(count, -1.0, tolerance)

    def advance(self, count: int) -> Tensor:
        """Adds ``count`` edges; returns them in this order."""
        return self.add(count)[0]

    def divergence(self) -> float:
        """D_T of the kept edges, mean over the networks."""
        return float((self.model[1].loss.sum(1) - self._min_loss).mean())

    def memory(self) -> dict[str, Tensor]:
        """What a later search needs to resume, besides the edges in their order."""
        return {name: torch.from_numpy(array.copy()) for name, array in self._memory._asdict().items()}

    def resume(self, order: Tensor, memory: dict[str, Tensor], down: bool = False) -> None:
        """Repeats the steps of an earlier search without comparing candidates, and takes over its memory."""
        self._sign = -1.0 if down else 1.0
        self._replay(order, self._sign)
        for name, tensor in memory.items():
            getattr(self._memory, name)[:] = tensor.cpu().numpy()

    def _replay(self, order: Tensor, sign: float) -> None:
        steps = order.cpu().numpy()
        self._run(steps, 0, sign, 0.0)
        self.keep_mask[steps] = sign > 0

    def _walk(self, count: int, sign: float, tolerance: float) -> tuple[Tensor, Tensor]:
        left = int((self.keep_mask != (sign > 0)).sum())
        if count > left:
            raise InputError(f"{count} edges cannot be {'added' if sign > 0 else 'dropped'}: there are {left}")
        if sign != self._sign:  # values of the other direction do not apply
            self._memory.value[:] = np.nan
            self._sign = sign
        order, deltas = self._run(np.zeros(0, np.int64), max(count, 0), sign, tolerance)
        self.keep_mask[order] = sign > 0
        return torch.from_numpy(order), torch.from_numpy(deltas)

    def _run(self, replayed: np.ndarray, count: int, sign: float, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        num_networks = self.model[0].wanted.shape[0]
        is_candidate = ~self.keep_mask if sign > 0 else self.keep_mask.copy()
        return walk(
            replayed,
            count,
            sign,
            is_candidate,
            self.prior,
            tolerance,
            tolerance * self._mean_gain,
            (ROWS_IF_LAZY if self._lazy else ROWS_PER_STEP) * num_networks,
            self._lazy and sign > 0,
            self._room,
            self.lists,
            self.incidence,
            self.model,
            self._memory,
        )
