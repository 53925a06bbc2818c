"""All arcs of a graph by target, 8 bytes each, and the small blocks that are read of it.

What a full batch needs of a graph (adjacency, receptive fields, transposes) takes hundreds of bytes an arc. A
mini-batch needs this list, and the rest for its own few rows only.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.sparse.adjacency import Adjacency, Block
from gst.sparse.csr import Pattern
from gst.sparse.sampler import Draw, draw_entries
from gst.sparse.shared_grad import Shared


@dataclass(frozen=True)
class Neighbours:
    """Row i lists the sources of the messages into i, ascending, without i itself."""

    start: np.ndarray  # [N + 1] int64, where each row begins
    source: np.ndarray  # [A] int32
    edge: np.ndarray  # [A] int32, which edge an entry belongs to
    weight: np.ndarray | None  # [A] float32, what the data gives to it; None where all are 1
    loops: Tensor  # [N] weight of the self-loops that the data carries

    @classmethod
    def of(cls, pairs: Tensor, directed: bool, weights: Tensor | None, loops: Tensor) -> "Neighbours":
        """From sorted pairs, by counting: O(N + E)."""
        if pairs.shape[1] >= 2**31 or loops.numel() >= 2**31:
            raise OverflowError("edges and nodes are numbered with 32 bits")
        u, v = pairs.cpu().numpy()
        start, source, edge = _by_target(u, v, loops.numel(), directed)
        weight = None
        if weights is not None:
            given = weights.cpu().numpy()
            weight = given[0, edge] if directed else np.where(source == u[edge], given[0, edge], given[1, edge])
        return cls(start, source, edge, weight, loops)

    @property
    def num_nodes(self) -> int:
        return self.loops.numel()

    @cached_property
    def _mark(self) -> np.ndarray:
        """Room for a number per node, −1 between two calls: a block costs what it reads, however large the graph."""
        return np.full(self.num_nodes, -1, np.int32)

    @cached_property
    def lightest(self) -> float:
        """The smallest weight of an entry, the diagonal's 1 included."""
        return 1.0 if self.weight is None or not self.weight.size else min(1.0, float(self.weight.min()))

    def degree(self, edge_values: Tensor | None, dtype: torch.dtype) -> Tensor:
        """[N] diagonal and summed entry values of each row: D̃ of a graph convolution, as in ``gcn_norm``."""
        diagonal = torch.where(self.loops > 0, self.loops, 1.0).double().cpu().numpy()
        values = None if edge_values is None else edge_values.detach().cpu().numpy()
        return torch.from_numpy(row_sums(self.start, self.edge, values, self.weight, diagonal)).to(
            self.loops.device, dtype
        )

    def block(self, rows: Tensor, fanout: int | None = None, seed: int = 0, draw: Draw = draw_entries) -> "LocalBlock":
        """What one layer computes for these rows (sorted ids), reading all of their entries or ``fanout`` of each.

        Columns are those that are read. An entry drawn from d of a row stands for d/fanout of them: sums and means are
        then right on average.
        """
        ids = rows.cpu().numpy()
        entries = None if fanout is None else draw(self.start, ids, fanout, seed)
        row, col, entry = _entries(self.start, self.source, ids, entries)
        nodes = _renumber(col, self._mark)
        share = None
        if entries is not None:
            drawn = np.bincount(row, minlength=ids.size) - 1
            share = ((self.start[ids + 1] - self.start[ids]) / np.maximum(drawn, 1))[row].astype(np.float32)
        columns, own = (torch.from_numpy(part).to(rows.device) for part in (nodes, np.searchsorted(nodes, ids)))
        return self._block(rows, row, col, entry, share, columns, own)

    def run(self, rows: Tensor) -> "LocalBlock":
        """The same with all nodes as columns: O(entries), however many nodes there are."""
        row, col, entry = _entries(self.start, self.source, rows.cpu().numpy(), None)
        return self._block(rows, row, col, entry, None, None, rows)

    def _block(
        self,
        rows: Tensor,
        row: np.ndarray,
        col: np.ndarray,
        entry: np.ndarray,
        share: np.ndarray | None,
        columns: Tensor | None,
        own: Tensor,
    ) -> "LocalBlock":
        is_arc = entry >= 0
        arc = entry[is_arc]
        weight = None
        if self.weight is not None or share is not None:
            stands_for = np.ones(entry.size, np.float32)
            stands_for[is_arc] = 1 if self.weight is None else self.weight[arc]
            if share is not None:
                stands_for[is_arc] *= share[is_arc]
            weight = torch.from_numpy(stands_for).to(rows.device)
        found = (row, col, is_arc, self.edge[arc].astype(np.int64))
        at_row, at_col, off, edge = (torch.from_numpy(part).to(rows.device) for part in found)
        pattern = Pattern(at_row, at_col, (rows.numel(), self.num_nodes if columns is None else columns.numel()))
        place = torch.where(off, off.cumsum(0) - 1, arc.size + at_row)
        adjacency = Adjacency(pattern, place, weight, self.loops[rows], arc.size, None, self.lightest)
        return LocalBlock(Block(adjacency, pattern, None, columns, own), edge, off)

    def reached(self, rows: Tensor) -> Tensor:
        """Sorted ids of these rows and of all that they read."""
        return torch.from_numpy(_reached(self.start, self.source, rows.cpu().numpy(), self.num_nodes)).to(rows.device)

    def chunks(self, rows: Tensor, arcs: int, pieces: int = 1) -> list[Tensor]:
        """The rows in runs of about ``arcs`` entries, at least ``pieces`` of them."""
        ids = rows.cpu().numpy()
        size = np.cumsum(np.diff(self.start)[ids] + 1)
        if not size.size:
            return []
        number = np.minimum(size // max(1, min(arcs, -(-int(size[-1]) // pieces))), size.size)
        return list(rows.split(np.unique(number, return_counts=True)[1].tolist()))


@dataclass(frozen=True)
class LocalBlock:
    """A block whose adjacency holds its own entries alone, each with a value of its own."""

    block: Block
    edge: Tensor  # [entries] the edge of each entry that is not on the diagonal, in the order of its values
    off: Tensor  # [nnz] which entries are not on the diagonal

    @property
    def nodes(self) -> Tensor:
        """The node of each column."""
        assert self.block.nodes is not None
        return self.block.nodes

    def with_degree(self, degree: Tensor | Shared) -> Block:
        """The block with D̃ of its columns."""
        return replace(self.block, adjacency=replace(self.block.adjacency, degree=degree))

    def arcs(self) -> Pattern:
        """The pattern without its diagonal, whose entries have the values."""
        pattern = self.block.pattern
        return Pattern(pattern.row[self.off], pattern.col[self.off], pattern.shape)


def induced_pairs(start: Tensor, v: Tensor, nodes: Tensor, mark: np.ndarray) -> tuple[Tensor, Tensor]:
    """The pairs with both ends among these nodes (sorted ids), in their numbering, and which pairs they are.

    O(pairs whose first end is among them): ``start`` says where in the sorted pairs those of each first end begin, and
    ``mark`` is −1 for every node, before and after.
    """
    pairs, ids = _induced(start.numpy(), v.numpy(), nodes.numpy(), mark)
    return torch.from_numpy(pairs), torch.from_numpy(ids)


@njit(cache=True)
def _by_target(u: np.ndarray, v: np.ndarray, nodes: int, directed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start = np.zeros(nodes + 1, np.int64)
    for e in range(u.size):
        start[v[e] + 1] += 1
        if not directed:
            start[u[e] + 1] += 1
    for i in range(nodes):
        start[i + 1] += start[i]
    source, edge = np.empty(start[nodes], np.int32), np.empty(start[nodes], np.int32)
    free = start[:-1].copy()
    for e in range(u.size):  # pairs are sorted: every row gets its lower sources first, in order
        place = free[v[e]]
        source[place], edge[place] = u[e], e
        free[v[e]] += 1
    if not directed:
        for e in range(u.size):
            place = free[u[e]]
            source[place], edge[place] = v[e], e
            free[u[e]] += 1
    return start, source, edge


@njit(cache=True)
def _entries(
    start: np.ndarray, source: np.ndarray, rows: np.ndarray, drawn: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row (of these), column (of all nodes) and entry (−1: the diagonal) of all that some rows read."""
    total = rows.size
    if drawn is None:
        for i in rows:
            total += start[i + 1] - start[i]
    else:
        total += drawn.size
    row, col, entry = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    size, place = 0, 0
    for r in range(rows.size):
        i = rows[r]
        placed = False
        k, last = start[i], start[i + 1]
        while True:
            if drawn is None:
                if k == last:
                    break
                e = k
                k += 1
            else:
                if place == drawn.size or drawn[place] >= last:
                    break
                e = drawn[place]
                place += 1
            j = source[e]
            if not placed and j > i:
                row[size], col[size], entry[size] = r, i, -1
                size += 1
                placed = True
            row[size], col[size], entry[size] = r, j, e
            size += 1
        if not placed:
            row[size], col[size], entry[size] = r, i, -1
            size += 1
    return row, col, entry


@njit(cache=True)
def _renumber(col: np.ndarray, mark: np.ndarray) -> np.ndarray:
    """Columns numbered among those that occur, in place; the node of each. ``mark`` is −1, before and after."""
    reached = np.empty(min(col.size, mark.size), np.int64)
    count = 0
    for j in col:
        if mark[j] < 0:
            mark[j] = 0
            reached[count] = j
            count += 1
    nodes = np.sort(reached[:count])
    for c in range(count):
        mark[nodes[c]] = c
    for k in range(col.size):
        col[k] = mark[col[k]]
    for i in nodes:
        mark[i] = -1
    return nodes


@njit(cache=True)
def row_sums(
    start: np.ndarray, edge: np.ndarray, values: np.ndarray | None, weight: np.ndarray | None, sums: np.ndarray
) -> np.ndarray:
    """Adds what the entries of each row are worth."""
    for i in range(start.size - 1):
        for k in range(start[i], start[i + 1]):
            value = 1.0 if values is None else values[edge[k]]
            sums[i] += value if weight is None else value * weight[k]
    return sums


@njit(cache=True)
def _reached(start: np.ndarray, source: np.ndarray, rows: np.ndarray, nodes: int) -> np.ndarray:
    seen = np.zeros(nodes, np.bool_)
    for i in rows:
        seen[i] = True
        for k in range(start[i], start[i + 1]):
            seen[source[k]] = True
    return np.flatnonzero(seen)


@njit(cache=True)
def _induced(start: np.ndarray, v: np.ndarray, nodes: np.ndarray, mark: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    for c in range(nodes.size):
        mark[nodes[c]] = c
    count = 0
    for i in nodes:
        for e in range(start[i], start[i + 1]):
            count += mark[v[e]] >= 0
    pairs, ids = np.empty((2, count), np.int64), np.empty(count, np.int64)
    count = 0
    for c in range(nodes.size):
        for e in range(start[nodes[c]], start[nodes[c] + 1]):
            if mark[v[e]] >= 0:
                pairs[0, count], pairs[1, count], ids[count] = c, mark[v[e]], e
                count += 1
    for i in nodes:
        mark[i] = -1
    return pairs, ids
