"""EdgeSet: what an edge is, and how edges, arcs and the columns of ``edge_index`` relate.

*Edge*: in an undirected graph an unordered pair {i, j}, i ≠ j, whose two arcs are kept or removed together and count
once; in a directed graph an arc, and in an undirected one too where edges are counted by arcs. Duplicate columns belong
to one edge. Self-loops in the data are always kept and never counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.text import shown
from gst.graph.adjacency_input import restricted
from gst.graph.numbering import LOOP, kept_columns, kept_pairs, number_edges
from gst.graph.select import budget, exchange
from gst.graph.shared_select import shared_top_k
from gst.sparse.adjacency import Adjacency
from gst.sparse.csr import Pattern
from gst.sparse.layouts import check_features
from gst.sparse.neighbours import Neighbours, induced_pairs

By = Literal["pairs", "arcs"]  # what counts as an edge of an undirected graph


@dataclass(frozen=True)
class EdgeSet:
    """The edges of a graph, numbered by (u, v).

    >>> edges = EdgeSet.from_edge_index(torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]), num_nodes=4)
    >>> edges.num_edges, edges.directed, edges.pairs.tolist(), edges.column_edge.tolist()
    (2, False, [[0, 1], [1, 2]], [0, 0, 1, 1, -1])
    >>> edges.subset(torch.tensor([False, True])).columns.tolist()
    [2, 3, 4]
    >>> arcs = EdgeSet.from_edge_index(torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]), num_nodes=4, by="arcs")
    >>> arcs.num_edges, arcs.directed, arcs.symmetric
    (4, True, True)
    """

    num_nodes: int
    directed: bool  # whether every edge is a single arc
    pairs: Tensor  # [2, E] u < v when undirected, source and target when directed; sorted
    columns: Tensor  # [C] the columns of the data's edge_index that belong to this set, ascending
    column_edge: Tensor  # [C] the edge of each column, LOOP for self-loops
    weights: Tensor | None  # [1 or 2, E] summed edge_weight of the columns u → v and, if undirected, v → u; None: all 1
    loops: Tensor  # [N] summed weight of the self-loop columns of each node

    @classmethod
    def from_data(cls, data: Data, by: By = "pairs") -> "EdgeSet":
        """Validates an untrusted graph, then numbers its edges: in a directed one arcs, whatever ``by`` says."""
        check_graph(data)
        return cls.from_edge_index(data.edge_index, int(data.num_nodes), data.get("edge_weight"), by)

    @classmethod
    def from_edge_index(
        cls, edge_index: Tensor, num_nodes: int, weight: Tensor | None = None, by: By = "pairs"
    ) -> "EdgeSet":
        index = edge_index.as_subclass(Tensor).cpu()
        directed, *numbered = number_edges(index.numpy(), num_nodes, check_by(by) == "arcs")
        pairs, column_edge = map(torch.from_numpy, numbered)
        is_loop = column_edge == LOOP
        column_weight = torch.ones(index.shape[1]) if weight is None else weight.detach().float().cpu()
        weights = column_weight.new_zeros(1 if directed else 2, pairs.shape[1])
        if weight is None and index.shape[1] - int(is_loop.sum()) == weights.numel():  # every arc has one column
            weights.fill_(1)
        else:
            back = 0 if directed else (index[0] > index[1]) * pairs.shape[1]
            weights.view(-1).index_add_(0, (column_edge + back)[~is_loop], column_weight[~is_loop])
        edges = cls(
            num_nodes=num_nodes,
            directed=directed,
            pairs=pairs,
            columns=torch.arange(index.shape[1]),
            column_edge=column_edge,
            weights=None if bool((weights == 1).all()) else weights,
            loops=column_weight.new_zeros(num_nodes).index_add_(0, index[0, is_loop], column_weight[is_loop]),
        )
        return edges.to(edge_index.device)

    @property
    def num_edges(self) -> int:
        return self.pairs.shape[1]

    @property
    def by(self) -> By:
        """What counts as an edge."""
        return "arcs" if self.directed else "pairs"

    @cached_property
    def symmetric(self) -> bool:
        """Whether every arc has its opposite, as in an undirected graph, also where edges are counted by arcs."""
        return not self.directed or torch.equal(self.arcs.flip(0), self.pairs)

    @cached_property
    def _arc_order(self) -> Tensor:
        """The permutation that sorts all arcs u → v, followed by all v → u if undirected, by target, then source.

        Arcs with the same target are in order already, since pairs are sorted and u < v: a stable sort by target does.
        """
        target = self.pairs[1] if self.directed else self.pairs.flip(0).flatten()
        return torch.sort(target, stable=True).indices

    @cached_property
    def arcs(self) -> Tensor:
        """[2, A] distinct (source, target) without self-loops, sorted by target, then source."""
        both = self.pairs if self.directed else torch.cat([self.pairs, self.pairs.flip(0)], dim=1)
        return both[:, self._arc_order]

    @cached_property
    def arc_weight(self) -> Tensor | None:
        """[A] summed ``edge_weight`` of the columns of each arc; None if all are 1."""
        return None if self.weights is None else self.weights.flatten()[self._arc_order]

    @cached_property
    def arc_edge(self) -> Tensor:
        """[A] the edge of each arc."""
        return self._arc_order if self.directed else self._arc_order % self.num_edges

    def subset(self, keep_mask: Tensor) -> "EdgeSet":
        """The kept edges, renumbered 0 … num_kept − 1 in their old order; columns still refer to the data."""
        device = self.pairs.device
        mask = keep_mask.cpu().numpy()
        kept = kept_columns(mask, self.columns.cpu().numpy(), self.column_edge.cpu().numpy())
        columns, column_edge = (torch.from_numpy(part).to(device) for part in kept)
        return EdgeSet(
            num_nodes=self.num_nodes,
            directed=self.directed,
            pairs=torch.from_numpy(kept_pairs(self.pairs.cpu().numpy(), mask)).to(device),
            columns=columns,
            column_edge=column_edge,
            weights=None if self.weights is None else self.weights[:, keep_mask],
            loops=self.loops,
        )

    def to_columns(self, edge_values: Tensor, loop_value: float | bool) -> Tensor:
        """One value per column from one per edge."""
        padded = torch.cat([edge_values, edge_values.new_full((1,), loop_value)])
        return padded[self.column_edge]  # LOOP is −1, the index of the last

    def column_values(self, edge_values: Tensor, loop_value: float | bool) -> Any:
        """The same in the form of a result."""
        return self.to_columns(edge_values, loop_value)

    def budget(self, sparsity: Any = None, keep: int | None = None) -> int:
        """Number of edges to keep."""
        return budget(self.num_edges, sparsity, keep)

    def choose(self, scores: Tensor, num_kept: int) -> Tensor:
        """Mask of the edges of highest score."""
        return shared_top_k(scores, num_kept)

    def exchange(
        self, keep_mask: Tensor, drop: Tensor, grow: Tensor, count: Callable[[int, int], int]
    ) -> tuple[Tensor, int]:
        """One update (drop → regrow), and how many edges it exchanged: ``count`` of those kept and those pruned."""
        num_kept = int(keep_mask.sum())
        swapped = count(num_kept, self.num_edges - num_kept)
        return exchange(keep_mask, drop, swapped, grow, shared_top_k) if swapped else keep_mask, swapped

    def sparse_graph(self, data: Data, keep_mask: Tensor) -> Data:
        """``data`` with the kept columns only: all edge-level attributes are filtered, no node is renumbered."""
        graph = restricted(data, self.columns[self.to_columns(keep_mask, True)].to(data.edge_index.device))
        graph.num_nodes = self.num_nodes
        return graph

    def edge_mean(self, arc_values: Tensor) -> Tensor:
        """Mean over the arcs of each edge: two in an undirected graph, one in a directed graph."""
        total = arc_values.new_zeros(self.num_edges).index_add(0, self.arc_edge, arc_values)
        return total if self.directed else total / 2

    @cached_property
    def edge_weight(self) -> Tensor:
        """Weight of every edge: the mean over its arcs."""
        return self.loops.new_ones(self.num_edges) if self.weights is None else self.weights.mean(0)

    @cached_property
    def degree(self) -> Tensor:
        """Number of edges at each node; in a directed graph, of arcs in and out."""
        return torch.bincount(self.pairs.flatten(), minlength=self.num_nodes)

    @cached_property
    def arc_pattern(self) -> Pattern:
        """The arcs as a matrix pattern: row = target, column = source."""
        return Pattern(self.arcs[1], self.arcs[0], (self.num_nodes, self.num_nodes))

    @cached_property
    def adjacency(self) -> Adjacency:
        """The message-passing matrix."""
        nodes = torch.arange(self.num_nodes, device=self.arcs.device)
        row, col = torch.cat([self.arcs[1], nodes]), torch.cat([self.arcs[0], nodes])
        order = torch.sort(row * self.num_nodes + col).indices
        weight = None
        if self.arc_weight is not None:
            weight = torch.cat([self.arc_weight, torch.ones_like(self.loops)])[order]
        return Adjacency(
            pattern=Pattern(row[order], col[order], (self.num_nodes, self.num_nodes)),
            source=torch.cat([self.arc_edge, self.num_edges + nodes])[order],
            weight=weight,
            loops=self.loops,
            num_edges=self.num_edges,
        )

    @cached_property
    def underlying(self) -> "EdgeSet":
        """The undirected graph underlying a directed one; its first columns are the arcs, in their order."""
        return EdgeSet.from_edge_index(torch.cat([self.pairs, self.pairs.flip(0)], dim=1), self.num_nodes)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The arcs by target in a compact form, for mini-batches."""
        return Neighbours.of(self.pairs, self.directed, self.weights, self.loops)

    @cached_property
    def _by_first_end(self) -> tuple[Tensor, np.ndarray]:
        """Where the pairs of each first end begin, and scratch space of one number per node."""
        counts = torch.bincount(self.pairs[0].cpu(), minlength=self.num_nodes)
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), np.full(self.num_nodes, -1, np.int32)

    def induced(self, nodes: Tensor) -> tuple["EdgeSet", Tensor]:
        """The edges among these nodes (sorted ids), renumbered and without columns, and the ids of these edges.

        O(edges at the nodes), however large the graph.
        """
        start, mark = self._by_first_end
        pairs, ids = induced_pairs(start, self.pairs[1].cpu(), nodes.cpu(), mark)
        device = self.pairs.device
        part = EdgeSet(
            num_nodes=nodes.numel(),
            directed=self.directed,
            pairs=pairs.to(device),
            columns=self.columns[:0],
            column_edge=self.column_edge[:0],
            weights=None if self.weights is None else self.weights[:, ids.to(device)],
            loops=self.loops[nodes],
        )
        return part, ids.to(device)

    @cached_property
    def components(self) -> Tensor:
        """The connected component of every node, 0, 1, …; directions do not matter."""
        u, v = self.pairs.cpu().numpy()
        matrix = coo_matrix((np.ones(u.size), (u, v)), shape=(self.num_nodes, self.num_nodes))
        return torch.from_numpy(connected_components(matrix, directed=False)[1]).long()

    def to(self, device: torch.device) -> "EdgeSet":
        """A copy on another device."""
        return replace(
            self,
            pairs=self.pairs.to(device),
            columns=self.columns.to(device),
            column_edge=self.column_edge.to(device),
            weights=None if self.weights is None else self.weights.to(device),
            loops=self.loops.to(device),
        )


def undirected(score: Callable[[EdgeSet], Tensor]) -> Callable[[EdgeSet], Tensor]:
    """Extends a score of undirected pairs to directed graphs, by scoring the underlying undirected graph.

    An arc gets the score of its pair, so both directions score alike.
    """

    @wraps(score)
    def of_pairs(edges: EdgeSet) -> Tensor:
        if not edges.directed:
            return score(edges)
        return score(edges.underlying)[edges.underlying.column_edge[: edges.num_edges]]

    return of_pairs


def check_by(by: Any) -> By:
    """``by``, if it says what counts as an edge."""
    if by not in get_args(By):
        raise InputError(f"by = {shown(repr(by))}: choose from {', '.join(sorted(get_args(By)))}")
    return "arcs" if by == "arcs" else "pairs"


def check_data(data: object) -> Tensor:
    """The ``edge_index`` of a graph; anything that is not a graph is refused with one clear line."""
    if not isinstance(data, Data):
        raise InputError(f"data is a {type(data).__name__}: a torch_geometric.data.Data is needed")
    index = data.get("edge_index")
    if not isinstance(index, Tensor):
        raise InputError("data has no edge_index: a [2, columns] tensor of node ids is needed")
    return index


def check_graph(data: Data) -> None:
    """Refuses a graph with an invalid structure or invalid features, with one clear line."""
    index = check_data(data)
    if index.dim() != 2 or index.shape[0] != 2:
        raise InputError(f"edge_index has shape {list(index.shape)}: [2, columns] is needed")
    if index.dtype != torch.int64:
        raise InputError(f"edge_index holds {index.dtype}: torch.int64 is needed")
    x = data.get("x")
    if x is None and "num_nodes" not in data:
        raise InputError("data has neither x nor num_nodes: the number of nodes is unknown")
    nodes = int(data.num_nodes or 0)
    if nodes == 0 or index.shape[1] == 0 or bool((index[0] == index[1]).all()):
        raise InputError(f"the graph is empty ({nodes} nodes, {index.shape[1]} columns): at least one edge is needed")
    if index.min() < 0 or index.max() >= nodes:
        bad = ((index < 0) | (index >= nodes)).any(0).nonzero()
        column = int(bad[0])
        raise InputError(
            f"edge_index column {column} is {index[:, column].tolist()}: node ids must lie in 0 … {nodes - 1} "
            f"({bad.numel()} bad columns)"
        )
    if x is not None:
        check_features(x)
    weight = data.get("edge_weight")
    if weight is not None:
        if not isinstance(weight, Tensor) or list(weight.shape) != [index.shape[1]]:
            raise InputError(
                f"edge_weight has shape {list(getattr(weight, 'shape', []))}: one number per column is needed, "
                f"[{index.shape[1]}]"
            )
        if not bool(torch.isfinite(weight).all() and (weight > 0).all()):
            raise InputError("edge_weight has values that are not positive and finite: leave out edges of weight 0")
