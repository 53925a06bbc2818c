"""The user's own scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.typed import TypedEdges
from gst.methods.base import TopologySparsifier
from gst.storage.state_tree import hash_of


def mean_over_columns(edges: EdgeSet, scores: Tensor) -> Tensor:
    """One score per edge from one per column of ``edge_index``, float64; those of self-loops are left out."""
    real = edges.column_edge >= 0
    edge = edges.column_edge[real]
    total = torch.zeros(edges.num_edges, dtype=torch.float64, device=edge.device)
    total.index_add_(0, edge, scores.to(edge.device).double()[real])
    return total / torch.bincount(edge, minlength=edges.num_edges)


def _joined(scores: Mapping[Any, Any], edges: EdgeSet | None) -> Tensor:
    """The scores of all relations, in the order of the columns; without edges, in that of the dictionary."""
    if edges is None:
        return torch.cat([torch.as_tensor(part).flatten() for part in scores.values()]) if scores else torch.zeros(0)
    if not isinstance(edges, TypedEdges):
        raise InputError("scores is a dictionary: that is for typed graphs, this graph has one type")
    sizes = dict(zip(edges.schema.edge_types, edges.schema.num_columns, strict=True))
    for kind, size in sizes.items():
        if kind not in scores or torch.as_tensor(scores[kind]).shape != (size,):
            raise InputError(f"scores has no {size} numbers of relation {'__'.join(kind)}: one per column is needed")
    return edges.schema.join({kind: torch.as_tensor(scores[kind]).double() for kind in sizes})


@dataclass(kw_only=True, eq=False, repr=False)
class _Scores:
    """The argument that comes first."""

    scores: Any = field(default=None, kw_only=False)


@dataclass(kw_only=True, eq=False, repr=False)
class ImportanceScores(TopologySparsifier, _Scores):
    """Keeps the edges of highest score, the scores being yours.

    Args:
        scores: one number per column of ``edge_index`` (of a typed graph a dictionary of such by edge type), of which
            an edge gets the mean over its arcs and duplicates; or one per edge in the order of
            :class:`~gst.graph.edgeset.EdgeSet`. Infinite: surely or never; NaN is refused.

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`.

    >>> from torch_geometric.data import Data
    >>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> ImportanceScores(torch.tensor([0.0, 1.0, 0.9, 0.3]), keep=1)(data).edge_index.tolist()
    [[1, 2], [2, 1]]
    """

    scores_typed: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        self._tensor()

    def _tensor(self, edges: EdgeSet | None = None) -> Tensor:
        given = self.scores
        if isinstance(given, Mapping):
            given = _joined(given, edges)
        try:
            scores = torch.as_tensor(given).detach()
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"scores is a {type(self.scores).__name__}: a tensor of numbers is needed") from error
        if scores.dim() != 1 or scores.is_complex():
            shape = f"{list(scores.shape)} of {scores.dtype}"
            raise InputError(f"scores has shape {shape}: one real number per column of edge_index is needed")
        return scores

    @property
    def options(self) -> dict[str, Any]:
        return {"scores": hash_of(self._tensor())}

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        given, columns = self._tensor(edges), edges.column_edge.numel()
        if given.numel() == columns:
            scores = mean_over_columns(edges, given)
        elif given.numel() == edges.num_edges:
            scores = given.double().to(edges.pairs.device)
        else:
            raise InputError(
                f"scores has {given.numel()} numbers: {columns} are needed, one per column of edge_index, "
                f"or {edges.num_edges}, one per edge"
            )
        broken = scores.isnan().nonzero()
        if broken.numel():
            u, v = edges.pairs[:, int(broken[0])].tolist()
            raise InputError(f"scores is NaN at the edge of nodes {u} and {v} ({broken.numel()} such edges)")
        return scores
