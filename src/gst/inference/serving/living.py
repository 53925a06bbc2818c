"""A graph that changes: every edge is kept or removed by one rule, and only what a change affects is computed again.

**The rule.** All edges stand in one order: those that the run kept, by its own order; then the edges that came later,
by the agreement of the answers at their two ends; then those that the run removed, by its own order. The first
E − round(s·E) of them are kept, E being all edges there are now and s the share that the run removed. So the run's
decisions stand while the budget lasts, new edges share what is left, and if too few come, removed ones return.

The place of an edge depends on nothing but the run and, for edges at new nodes, their present features: the order in
which changes came does not matter, and a graph that was changed step by step equals one that is built at once.
"""

from dataclasses import dataclass, field

import numpy as np

from gst.base.errors import InputError
from gst.inference.serving.base import Base, agreement, answer_alone, edge_keys, ends_of, probabilities
from gst.inference.serving.change import Change
from gst.inference.serving.order import RankedPrefix, SortedPrefix, shares
from gst.inference.serving.rows import fixed
from gst.inference.serving.state import State


@dataclass(frozen=True)
class Outcome:
    """What a change did.

    Attributes:
        version: of the engine after it.
        kept: edges (u, v) that are now in the sparse graph and were not.
        dropped: edges that were in it and no longer are.
        new_nodes: ids of the nodes that came.
        nodes: whose incoming arcs or features have changed.
    """

    version: int
    kept: list[tuple[int, int]]
    dropped: list[tuple[int, int]]
    new_nodes: range
    nodes: list[int]


@dataclass
class Added:
    """An edge that the run has not seen."""

    weights: tuple[float, ...]  # of its one or two arcs
    place: tuple[float, int]  # in the order: minus the agreement, then the key


@dataclass
class Living:
    """The edges of a graph that changes, beside the arrays of its engine."""

    base: Base
    state: State
    added: dict[int, Added] = field(default_factory=dict)
    alone: dict[int, np.ndarray] = field(default_factory=dict)  # probabilities of new nodes without edges

    def __post_init__(self) -> None:
        total, num_kept = self.base.keys.size, self.base.num_kept
        self._key = np.empty_like(self.base.keys)  # by rank
        self._key[self.base.rank] = self.base.keys
        self.present = bytearray(b"\1") * total
        self._parts = (
            RankedPrefix(self.present, 0, num_kept),
            SortedPrefix(),
            RankedPrefix(self.present, num_kept, total),
        )
        self._by_new_node: dict[int, set[int]] = {}
        self._parts[0].last, self._parts[0].kept = num_kept - 1, num_kept

    @property
    def num_edges(self) -> int:
        return sum(part.total for part in self._parts)

    @property
    def num_kept(self) -> int:
        return sum(part.kept for part in self._parts)

    # ---- questions

    def has(self, key: int) -> bool:
        """Whether an edge is in the graph, kept or not."""
        number = self.base.find(key)
        return key in self.added if number < 0 else bool(self.present[int(self.base.rank[number])])

    def keeps(self, key: int) -> bool:
        """Whether an edge is in the sparse graph."""
        number = self.base.find(key)
        if number < 0:
            added = self.added.get(key)
            new = self._parts[1]
            return added is not None and bool(new.kept) and added.place <= new.keys[new.kept - 1]
        rank = int(self.base.rank[number])
        return bool(self.present[rank]) and rank <= self._part_of(rank).last

    def _part_of(self, rank: int) -> RankedPrefix:
        old, _, removed = self._parts
        return old if rank < self.base.num_kept else removed

    # ---- changes

    def check(self, change: Change) -> None:
        """Refuses a change that does not fit the graph, before any of it is made."""
        nodes, after = self.state.num_nodes, self.state.num_nodes + len(change.new_nodes)
        for name, ends, limit in (("add", change.add, after), ("remove", change.remove, nodes)):
            wrong = ends[(ends < 0) | (ends >= limit)]
            if wrong.size:
                raise InputError(f"{name} has node {int(wrong[0])}: the nodes are 0 … {limit - 1}")
        for node in change.x:
            if node >= nodes:
                raise InputError(f"x has features for node {node}: the nodes are 0 … {nodes - 1}")
        if change.weight is not None and not self.state.weighted and bool((change.weight != 1).any()):
            raise InputError("the edges of this graph have no weights: leave out weight")
        gone, come = set(self.base.ordered(change.remove)), self.base.ordered(change.add)
        for key in gone:
            if not self.has(key):
                raise InputError(f"remove has the edge {ends_of(key)}, which is not in the graph")
        if change.weight is None:
            come = list(set(come))
        if len(set(come)) < len(come):
            raise InputError("add names an edge twice, with weights")
        for key in come:
            if key not in gone and self.has(key):
                raise InputError(f"add has the edge {ends_of(key)}, which is in the graph already")

    def apply(self, change: Change) -> Outcome:
        """Makes a change that :meth:`check` let pass."""
        first = self.state.num_nodes
        before: dict[int, bool] = {}  # whether an edge was kept, of all that this change touches
        reweighted: set[int] = set()
        for row in change.new_nodes:
            self.state.add_node(row)
        for key in set(self.base.ordered(change.remove)):
            before[key] = self._take_out(key)
            reweighted.add(key)
        for node, row in change.x.items():
            self.state.set_features(node, row)
            self._rescore(node, before)
        weights = self._weights(change)
        for key in dict.fromkeys(self.base.ordered(change.add)):
            before.setdefault(key, False)
            self._put_in(key, weights.get(key))
        self._settle(before)
        rows: dict[int, list[int]] = {}
        outcome = Outcome(self.state.version + 1, [], [], range(first, self.state.num_nodes), [])
        for key, was_kept in before.items():
            is_kept = self.keeps(key)
            if is_kept != was_kept:
                (outcome.kept if is_kept else outcome.dropped).append(ends_of(key))
            if is_kept != was_kept or (is_kept and key in reweighted and self.state.weighted):
                for node in self._targets(key):
                    rows.setdefault(node, []).append(key)
        for node, keys in rows.items():
            self._change_row(node, keys)
        outcome.nodes.extend(sorted({*rows, *change.x, *outcome.new_nodes}))
        self.state.version += 1
        return outcome

    def _weights(self, change: Change) -> dict[int, tuple[float, ...]]:
        """The weights of the arcs of added edges, where weights are given."""
        if change.weight is None:
            return {}
        weights: dict[int, tuple[float, ...]] = {}
        for ends, weight in zip(change.add, change.weight.tolist(), strict=True):
            for key in self.base.ordered(ends[None]):
                weights[key] = (weight,) * (2 if self.base.pairs else 1)
        return weights

    def _take_out(self, key: int) -> bool:
        """Removes an edge from the graph; whether it was kept."""
        number = self.base.find(key)
        if number >= 0:
            rank = int(self.base.rank[number])
            self.added.pop(key, None)
            return self._part_of(rank).remove(rank)
        for node in ends_of(key):
            if node in self._by_new_node:
                self._by_new_node[node].discard(key)
        return self._parts[1].remove(self.added.pop(key).place)

    def _put_in(self, key: int, weights: tuple[float, ...] | None) -> None:
        """Adds an edge to the graph; one that the run has seen takes its old place."""
        number = self.base.find(key)
        if number >= 0:
            rank = int(self.base.rank[number])
            self._part_of(rank).insert(rank)
            if self.state.weighted:  # its weights may be others than the run has seen
                self.added[key] = Added(weights or (1.0,) * (1 + self.base.pairs), (0.0, key))
            return
        self.added[key] = Added(weights or (1.0,) * (1 + self.base.pairs), self._place(key))
        self._parts[1].insert(self.added[key].place)
        for node in ends_of(key):
            if node >= self.base.probabilities.shape[0]:
                self._by_new_node.setdefault(node, set()).add(key)

    def _place(self, key: int) -> tuple[float, int]:
        u, v = ends_of(key)
        worth = agreement(self._probabilities(u), self._probabilities(v), self.base.multilabel)
        return -float(worth), key

    def _probabilities(self, node: int) -> np.ndarray:
        """The answer that stands for a node: the run's, or by its features alone where the run has not seen it."""
        if node < self.base.probabilities.shape[0]:
            return self.base.probabilities[node]
        if node not in self.alone:
            state, x = self.state, self.state.features_of(node)
            logits = answer_alone(state.graph.network, state.new_own, state.floor, x, state.weighted)
            self.alone[node] = probabilities(logits, self.base.multilabel)[0]
        return self.alone[node]

    def _rescore(self, node: int, before: dict[int, bool]) -> None:
        """Gives the edges of a new node, whose features have changed, their new places."""
        if node < self.base.probabilities.shape[0]:
            return
        self.alone.pop(node, None)
        for key in self._by_new_node.get(node, ()):
            was_kept = self._parts[1].remove(self.added[key].place)
            before.setdefault(key, was_kept)
            self.added[key].place = self._place(key)
            self._parts[1].insert(self.added[key].place)

    def _settle(self, before: dict[int, bool]) -> None:
        """Moves the ends of the parts until exactly the budget is kept."""
        counts = shares(self.base.budget(self.num_edges), *(part.total for part in self._parts))
        parts: list[RankedPrefix | SortedPrefix] = list(self._parts)
        for part, count in zip(parts, counts, strict=True):
            while part.kept != count:
                grows = part.kept < count
                found = part.grow() if grows else part.shrink()
                key = found[1] if isinstance(found, tuple) else int(self._key[found])
                before.setdefault(key, not grows)

    def _targets(self, key: int) -> tuple[int, ...]:
        u, v = ends_of(key)
        return (v, u) if self.base.pairs else (v,)

    def _arc_weight(self, key: int, target: int) -> float:
        """The weight of the arc of an edge into one of its ends."""
        side = 0 if ends_of(key)[1] == target else 1
        if key in self.added:
            return self.added[key].weights[side]
        return 1.0 if self.base.weights is None else float(self.base.weights[side, self.base.find(key)])

    def _change_row(self, node: int, keys: list[int]) -> None:
        """Brings the incoming arcs of a node up to date with the edges that have changed."""
        column, value = self.state.arcs.row(node)
        for key in keys:
            u, v = ends_of(key)
            source = u if v == node else v
            position = int(np.searchsorted(column, source))
            there = position < column.size and column[position] == source
            if there:
                column = np.delete(column, position)
                value = np.delete(value, position) if self.state.weighted else value
            if self.keeps(key):
                column = np.insert(column, position, source)
                if self.state.weighted:
                    value = np.insert(value, position, self._arc_weight(key, node))
        self.state.set_row(node, column, value if self.state.weighted else None)

    # ---- all at once

    def restore(self, present: np.ndarray, added: dict[int, tuple[float, ...]]) -> None:
        """Brings a new one to another's state: which of the run's edges are there, and which came later."""
        for rank in np.flatnonzero(~present).tolist():
            self._part_of(rank).remove(rank)
        for key, weights in added.items():
            if self.base.find(key) >= 0:
                self.added[key] = Added(weights, (0.0, key))
            else:
                self._put_in(key, weights)
        self._settle({})

    def snapshot(self) -> tuple[np.ndarray, dict[int, tuple[float, ...]]]:
        """What :meth:`restore` takes."""
        present = np.frombuffer(bytes(self.present), np.uint8).astype(bool)
        return present, {key: edge.weights for key, edge in self.added.items()}

    def rebuilt(self) -> "Living":
        """The same graph built from scratch: what step-by-step changes must equal."""
        fresh = Living(self.base, self.state.rebuilt())
        fresh.restore(*self.snapshot())
        fresh.fill()
        return fresh

    def kept_keys(self) -> np.ndarray:
        """The edges of the sparse graph."""
        old, new, removed = self._parts
        present = np.frombuffer(self.present, np.uint8).astype(bool)
        ranks = np.arange(present.size)
        inside = present & ((ranks <= old.last) | ((ranks >= removed.begin) & (ranks <= removed.last)))
        return np.concatenate([self._key[inside], np.array([key for _, key in new.keys[: new.kept]], np.int64)])

    def fill(self) -> None:
        """Gives the state the arcs of all kept edges."""
        keys = np.sort(self.kept_keys())
        u, v = keys >> 32, keys & 0xFFFFFFFF
        source, target = (np.concatenate([u, v]), np.concatenate([v, u])) if self.base.pairs else (u, v)
        order = np.argsort(edge_keys(target, source))
        weight = None
        if self.state.weighted:
            ends = zip(np.tile(keys, 2 if self.base.pairs else 1)[order], target[order], strict=True)
            weights = [self._arc_weight(int(key), int(node)) for key, node in ends]
            weight = np.array(weights or [1.0], np.float32)
        counts = np.bincount(target, minlength=self.state.num_nodes)
        start = np.concatenate([[0], np.cumsum(counts)])
        self.state.set_arcs(fixed(start, source[order].astype(np.int32), weight))


__all__ = ["Living", "Outcome"]
