"""Graph Sparse Training (Zhang et al., ICML 2024), Algorithm 1."""

import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.versions import method_version
from gst.methods.criteria.balance import combine
from gst.methods.criteria.semantic import semantic_scores
from gst.methods.criteria.topology import topology_scores
from gst.methods.criteria.typed import topology_by_relation
from gst.methods.dynamic import DynamicSparsifier, SparsePhase, edge_weights
from gst.methods.found import Found
from gst.methods.registry import register
from gst.storage.cache import Content
from gst.train.anchor import Anchor, find_anchor
from gst.train.run import Run
from gst.train.settings import Batching, Config, Masking, Training, Updates
from gst.train.typed_run import TypedRun


class Criteria(Config):
    """How GST weighs an edge: φ = β_s φ_sema + β_t φ_topo."""

    matrix: Literal["adjacency", "laplacian", "normalised"] = Field(
        default="laplacian", description="whose eigenvalues the topology criterion watches"
    )
    eigenpairs: int | Literal["all"] = Field(default="all", description='K at both ends of the spectrum, or "all"')
    semantic_weight: float = Field(default=1.0, ge=0, le=1e6, description="β_s: weight of the semantic criterion")
    topology_weight: float = Field(default=1.0, ge=0, le=1e6, description="β_t: weight of the topology criterion")
    semantic: bool = Field(default=True, description="ablation: off = topology criterion alone")
    topology: bool = Field(default=True, description="ablation: off = semantic criterion alone")


@register("gst")
@dataclass(kw_only=True, eq=False, repr=False)
class GST(DynamicSparsifier):
    r"""Trains a network and its sparse graph together.

    1. *Anchor*: network and masker train on the full graph m_g ⊙ A; the best validation epoch becomes the anchor.
    2. *One-shot*: the edges of highest m_g^A stay, exactly as many as the budget says.
    3. *Sparse phase*: training goes on; every ΔT epochs the kept edges of lowest importance are exchanged for the
       pruned ones of highest, φ = β_s φ_sema + β_t φ_topo.

    Args:
        matrix: ``"adjacency"``, ``"laplacian"`` or ``"normalised"``: whose eigenvalues φ_topo watches ["laplacian"].
        eigenpairs: K at both ends of the spectrum, or ``"all"``, for the Laplacian ["all", else 20].
        semantic_weight: β_s [1].
        topology_weight: β_t [1].
        semantic: ablation: False = φ_topo alone [True].
        topology: ablation: False = φ_sema alone [True].

    The other arguments are those of :class:`~gst.methods.dynamic.DynamicSparsifier`. ``fit`` also sets ``anchor_``.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.GST(sparsity=0.5, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> metrics = est.result_.metrics
    >>> metrics["edges_kept"] == metrics["edges_total"] - round(0.5 * metrics["edges_total"])
    True
    """

    matrix: str | None = None
    eigenpairs: int | str | None = None
    semantic_weight: float | None = None
    topology_weight: float | None = None
    semantic: bool | None = None
    topology: bool | None = None

    configs: ClassVar[tuple[type[Config], ...]] = (Training, Batching, Updates, Masking, Criteria)
    reference: ClassVar[str] = "Zhang et al., ICML 2024"

    def search(self, run: Run, num_kept: int) -> Found:
        self.anchor_ = find_anchor(run, self.config(Masking, run.data))  # Θ^A, Ψ^A, m_g^A, Z^A
        self._topology, seconds = self._topology_scores(run, self.anchor_, num_kept)  # φ_topo, once
        return self.refine(run, self.anchor_, num_kept, seconds)

    def drop_scores(self, run: Run, phase: SparsePhase) -> Tensor:
        """φ of every edge, at the present network, masker and graph."""
        criteria: Criteria = self.config(Criteria)
        semantic, trainer = None, phase.trainer
        if criteria.semantic or self._topology is None:
            mask = edge_weights(run, trainer)
            semantic = semantic_scores(
                trainer.network,
                trainer.task,
                self.anchor_.logits,
                run.view,
                phase.keep_mask,
                mask,
                layerwise=trainer.layerwise,
            )
        return combine(semantic, self._topology, criteria.semantic_weight, criteria.topology_weight)

    def grow_scores(self, run: Run, phase: SparsePhase, drop: Tensor) -> Tensor:
        return drop

    def config(self, kind: type[Any], data: Data | None = None) -> Any:
        config = super().config(kind, data)
        if kind is Criteria and self.eigenpairs is None and config.matrix != "laplacian":
            return config.model_copy(update={"eigenpairs": 20})
        return config

    def check(self) -> None:
        super().check()
        criteria: Criteria = self.config(Criteria)
        if isinstance(criteria.eigenpairs, int) and not 1 <= criteria.eigenpairs < 2**31:
            raise InputError(f'eigenpairs = {criteria.eigenpairs}: a positive number or "all" is needed')
        if criteria.eigenpairs == "all" and criteria.matrix != "laplacian":
            raise InputError(
                f'matrix = {criteria.matrix!r} needs a number of eigenpairs (say 20): "all" is for laplacian'
            )
        if self.config(Updates).tune and not (criteria.semantic or criteria.topology):
            raise InputError("semantic and topology are both off: an update needs one of them (or tune off)")

    def _topology_scores(self, run: Run, anchor: Anchor, num_kept: int) -> tuple[Tensor | None, float]:
        """φ_topo of the anchor graph and the seconds it took; None where no update needs it."""
        criteria: Criteria = self.config(Criteria)
        updates: Updates = self.config(Updates, run.data)
        if not (criteria.topology and updates.tune and num_kept < run.edges.num_edges):
            return None, 0.0
        arguments: dict[str, Any] = {
            "matrix": criteria.matrix,
            "eigenpairs": criteria.eigenpairs,
            "seed": run.training.seed,
        }

        def make() -> Content:
            start = time.perf_counter()
            mask = run.of_view(anchor.mask)
            if isinstance(run, TypedRun) and run.scope == "relation":
                scores = topology_by_relation(run.edges, mask, **arguments)
            else:
                scores = topology_scores(run.view, mask, **arguments)
            return {"scores": scores}, {"seconds": time.perf_counter() - start}

        masking = self.config(Masking, run.data).model_dump()
        depends = {**run.depends, **masking, **arguments, "search": method_version("gst")}
        tensors, meta = run.store.get("topology", depends, make)
        return tensors["scores"].to(run.device), meta["seconds"]
