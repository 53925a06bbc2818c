"""The node types and relations of a typed graph, and how they are numbered as one graph: the union graph.

The nodes of the target type, whose labels a model learns, come first; then those of the other types. Columns are those
of all relations, one relation after the other. A *relation* is all that belongs together: an edge type and, where the
data has it, its reverse (``rev_…`` by name, or the same edges the other way round). An edge and its reverse are one
edge.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.base.text import choices, shown
from gst.sparse.layouts import check_features

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class Relation:
    """An edge type with its reverse; one from a type to itself may be its own reverse."""

    forward: EdgeType
    backward: EdgeType | None = None  # equal to ``forward``: every edge is there in both directions

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        return (self.forward,) if self.backward in (None, self.forward) else (self.forward, self.backward)  # type: ignore[return-value]

    @property
    def name(self) -> str:
        """The name of the edge type as PyG writes it."""
        return "__".join(self.forward)


@dataclass(frozen=True)
class Schema:
    """Which types a typed graph has, and how its nodes and columns are numbered in the union graph."""

    node_types: tuple[str, ...]  # the target type first
    num_nodes: tuple[int, ...]  # of each
    edge_types: tuple[EdgeType, ...]  # in the order of the data
    num_columns: tuple[int, ...]  # of each
    relations: tuple[Relation, ...]

    @classmethod
    def of(cls, data: HeteroData, target: str | None = None) -> "Schema":
        """The schema of a typed graph, which is checked first; ``target``: the type of the nodes with labels."""
        check_typed(data)
        target = find_target(data, target) if target is not None or _labelled(data) else data.node_types[0]
        return cls.stored(data, target)

    @classmethod
    def stored(cls, data: HeteroData, target: str) -> "Schema":
        """The schema of a graph that was checked."""
        node_types = (target, *(name for name in data.node_types if name != target))
        return cls(
            node_types,
            tuple(int(data[name].num_nodes) for name in node_types),
            tuple(data.edge_types),
            tuple(data[kind].edge_index.shape[1] for kind in data.edge_types),
            find_relations(data),
        )

    @property
    def target(self) -> str:
        return self.node_types[0]

    @cached_property
    def offset(self) -> dict[str, int]:
        """The number of the first node of each type."""
        return {name: sum(self.num_nodes[:i]) for i, name in enumerate(self.node_types)}

    @cached_property
    def size(self) -> dict[str, int]:
        """The number of nodes of each type."""
        return dict(zip(self.node_types, self.num_nodes, strict=True))

    @cached_property
    def slices(self) -> dict[EdgeType, slice]:
        """Where the columns of each edge type are."""
        ends = torch.tensor([0, *self.num_columns]).cumsum(0).tolist()
        return {kind: slice(ends[i], ends[i + 1]) for i, kind in enumerate(self.edge_types)}

    def split(self, values: Tensor) -> dict[EdgeType, Tensor]:
        """One tensor per edge type from one value per column."""
        return {kind: values[part] for kind, part in self.slices.items()}

    def join(self, values: dict[EdgeType, Tensor]) -> Tensor:
        """The inverse of :meth:`split`."""
        return torch.cat([values[kind] for kind in self.edge_types])

    def union_columns(self, data: HeteroData) -> Tensor:
        """[2, columns] source and target of every column in the union graph."""
        parts = []
        for kind in self.edge_types:
            shift = torch.tensor([[self.offset[kind[0]]], [self.offset[kind[2]]]])
            parts.append(data[kind].edge_index.cpu() + shift)
        return torch.cat(parts, 1)

    def find(self, name: str | EdgeType) -> int:
        """The number of a relation: by an edge type, or by its middle name where only one relation has it."""
        wanted = tuple(name) if isinstance(name, list | tuple) else name
        named: dict[object, int] = {}
        middle = Counter(kind[1] for relation in self.relations for kind in {*relation.edge_types})
        for number, relation in enumerate(self.relations):
            for kind in relation.edge_types:
                named |= {kind: number, "__".join(kind): number}
                if middle[kind[1]] == 1:
                    named[kind[1]] = number
        if wanted not in named:
            known = [key for key in named if isinstance(key, str) and "__" not in key]
            every = [*known, *("__".join(relation.forward) for relation in self.relations)]
            raise InputError(f"unknown relation '{shown(wanted)}': choose from {choices(every, str(name))}")
        return named[wanted]


def check_typed(data: object, sparse: bool = False) -> None:
    """Refuses a typed graph with an invalid structure or invalid features, with one clear line.

    ``sparse``: whether relations may have lost all their edges.
    """
    if not isinstance(data, HeteroData):
        raise InputError(f"data is a {type(data).__name__}: a torch_geometric.data.HeteroData is needed")
    if not data.edge_types:
        raise InputError("the typed graph has no relation: at least one edge_index is needed")
    named = {name for kind in data.edge_types for name in (kind[0], kind[2])}
    if missing := sorted(named - set(data.node_types)):
        raise InputError(f"an edge type names the node type {shown(missing[0])!r}, which the graph does not have")
    for name in data.node_types:
        store = data[name]
        x = store.get("x")
        if x is None and not any(key in store for key in ("num_nodes", "pos", "feat")):
            raise InputError(f"node type {shown(name)!r} has neither x nor num_nodes: the number of nodes is unknown")
        if x is not None:
            try:
                check_features(x)
            except InputError as error:
                raise InputError(f"node type {shown(name)!r}: {error}") from None
            if store.get("num_nodes", x.shape[0]) != x.shape[0]:
                raise InputError(
                    f"node type {shown(name)!r} has {x.shape[0]} rows of x, num_nodes says {store.num_nodes}"
                )
    for kind in data.edge_types:
        _check_columns(data, kind, sparse)
    if len(data.node_types) == 1 and len(data.edge_types) == 1:
        raise InputError(
            "the graph has one node type and one relation: it is no typed graph, give data.to_homogeneous()"
        )


def _check_columns(data: HeteroData, kind: EdgeType, sparse: bool) -> None:
    name, store = "__".join(kind), data[kind]
    index = store.get("edge_index")
    if not isinstance(index, Tensor):
        raise InputError(f"relation {name} has no edge_index: a [2, columns] tensor of node ids is needed")
    if index.dim() != 2 or index.shape[0] != 2:
        raise InputError(f"edge_index of {name} has shape {list(index.shape)}: [2, columns] is needed")
    if index.dtype != torch.int64:
        raise InputError(f"edge_index of {name} holds {index.dtype}: torch.int64 is needed")
    if index.shape[1] == 0 and not sparse:
        raise InputError(f"relation {name} has no edges: leave it out")
    for row, end in enumerate((kind[0], kind[2])):
        nodes = int(data[end].num_nodes or 0)
        bad = ((index[row] < 0) | (index[row] >= nodes)).nonzero()
        if bad.numel():
            column = int(bad[0])
            raise InputError(
                f"edge_index of {name}: column {column} is {index[:, column].tolist()}, "
                f"but {shown(end)!r} has the nodes 0 … {nodes - 1} ({bad.numel()} bad columns)"
            )
    weight = store.get("edge_weight")
    if weight is None:
        return
    if not isinstance(weight, Tensor) or list(weight.shape) != [index.shape[1]]:
        raise InputError(f"edge_weight of {name} has not one number per column, [{index.shape[1]}]")
    if not bool(torch.isfinite(weight).all() and (weight > 0).all()):
        raise InputError(f"edge_weight of {name} has values that are not positive and finite: leave out such edges")


def _labelled(data: HeteroData) -> list[str]:
    return [name for name in data.node_types if data[name].get("y") is not None]


def find_target(data: HeteroData, target: str | None = None) -> str:
    """The type of the nodes with labels; where several have them, or none, one line asks for it."""
    if target is not None:
        if target not in data.node_types:
            raise InputError(
                f"unknown node type '{shown(target)}': choose from {choices(data.node_types, str(target))}"
            )
        return target
    labelled = _labelled(data)
    with_split = [name for name in labelled if data[name].get("train_mask") is not None]
    found = with_split or labelled
    if len(found) != 1:
        what = f"the node types {', '.join(map(repr, found))} have labels" if found else "no node type has labels (y)"
        raise InputError(f"{what}: one is needed, name it by target=")
    return found[0]


def find_relations(data: HeteroData) -> tuple[Relation, ...]:
    """Every edge type with its reverse: by the name ``rev_…``, or by the same edges the other way round."""
    kinds, partner = list(data.edge_types), dict[EdgeType, EdgeType]()
    for kind in kinds:
        reverse = (kind[2], f"rev_{kind[1]}", kind[0])
        if reverse in kinds and kind not in partner and reverse not in partner:
            partner |= {kind: reverse, reverse: kind}
    keys = {kind: _keys(data, kind, kind) for kind in kinds if kind not in partner}
    for kind, key in keys.items():
        if kind[0] == kind[2] and torch.equal(key, _keys(data, kind, kind, flip=True)):
            partner[kind] = kind
    for number, kind in enumerate(keys):
        if kind in partner or keys[kind].numel() == 0:
            continue
        for other in list(keys)[number + 1 :]:
            ends_fit = (other[0], other[2]) == (kind[2], kind[0]) and other not in partner
            if ends_fit and torch.equal(keys[kind], _keys(data, other, kind, flip=True)):
                partner |= {kind: other, other: kind}
                break
    seen: set[EdgeType] = set()
    relations = []
    for kind in kinds:
        if kind not in seen:
            seen |= {kind, partner.get(kind, kind)}
            relations.append(Relation(kind, partner.get(kind)))
    return tuple(relations)


def _keys(data: HeteroData, kind: EdgeType, like: EdgeType, flip: bool = False) -> Tensor:
    """The distinct edges of a type as sorted numbers; ``flip``: the other way round, numbered as those of ``like``."""
    index = data[kind].edge_index
    source, target = index.flip(0) if flip else index
    return torch.unique(source * int(data[like[2]].num_nodes) + target)


def by_relation(schema: Schema, named: Iterable[str | EdgeType] | str | None) -> frozenset[int]:
    """The numbers of relations that are named; a text names several with commas between."""
    if named is None:
        return frozenset()
    names: Sequence[str | EdgeType] = [n.strip() for n in named.split(",")] if isinstance(named, str) else list(named)
    if names and len(names) == 3 and tuple(names) in schema.edge_types:
        names = [tuple(names)]  # type: ignore[list-item]
    return frozenset(schema.find(name) for name in names)
