"""What sparsifiers share: budget, selection, and their faces as a PyG transform or as an estimator."""

import warnings
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gst.base.arguments import check_options
from gst.base.errors import AgreementWarning, InputError
from gst.base.modes import plain_torch
from gst.graph.edgeset import EdgeSet, check_data
from gst.graph.select import budget, top_k
from gst.storage.cache import Cache
from gst.storage.checkpoint import NoCheckpoint, opened
from gst.train.models import check_model
from gst.train.run import Problem
from gst.train.settings import make_settings
from gst.train.trainer import Watcher, silent

LEAST_AGREEMENT = 0.98  # share of the dense model's answers that a sparse graph should keep


class TopologySparsifier(BaseTransform):
    """Keeps the edges of highest score. A subclass says only how edges are scored.

    Args:
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.
        seed: of whatever is random.
    """

    def __init__(self, sparsity: float | None = None, keep: int | None = None, *, seed: int = 0) -> None:
        check_budget(sparsity, keep)
        check_options(type(self).__name__, seed=(seed, int, lambda v: 0 <= v < 2**63, "a number from 0 to 2^63"))
        self.sparsity, self.keep, self.seed = sparsity, keep, seed

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        """One score per edge."""
        raise NotImplementedError

    @plain_torch()
    def score(self, data: Data) -> Tensor:
        """float64, one per column of ``edge_index``, both arcs of a pair alike; infinite for self-loops, which stay."""
        edges = EdgeSet.from_data(data)
        return edges.to_columns(self.edge_scores(edges).double(), torch.inf)

    @plain_torch()
    def select(self, edges: EdgeSet) -> tuple[Tensor, Tensor]:
        """Which edges stay, and the score of each."""
        scores = self.edge_scores(edges).double()
        return top_k(scores, budget(edges.num_edges, self.sparsity, self.keep)), scores

    @plain_torch()
    def forward(self, data: Data) -> Data:
        edges = EdgeSet.from_data(data)
        return edges.sparse_graph(data, self.select(edges)[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_amount(self.sparsity, self.keep)})"


@dataclass(frozen=True)
class Found:
    """What the search of a learned sparsifier comes back with."""

    keep: Tensor  # [E] which edges stay
    scores: Tensor  # [E] what each is worth
    model: nn.Module  # trained on the sparse graph
    logits: Tensor  # [N, classes] of that model on that graph
    val: float
    seconds: dict[str, float]
    history: list[dict[str, Any]] = field(default_factory=list)
    agreement: float | None = None  # with the dense model, where the search has one


class LearnedSparsifier:
    """An estimator: ``fit`` returns self, learned values end in ``_``. A subclass says only how it searches.

    Args:
        model: any ``nn.Module`` of PyG ``MessagePassing`` layers, trained as a copy; instead of ``backbone``.
        backbone: ``"gcn"``, ``"gin"``, ``"gat"``, ``"sage"`` or ``"cluster-gcn"``.
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.
        cache: whether what can be reused is kept on disk (never of an own ``model``), or the :class:`~gst.storage.cache.Cache`.
        watch: called with a :class:`~gst.train.trainer.Progress` after every epoch.
        checkpoint: folder for the state of ``fit``, which the same call in a later process goes on with.
        settings: any field of :class:`~gst.train.settings.Settings`; the rest is the paper's choice for ``data.name``.

    ``fit`` sets ``mask_`` and ``scores_`` (one per column of ``edge_index``), ``keep_`` (one per edge), ``edges_``,
    ``model_``, ``logits_``, ``val_``, ``history_``, ``seconds_``, ``settings_`` and ``agreement_``: the share of nodes
    answered as by the dense model, where there is one (recipe deploy), else None.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        *,
        backbone: str = "gcn",
        sparsity: float | None = None,
        keep: int | None = None,
        cache: bool | Cache = True,
        watch: Watcher = silent,
        checkpoint: NoCheckpoint | str | PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        check_budget(sparsity, keep)
        check_model(model)
        make_settings(None, backbone, settings)
        self.model, self.backbone, self.sparsity, self.keep = model, backbone, sparsity, keep
        self.cache, self.watch, self.checkpoint, self.settings = cache, watch, checkpoint, settings

    def options(self) -> dict[str, Any]:
        """Arguments of the method's own, where it has any: with the problem, all that its search depends on."""
        return {}

    def search(self, problem: Problem, kept: int, **given: Any) -> Found:
        """The sparse graph with exactly ``kept`` edges."""
        raise NotImplementedError

    @plain_torch()
    def fit(self, data: Data, **given: Any) -> Self:
        """Finds the sparse graph of ``data``."""
        chosen: dict[str, Any] = {
            "backbone": self.backbone,
            "model": self.model,
            "cache": self.cache,
            "watch": self.watch,
        }
        with opened(self.checkpoint) as place:
            problem = Problem(data, checkpoint=place, **chosen, **self.settings)
            problem.begin(method=type(self).__name__, sparsity=self.sparsity, keep=self.keep, **self.options())
            self.fit_problem(problem, **given)
        warn_below(self.agreement_, repr(self), stacklevel=4)
        return self

    @plain_torch()
    def fit_problem(self, problem: Problem, **given: Any) -> Self:
        """The same for a problem that is already set up."""
        found = self.search(problem, budget(problem.edges.num_edges, self.sparsity, self.keep), **given)
        self.settings_, self.edges_ = problem.settings, problem.edges.to(torch.device("cpu"))
        self.keep_, self.logits_ = found.keep.cpu(), found.logits.cpu()
        self.mask_ = self.edges_.to_columns(self.keep_, True)
        self.scores_ = self.edges_.to_columns(found.scores.cpu().double(), torch.inf)
        self.model_, self.val_, self.seconds_, self.history_ = found.model, found.val, found.seconds, found.history
        self.agreement_ = found.agreement
        return self

    def transform(self, data: Data) -> Data:
        """The sparse graph: ``data`` with only the kept columns of ``edge_index`` and of every edge-level attribute."""
        if not hasattr(self, "mask_"):
            raise InputError(f"this {type(self).__name__} has not been fitted: call fit(data) first")
        if check_data(data).shape[1] != self.mask_.numel():
            raise InputError(
                f"data has {data.edge_index.shape[1]} columns, the fitted graph {self.mask_.numel()}: "
                "transform takes the graph that fit has seen"
            )
        return self.edges_.sparse_graph(data, self.keep_)

    def fit_transform(self, data: Data) -> Data:
        return self.fit(data).transform(data)

    def __repr__(self) -> str:
        network = self.backbone if self.model is None else type(self.model).__name__
        return f"{type(self).__name__}({network}, {_amount(self.sparsity, self.keep)})"


def warn_below(agreement: float | None, who: str, stacklevel: int) -> None:
    """Warns where fewer answers than :data:`LEAST_AGREEMENT` are those of the dense model."""
    if agreement is not None and agreement < LEAST_AGREEMENT:
        text = f"{who}: only {agreement:.1%} of the answers are those of the dense model (below {LEAST_AGREEMENT:.0%})"
        warnings.warn(text, AgreementWarning, stacklevel=stacklevel)


def check_budget(sparsity: float | None, keep: int | None) -> None:
    """Refuses a bad budget before any work; how many edges there are is not known yet."""
    budget(keep if type(keep) is int and keep > 0 else 1, sparsity, keep)


def _amount(sparsity: float | None, keep: int | None) -> str:
    return f"sparsity={sparsity}" if keep is None else f"keep={keep}"
