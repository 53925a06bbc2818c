"""The message-passing matrix of a set of edges, whole or the share of it that some outputs read."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gst.sparse.csr import Pattern
from gst.sparse.sampler import row_entries
from gst.sparse.shared_grad import Shared


@dataclass(frozen=True)
class Adjacency:
    """The message-passing matrix of a set of edges: row i lists the sources of the messages into i.

    Entries are the arcs of the edges and, always, the whole diagonal; what a diagonal entry is worth is the backbone's
    business. Edge values and diagonal become entry values by one gather. Some rows of a larger matrix have as many
    columns as they read; ``degree`` and ``least`` then hold what their entries cannot tell.
    """

    pattern: Pattern
    source: Tensor  # [nnz] which edge an entry belongs to, or num_edges + i for the diagonal of row i
    weight: Tensor | None  # [nnz] weight the data gives to the entry (1 on the diagonal); None where all are 1
    loops: Tensor  # [rows] weight of the self-loops that the data carries, 0 elsewhere
    num_edges: int
    degree: Tensor | Shared | None = None  # [columns] D̃ where entries alone do not tell: rows of a larger matrix
    least: float | None = None  # the lightest weight of that larger matrix
    ungated: dict[Hashable, Tensor] = field(default_factory=dict, compare=False, repr=False)  # see normalised

    @property
    def lightest(self) -> float:
        """The smallest weight of an entry."""
        return self.least or (1.0 if self.weight is None else float(self.weight.min()))

    def values(
        self, edge_values: Tensor | None, diagonal: Tensor, dtype: torch.dtype, entries: Tensor | None = None
    ) -> Tensor:
        """Values of all entries or some, from one value per edge (None: 1) and one per node."""
        if edge_values is None:
            edge_values = diagonal.new_ones(self.num_edges)
        source, weight = (p if p is None or entries is None else p[entries] for p in (self.source, self.weight))
        values = torch.cat([edge_values.to(dtype), diagonal.to(dtype)])[source]
        return values if weight is None else values * weight.to(dtype)

    def normalised(self, edge_values: Tensor | None, kind: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """What ``make`` computes from the edge values; without any (None) it is the same in every epoch, and kept."""
        if edge_values is not None:
            return make()
        if kind not in self.ungated:
            self.ungated[kind] = make()
        return self.ungated[kind]

    def blocks(self, depth: int, nodes: Tensor | None = None) -> "list[Block]":
        """What ``depth`` layers compute for the outputs of ``nodes`` (sorted ids; None: all), first layer first."""
        if nodes is None:
            everyone = torch.arange(self.pattern.shape[0], device=self.loops.device)
            return [Block(self, self.pattern, None, everyone, everyone)] * depth
        found: list[Block] = []
        for _ in range(depth):
            entries = row_entries(self.pattern, nodes)
            reached, col = torch.unique(self.pattern.col[entries], return_inverse=True)
            row = torch.searchsorted(nodes, self.pattern.row[entries])
            pattern = Pattern(row, col, (nodes.numel(), reached.numel()))
            found.insert(0, Block(self, pattern, entries, reached, torch.searchsorted(reached, nodes)))
            nodes = reached
        return found


@dataclass(frozen=True)
class Block:
    """One layer's share of an adjacency: only the rows that are wanted and the columns that they read.

    The loss of a few labelled nodes sees only their receptive field; computing nothing else is exact and much cheaper.
    """

    adjacency: Adjacency
    pattern: Pattern  # [rows, columns], renumbered
    entries: Tensor | None  # which entries of the adjacency these are; None: all
    nodes: Tensor | None  # the node of each column; None: all nodes are columns
    own: Tensor  # the column of each row's own node

    def select(self, values: Tensor) -> Tensor:
        """Of the values of all entries, those of this block."""
        return values if self.entries is None else values[self.entries]

    def values(self, edge_values: Tensor | None, diagonal: Tensor, dtype: torch.dtype) -> Tensor:
        """The entry values of this block, from one value per edge (None: 1) and one per node."""
        return self.adjacency.values(edge_values, diagonal, dtype, self.entries)
