"""The message-passing matrix of a set of edges: all of it, or only the part that some outputs depend on."""

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

    Entries are the arcs of the edges and always the whole diagonal, whose values are up to the backbone. Edge values
    and diagonal become entry values by one gather. An adjacency may also be some rows of a larger matrix, with only
    the columns they read; ``degree`` and ``least`` then hold what cannot be computed from its entries.
    """

    pattern: Pattern
    source: Tensor  # [nnz] which edge an entry belongs to, or num_edges + i for the diagonal of row i
    weight: Tensor | None  # [nnz] edge_weight of the entry (1 on the diagonal); None if all are 1
    loops: Tensor  # [rows] weight of the self-loops in the data, 0 for nodes without
    num_edges: int
    degree: Tensor | Shared | None = None  # [columns] D̃, only for rows of a larger matrix
    least: float | None = None  # the smallest weight in that larger matrix
    ungated: dict[Hashable, Tensor] = field(default_factory=dict, compare=False, repr=False)  # cache of normalised()

    @property
    def min_weight(self) -> float:
        """The smallest weight of any entry."""
        return self.least or (1.0 if self.weight is None else float(self.weight.min()))

    def values(
        self, edge_values: Tensor | None, diagonal: Tensor, dtype: torch.dtype, entries: Tensor | None = None
    ) -> Tensor:
        """Values of all entries, or of ``entries``, from one value per edge (None: all 1) and one per node."""
        if edge_values is None:
            edge_values = diagonal.new_ones(self.num_edges)
        source, weight = (p if p is None or entries is None else p[entries] for p in (self.source, self.weight))
        values = torch.cat([edge_values.to(dtype), diagonal.to(dtype)])[source]
        return values if weight is None else values * weight.to(dtype)

    def normalised(self, edge_values: Tensor | None, kind: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The result of ``make``, which normalises the edge values; cached by ``kind`` if they are None (all 1)."""
        if edge_values is not None:
            return make()
        if kind not in self.ungated:
            self.ungated[kind] = make()
        return self.ungated[kind]

    def blocks(self, depth: int, nodes: Tensor | None = None) -> "list[Block]":
        """One block per layer, the first layer first, for the outputs of ``nodes`` (sorted ids; None: all)."""
        if nodes is None:
            all_nodes = torch.arange(self.pattern.shape[0], device=self.loops.device)
            return [Block(self, self.pattern, None, all_nodes, all_nodes)] * depth
        blocks: list[Block] = []
        for _ in range(depth):
            entries = row_entries(self.pattern, nodes)
            reached, col = torch.unique(self.pattern.col[entries], return_inverse=True)
            row = torch.searchsorted(nodes, self.pattern.row[entries])
            pattern = Pattern(row, col, (nodes.numel(), reached.numel()))
            blocks.insert(0, Block(self, pattern, entries, reached, torch.searchsorted(reached, nodes)))
            nodes = reached
        return blocks


@dataclass(frozen=True)
class Block:
    """The part of an adjacency that one layer needs: the output rows and the columns that they read.

    The loss of a few labelled nodes depends only on their receptive field; computing only that is exact and much
    cheaper.
    """

    adjacency: Adjacency
    pattern: Pattern  # [rows, columns], renumbered
    entries: Tensor | None  # ids of these entries in the adjacency; None: all
    nodes: Tensor | None  # the node of each column; None: all nodes are columns
    row_columns: Tensor  # the column of each row's own node

    def select(self, values: Tensor) -> Tensor:
        """The values of this block's entries, from those of all entries."""
        return values if self.entries is None else values[self.entries]

    def values(self, edge_values: Tensor | None, diagonal: Tensor, dtype: torch.dtype) -> Tensor:
        """The entry values of this block, from one value per edge (None: all 1) and one per node."""
        return self.adjacency.values(edge_values, diagonal, dtype, self.entries)
