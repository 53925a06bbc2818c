"""The edges of a typed graph: one set over all relations, in which an edge and its reverse are one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.numbering import LOOP
from gst.graph.relations import EdgeType, Schema, by_relation
from gst.graph.select import budget, exchange, top_k
from gst.sparse.csr import Pattern

Amount = float | Mapping[Any, float] | None  # a share to remove, of all edges or relation by relation


@dataclass(frozen=True)
class TypedEdges(EdgeSet):
    """The edges of all relations, numbered by their ends in the union graph and by relation.

    Two nodes may be joined by several edges, one for each relation. Columns of protected relations and self-loops
    belong to no edge: they stay, and are not counted.

    ``pairs`` are ends in the union graph, u < v unless every relation goes one way only.
    """

    schema: Schema
    edge_relation: Tensor  # [E] the number of each edge's relation
    union: Tensor  # [2, all columns of the data] ends in the union graph
    column_weight: Tensor | None  # [all columns of the data] edge_weight where there is one, else 1
    quota: tuple[int, ...] | None = None  # how many edges of each relation stay; None: one ranking over all

    @classmethod
    def from_hetero(
        cls, data: HeteroData, target: str | None = None, protect: Any = None, sparsity: Amount = None
    ) -> "TypedEdges":
        """Validates an untrusted typed graph, then numbers its edges.

        Args:
            data: the graph.
            target: the type of the nodes with labels.
            protect: relations whose edges all stay.
            sparsity: a share by relation; relations that it does not name stay whole. A number has no effect here.
        """
        schema = Schema.of(data, target)
        protected = set(by_relation(schema, protect))
        shares = _shares(schema, sparsity, protected)
        if shares is not None:
            protected |= set(range(len(schema.relations))) - shares.keys()
        edges = cls._numbered(data, schema, protected)
        if edges.num_edges == 0:
            raise InputError("every relation is protected, or has self-loops only: no edge is left to remove")
        if shares is None:
            return edges
        counts = torch.bincount(edges.edge_relation, minlength=len(schema.relations)).tolist()
        quota = tuple(budget(n, shares[r]) if r in shares else n for r, n in enumerate(counts))
        return replace(edges, quota=quota)

    @classmethod
    def _numbered(cls, data: HeteroData, schema: Schema, protected: set[int]) -> "TypedEdges":
        union, nodes = schema.union_columns(data), sum(schema.num_nodes)
        key = torch.full((union.shape[1],), LOOP)
        one_way = all(relation.backward is None for relation in schema.relations)
        for number, relation in enumerate(schema.relations):
            for kind in relation.edge_types if number not in protected else ():
                part = schema.slices[kind]
                first, second = union[:, part] if kind == relation.forward else union[:, part].flip(0)
                swapped = torch.zeros_like(first) if one_way else (first > second).long()
                u, v = (first, second) if one_way else (torch.minimum(first, second), torch.maximum(first, second))
                if relation.backward == relation.forward:  # a pair, whichever way its arcs are listed
                    swapped.zero_()
                number_of = ((u * nodes + v) * len(schema.relations) + number) * 2 + swapped
                key[part] = torch.where(u == v, LOOP, number_of)
        edge = key[key >= 0].unique()
        column_edge = torch.where(key >= 0, torch.searchsorted(edge, key), LOOP)
        ends, relation_of = edge // 2 // len(schema.relations), edge // 2 % len(schema.relations)
        pairs = torch.stack([ends // nodes, ends % nodes])
        weighted = any("edge_weight" in data[kind] for kind in schema.edge_types)
        column_weight = None
        if weighted:
            parts = [data[kind].get("edge_weight") for kind in schema.edge_types]
            counts = schema.num_columns
            filled = [torch.ones(n) if w is None else w for w, n in zip(parts, counts, strict=True)]
            column_weight = torch.cat([part.detach().float().cpu() for part in filled])
        return cls(
            num_nodes=nodes,
            directed=one_way,
            pairs=pairs,
            columns=torch.arange(union.shape[1]),
            column_edge=column_edge,
            weights=None if column_weight is None else _edge_weights(pairs, union, column_edge, column_weight, one_way),
            loops=torch.zeros(nodes),
            schema=schema,
            edge_relation=relation_of,
            union=union,
            column_weight=column_weight,
        )

    def subset(self, keep_mask: Tensor) -> "TypedEdges":
        plain = super().subset(keep_mask)
        parts = {name: getattr(plain, name) for name in ("pairs", "columns", "column_edge", "weights")}
        return replace(self, edge_relation=self.edge_relation[keep_mask], quota=None, **parts)

    def sparse_graph(self, data: Any, keep_mask: Tensor) -> Any:
        """``data`` with the kept columns only: all edge-level attributes are filtered, no node is renumbered."""
        kept = torch.zeros(self.union.shape[1], dtype=torch.bool)
        kept[self.columns[self.to_columns(keep_mask, True)].cpu()] = True
        return typed_subgraph(data, self.schema.split(kept))

    def column_values(self, edge_values: Tensor, loop_value: float | bool) -> Any:
        """One tensor per edge type; only of a set that has all columns of the data."""
        return self.schema.split(self.to_columns(edge_values, loop_value))

    def choose(self, scores: Tensor, num_kept: int) -> Tensor:
        if self.quota is None or num_kept != self.budget():
            return top_k(scores, num_kept)
        keep_mask = torch.zeros_like(scores, dtype=torch.bool)
        for ids, count in self._by_quota:
            keep_mask[ids] = top_k(scores[ids], count)
        return keep_mask

    def exchange(self, keep_mask: Tensor, drop: Tensor, grow: Tensor, count: Any) -> tuple[Tensor, int]:
        if self.quota is None:
            return super().exchange(keep_mask, drop, grow, count)
        total, after = 0, keep_mask.clone()
        for ids, kept in self._by_quota:  # an edge goes only for one of its own relation
            swapped = count(kept, ids.numel() - kept)
            if swapped:
                after[ids] = exchange(keep_mask[ids], drop[ids], swapped, grow[ids], top_k)
                total += swapped
        return after, total

    @cached_property
    def _by_quota(self) -> list[tuple[Tensor, int]]:
        assert self.quota is not None
        return [((self.edge_relation == r).nonzero().flatten(), count) for r, count in enumerate(self.quota)]

    def budget(self, sparsity: Any = None, keep: int | None = None) -> int:
        """Number of edges to keep in all."""
        return sum(self.quota) if self.quota is not None else super().budget(sparsity, keep)

    @cached_property
    def counts(self) -> Tensor:
        """The number of edges of each relation."""
        return torch.bincount(self.edge_relation, minlength=len(self.schema.relations))

    @cached_property
    def patterns(self) -> list[tuple[Pattern, Tensor]]:
        """The edges of each relation as a matrix pattern, row = u, column = v, and their ids."""
        shape, found = (self.num_nodes, self.num_nodes), []
        for number in range(len(self.schema.relations)):
            ids = (self.edge_relation == number).nonzero().flatten()
            found.append((Pattern(self.pairs[0, ids], self.pairs[1, ids], shape), ids))
        return found

    @cached_property
    def column_relation(self) -> Tensor:
        """[C] the number of the relation of each column, protected ones included."""
        relation = torch.empty(self.union.shape[1], dtype=torch.long)
        for number, each in enumerate(self.schema.relations):
            for kind in each.edge_types:
                relation[self.schema.slices[kind]] = number
        return relation.to(self.columns.device)[self.columns]

    @cached_property
    def simple(self) -> tuple[EdgeSet, Tensor]:
        """The union graph without directions, every pair of nodes once, and which of its edges each edge here is."""
        return self._simple(torch.ones_like(self.columns, dtype=torch.bool))

    def simple_of(self, relation: int) -> tuple[EdgeSet, Tensor, Tensor]:
        """The same of one relation alone, and the ids of its edges."""
        ids = (self.edge_relation == relation).nonzero().flatten()
        graph, edge = self._simple(self.column_relation == relation)
        return graph, edge[ids], ids

    def _simple(self, chosen: Tensor) -> tuple[EdgeSet, Tensor]:
        columns = self.columns[chosen].cpu()
        index = self.union[:, columns]
        both = torch.cat([index, index.flip(0)], 1)
        weight = None if self.column_weight is None else self.column_weight[columns].repeat(2)
        graph = EdgeSet.from_edge_index(both, self.num_nodes, weight)
        edge = torch.full((self.num_edges + 1,), LOOP)
        edge[self.column_edge[chosen].cpu()] = graph.column_edge[: columns.numel()]  # LOOP is −1, the index of the last
        return graph.to(self.pairs.device), edge[:-1].to(self.pairs.device)

    def to(self, device: torch.device) -> "TypedEdges":
        moved = super().to(device)
        assert isinstance(moved, TypedEdges)
        return replace(moved, edge_relation=self.edge_relation.to(device))


def typed_subgraph(data: HeteroData, masks: Mapping[EdgeType, Tensor]) -> HeteroData:
    """``data`` with the columns of the masks; all edge-level attributes are filtered, no node is renumbered."""
    graph = data.edge_subgraph({kind: mask.to(data[kind].edge_index.device) for kind, mask in masks.items()})
    for name in data.node_types:
        if "x" not in data[name]:
            graph[name].num_nodes = data[name].num_nodes
    return graph


def _shares(schema: Schema, sparsity: Amount, protected: set[int]) -> dict[int, float] | None:
    """The share to remove of every relation that is named; None for one share of all."""
    if not isinstance(sparsity, Mapping):
        return None
    if not sparsity:
        raise InputError("sparsity names no relation: give a share, or one for every relation that may lose edges")
    shares: dict[int, float] = {}
    for name, share in sparsity.items():
        number = schema.find(name)
        relation = schema.relations[number].name
        if number in protected:
            raise InputError(f"relation {relation} is protected and has a sparsity: give one or the other")
        if number in shares:
            raise InputError(f"relation {relation} has two sparsities: an edge and its reverse are one")
        budget(1, share)
        shares[number] = share
    return shares


def _edge_weights(pairs: Tensor, union: Tensor, column_edge: Tensor, weight: Tensor, one_way: bool) -> Tensor:
    """[1 or 2, E] the summed weight of each edge's columns in both directions; one that is missing is as the other."""
    real = column_edge >= 0
    edge = column_edge[real]
    back = torch.zeros_like(edge) if one_way else (union[0, real] > union[1, real]) * pairs.shape[1]
    weights = torch.zeros(1 if one_way else 2, pairs.shape[1])
    weights.view(-1).index_add_(0, edge + back, weight[real])
    return weights if one_way else torch.where(weights == 0, weights.flip(0), weights)
