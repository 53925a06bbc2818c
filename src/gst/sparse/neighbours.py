"""All arcs of a graph sorted by target, 8 bytes each, and the small blocks that mini-batches cut from them.

What a full batch needs of a graph (adjacency, receptive fields, transposes) takes hundreds of bytes per arc. A
mini-batch needs this list, and the rest only for the few rows of the batch.
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
    weight: np.ndarray | None  # [A] float32, its edge_weight; None if all are 1
    loops: Tensor  # [N] weight of the self-loops in the data, 0 for nodes without

    @classmethod
    def of(cls, pairs: Tensor, directed: bool, weights: Tensor | None, loops: Tensor) -> "Neighbours":
        """From sorted pairs by a counting sort: O(N + E)."""
        if pairs.shape[1] >= 2**31 or loops.numel() >= 2**31:
            raise OverflowError("edges and nodes are numbered with 32 bits")
        u, v = pairs.cpu().numpy()
        start, source, edge = _by_target(u, v, loops.numel(), directed)
        weight = None
        if weights is not None:
            by_edge = weights.cpu().numpy()
            weight = by_edge[0, edge] if directed else np.where(source == u[edge], by_edge[0, edge], by_edge[1, edge])
        return cls(start, source, edge, weight, loops)

    @property
    def num_nodes(self) -> int:
        return self.loops.numel()

    @cached_property
    def _mark(self) -> np.ndarray:
        """Scratch space, one number per node, −1 between calls: the cost of a block then depends only on its size."""
        return np.full(self.num_nodes, -1, np.int32)

    @cached_property
    def min_weight(self) -> float:
        """The smallest weight of an entry, the diagonal's 1 included."""
        return 1.0 if self.weight is None or not self.weight.size else min(1.0, float(self.weight.min()))

    def degree(self, edge_values: Tensor | None, dtype: torch.dtype) -> Tensor:
        """[N] diagonal plus the summed entry values of each row: D̃ of a graph convolution, as in ``gcn_norm``."""
        diagonal = torch.where(self.loops > 0, self.loops, 1.0).double().cpu().numpy()
        values = None if edge_values is None else edge_values.detach().cpu().numpy()
        return torch.from_numpy(row_sums(self.start, self.edge, values, self.weight, diagonal)).to(
            self.loops.device, dtype
        )

    def block(self, rows: Tensor, fanout: int | None = None, seed: int = 0, draw: Draw = draw_entries) -> "LocalBlock":
        """The block of one layer for these rows (sorted ids), with all of their entries or ``fanout`` drawn from each.

        Its columns are the nodes that are read. An entry drawn from the d of a row is weighted by d/fanout, so that
        sums and means are unbiased.
        """
        ids = rows.cpu().numpy()
        entries = None if fanout is None else draw(self.start, ids, fanout, seed)
        row, col, entry = _entries(self.start, self.source, ids, entries)
        nodes = _renumber(col, self._mark)
        scale = None
        if entries is not None:
            num_drawn = np.bincount(row, minlength=ids.size) - 1
            scale = ((self.start[ids + 1] - self.start[ids]) / np.maximum(num_drawn, 1))[row].astype(np.float32)
        columns, row_columns = (torch.from_numpy(part).to(rows.device) for part in (nodes, np.searchsorted(nodes, ids)))
        return self._block(rows, row, col, entry, scale, columns, row_columns)

    def run(self, rows: Tensor) -> "LocalBlock":
        """The same with all nodes as columns: O(entries), independent of the number of nodes."""
        row, col, entry = _entries(self.start, self.source, rows.cpu().numpy(), None)
        return self._block(rows, row, col, entry, None, None, rows)

    def _block(
        self,
        rows: Tensor,
        row: np.ndarray,
        col: np.ndarray,
        entry: np.ndarray,
        scale: np.ndarray | None,
        columns: Tensor | None,
        row_columns: Tensor,
    ) -> "LocalBlock":
        is_arc = entry >= 0
        arc = entry[is_arc]
        weight = None
        if self.weight is not None or scale is not None:
            scaled = np.ones(entry.size, np.float32)
            scaled[is_arc] = 1 if self.weight is None else self.weight[arc]
            if scale is not None:
                scaled[is_arc] *= scale[is_arc]
            weight = torch.from_numpy(scaled).to(rows.device)
        arrays = (row, col, is_arc, self.edge[arc].astype(np.int64))
        block_row, block_col, off_diagonal, edge = (torch.from_numpy(array).to(rows.device) for array in arrays)
        num_columns = self.num_nodes if columns is None else columns.numel()
        pattern = Pattern(block_row, block_col, (rows.numel(), num_columns))
        source = torch.where(off_diagonal, off_diagonal.cumsum(0) - 1, arc.size + block_row)
        adjacency = Adjacency(pattern, source, weight, self.loops[rows], arc.size, None, self.min_weight)
        return LocalBlock(Block(adjacency, pattern, None, columns, row_columns), edge, off_diagonal)

    def reached(self, rows: Tensor) -> Tensor:
        """Sorted ids of these rows and of all nodes that they read."""
        return torch.from_numpy(_reached(self.start, self.source, rows.cpu().numpy(), self.num_nodes)).to(rows.device)

    def chunks(self, rows: Tensor, arcs: int, pieces: int = 1) -> list[Tensor]:
        """The rows in consecutive runs of about ``arcs`` entries, at least ``pieces`` of them."""
        ids = rows.cpu().numpy()
        size = np.cumsum(np.diff(self.start)[ids] + 1)
        if not size.size:
            return []
        number = np.minimum(size // max(1, min(arcs, -(-int(size[-1]) // pieces))), size.size)
        return list(rows.split(np.unique(number, return_counts=True)[1].tolist()))


@dataclass(frozen=True)
class LocalBlock:
    """A block with an adjacency of its own, which has one value per off-diagonal entry."""

    block: Block
    edge: Tensor  # [entries] the edge of each off-diagonal entry, in the order of the values
    off_diagonal: Tensor  # [nnz] mask of the entries that are not on the diagonal

    @property
    def nodes(self) -> Tensor:
        """The node of each column."""
        assert self.block.nodes is not None
        return self.block.nodes

    def with_degree(self, degree: Tensor | Shared) -> Block:
        """The block with these D̃ of its columns."""
        return replace(self.block, adjacency=replace(self.block.adjacency, degree=degree))

    def arcs(self) -> Pattern:
        """The pattern of the off-diagonal entries."""
        pattern = self.block.pattern
        return Pattern(pattern.row[self.off_diagonal], pattern.col[self.off_diagonal], pattern.shape)


def induced_pairs(start: Tensor, v: Tensor, nodes: Tensor, mark: np.ndarray) -> tuple[Tensor, Tensor]:
    """The pairs with both ends among these nodes (sorted ids), renumbered among them, and the ids of these pairs.

    O(pairs whose first end is among them). ``start``: where the pairs of each first end begin in the sorted pairs;
    ``mark``: scratch space that is −1 for every node, before and after.
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
        slot = free[v[e]]
        source[slot], edge[slot] = u[e], e
        free[v[e]] += 1
    if not directed:
        for e in range(u.size):
            slot = free[u[e]]
            source[slot], edge[slot] = v[e], e
            free[u[e]] += 1
    return start, source, edge


@njit(cache=True)
def _entries(
    start: np.ndarray, source: np.ndarray, rows: np.ndarray, drawn: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row (among ``rows``), column (a node id) and entry (−1: the diagonal) of everything that these rows read."""
    total = rows.size
    if drawn is None:
        for i in rows:
            total += start[i + 1] - start[i]
    else:
        total += drawn.size
    row, col, entry = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    size, d = 0, 0
    for r in range(rows.size):
        i = rows[r]
        has_diagonal = False
        k, last = start[i], start[i + 1]
        while True:
            if drawn is None:
                if k == last:
                    break
                e = k
                k += 1
            else:
                if d == drawn.size or drawn[d] >= last:
                    break
                e = drawn[d]
                d += 1
            j = source[e]
            if not has_diagonal and j > i:
                row[size], col[size], entry[size] = r, i, -1
                size += 1
                has_diagonal = True
            row[size], col[size], entry[size] = r, j, e
            size += 1
        if not has_diagonal:
            row[size], col[size], entry[size] = r, i, -1
            size += 1
    return row, col, entry


@njit(cache=True)
def _renumber(col: np.ndarray, mark: np.ndarray) -> np.ndarray:
    """Renumbers the columns among those that occur, in place; returns their nodes. ``mark`` is −1, before and after."""
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
    """Adds the entry values of each row to ``sums``."""
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
