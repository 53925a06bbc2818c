"""Which edges does a trained network need? Greedy on the divergence from the answers it gives on all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.batched import Trials
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.network_arrays import CAP, all_known, as_lists, as_model
from gst.methods.greedy.walk import Memory, walk
from gst.nn.network import NativeNetwork, Network

ROWS = 2000.0  # that an early step may recompute on average, for each network
TOLERANCE = 0.003  # how far answers may move before the edges around are looked at again
DOWN = 0.65  # of the edges; where as many stay, those that go are sought. Below, that is dearer


@dataclass
class Path:
    r"""The edges that a network needs, the most needed first; or those it does not need, the least needed first.

    .. math:: M ← M + \arg\min_{e ∉ M} D_T(M + e), \; M = ∅ \text{ at first} \qquad \text{up}

    .. math:: M ← M - \arg\min_{e ∈ M} D_T(M - e), \; M = \text{all at first} \qquad \text{down}

    What its first steps lead to is the answer for their number: one path serves all sparsities on its side. ``memory``
    is what the search must know to go on; a path that is extended is, to the last bit, the one found in one go.
    """

    order: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    memory: dict[str, Tensor] = field(default_factory=dict)
    down: bool = False

    @classmethod
    def towards(cls, kept: int, edges: EdgeSet, network: Network) -> "Path":
        """An empty path in the better direction: down where most of the edges stay, if that is affordable.

        It begins with a trial of every edge on the whole graph, without estimates: they are by slopes, and on all edges
        every slope is zero. For the same reason networks that are tried in batches go up.
        """
        if kept < DOWN * edges.num_edges or not isinstance(network, NativeNetwork) or not all_known([network]):
            return cls()
        return cls(down=rows_of_trials(edges, len(network.module.layers)) <= ROWS)

    def steps(self, kept: int, num_edges: int) -> int:
        """How many lead to so many edges, or the other way round."""
        return num_edges - kept if self.down else kept

    def scores(self, kept: int, num_edges: int) -> Tensor:
        """Up: E for the edge that came first, one less for each after it, 0 for the others. Down: E or 0."""
        taken = self.order[: self.steps(kept, num_edges)]
        if self.down:
            scores = torch.full((num_edges,), float(num_edges), dtype=torch.float64)
            scores[taken] = 0
            return scores
        scores = torch.zeros(num_edges, dtype=torch.float64)
        scores[taken] = torch.arange(num_edges, num_edges - kept, -1, dtype=torch.float64)
        return scores


def rows_of_trials(edges: EdgeSet, depth: int) -> float:
    """At most so many rows change, on average, when one of all edges goes: dᵀ A^(L−1) d / E for L layers."""
    source, target = edges.arcs
    degree = torch.bincount(target, minlength=edges.num_nodes).double()
    reach = degree
    for _ in range(depth - 1):
        reach = torch.zeros_like(degree).index_add_(0, target, reach[source])
    return float((degree * reach).sum()) / max(edges.num_edges, 1)


def deploy(
    network: Network, edges: EdgeSet, logits: Tensor, kept: int, target: Target | None = None
) -> tuple[Tensor, Tensor]:
    """The ``kept`` edges with which a trained network best keeps its answers, and a score for every edge.

    In evaluation mode, with degrees, means and attention of the kept edges alone. Scores: see :class:`Path`.

    Args:
        network: a trained network in evaluation mode; its weights are not touched.
        edges: all edges of the graph.
        logits: Z^A, what the network says on all edges.
        kept: number of edges to keep.
        target: the divergence; None: of classes, at the temperature that suits the logits.
    """
    path = Path.towards(kept, edges, network)
    search = make_search([network], edges, [logits], target or Target.of(logits), path=path)
    follow(search, path, path.steps(kept, edges.num_edges))
    scores = path.scores(kept, edges.num_edges).to(edges.pairs.device)
    return scores > 0, scores


def follow(search: "Search | Trials", path: Path, steps: int) -> None:
    """Extends a path to so many steps or a few more."""
    more = steps - path.order.numel()
    order = search.drop(more)[0] if path.down else search.advance(more)
    path.order, path.memory = torch.cat([path.order, order]), search.memory()


def make_search(
    networks: Sequence[Network],
    edges: EdgeSet,
    wanted: list[Tensor],
    target: Target,
    prior: Tensor | None = None,
    keep: Tensor | None = None,
    path: Path | None = None,
) -> "Search | Trials":
    """The search that suits the networks, from the edges ``keep`` on, or from where a path ended.

    Args:
        networks: trained networks in evaluation mode.
        edges: all edges.
        wanted: the logits that each network should give.
        target: the divergence.
        prior: what each edge is worth besides, in units of the divergence.
        keep: the edges to start from; None: no edge.
        path: an earlier path of the same networks to go on with, or a new one, instead of ``keep``.
    """
    if path is not None and path.down:
        everything = torch.ones(edges.num_edges, dtype=torch.bool)
        search: Search | Trials = Search(networks, edges, wanted, target, prior, everything, edges.num_nodes)  # type: ignore[arg-type]
    else:
        make = Search if all_known(networks) else Trials
        search = make(networks, edges, wanted, target, prior, keep)  # type: ignore[arg-type]
    if path is not None and path.order.numel():
        search.resume(path.order, path.memory, path.down)
    return search


class Search:
    """Edges added to and dropped from a graph by the mean divergence of one or more native networks."""

    def __init__(
        self,
        networks: Sequence[NativeNetwork],
        edges: EdgeSet,
        wanted: list[Tensor],
        target: Target,
        prior: Tensor | None = None,
        keep: Tensor | None = None,
        cap: int = CAP,
    ) -> None:
        self.lists, self.incidence = as_lists(edges)
        self.model = as_model(networks, edges, wanted, target, cap)
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep = np.zeros(edges.num_edges, bool)
        self._sign = 0.0
        self._memory = Memory(
            np.full(edges.num_edges, np.nan), np.zeros(edges.num_nodes), np.array([0.0, 0.0, 0.0, 1.0, 0.0])
        )
        self._least = 0.0 if target.damped else self.model[0].least.sum(1)
        self.scale = self.divergence() / edges.num_edges  # what an edge may hope to do
        if keep is not None:
            self._fill(keep.nonzero().flatten())

    def add(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Adds the edges of least δ = ΔD − prior, one by one; which, in this order, and their δ."""
        return self._walk(count, 1.0, tolerance)

    def drop(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Drops the edges of least δ = ΔD + prior, likewise."""
        return self._walk(count, -1.0, tolerance)

    def advance(self, count: int) -> Tensor:
        """Adds so many edges; which, in this order."""
        return self.add(count)[0]

    def divergence(self) -> float:
        """D_T of the edges now kept, mean over the networks."""
        return float((self.model[1].loss.sum(1) - self._least).mean())

    def memory(self) -> dict[str, Tensor]:
        """All that a later search needs besides the edges in their order."""
        return {name: torch.from_numpy(getattr(self._memory, name).copy()) for name in ("value", "drift", "pace")}

    def resume(self, order: Tensor, memory: dict[str, Tensor], down: bool = False) -> None:
        """Takes the steps of an earlier search again, without its questions."""
        self._sign = -1.0 if down else 1.0
        self._run(order.cpu().numpy(), 0, self._sign, 0.0)
        self.keep[order.cpu().numpy()] = not down
        for name, tensor in memory.items():
            getattr(self._memory, name)[:] = tensor.cpu().numpy()

    def _fill(self, order: Tensor) -> None:
        self._run(order.cpu().numpy(), 0, 1.0, 0.0)
        self.keep[order.cpu().numpy()] = True

    def _walk(self, count: int, sign: float, tolerance: float) -> tuple[Tensor, Tensor]:
        if sign != self._sign:  # values of the other direction say nothing
            self._memory.value[:] = np.nan
            self._sign = sign
        order, paid = self._run(np.zeros(0, np.int64), max(count, 0), sign, tolerance)
        self.keep[order] = sign > 0
        return torch.from_numpy(order), torch.from_numpy(paid)

    def _run(self, given: np.ndarray, count: int, sign: float, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        candidates = ~self.keep if sign > 0 else self.keep.copy()
        trifle, rows = tolerance * self.scale, ROWS * self.model[0].wanted.shape[0]
        where, what = (self.lists, self.incidence), (self.model, self._memory)
        return walk(given, count, sign, candidates, self.prior, tolerance, trifle, rows, *where, *what)
