"""Iterative pruning: what UGS, WD-GLT and MGSpar share. One path of removals serves every sparsity."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from gst.base.arguments import check_options
from gst.base.errors import InputError
from gst.base.randomness import seeded
from gst.base.versions import method_version
from gst.graph.edgeset import EdgeSet
from gst.methods.base import LearnedSparsifier
from gst.methods.found import Found
from gst.nn.network import Network
from gst.storage.cache import Content
from gst.train.models import reset_own_model
from gst.train.run import Run


@dataclass(frozen=True)
class Stage:
    """What a method thinks of the edges that are left, before it removes the worst of them."""

    scores: Tensor  # one per edge that is left, in the order of their ids
    extra: dict[str, Tensor]  # whatever else the next stage or the final model needs
    seconds: float  # what it took, also when it came from the cache
    facts: dict[str, Any]  # for the history


@dataclass(kw_only=True, eq=False, repr=False)
class IterativeSparsifier(LearnedSparsifier):
    """Stage after stage, scores the edges that are left and removes the worst share of them until the budget is met.

    The last cut is exact. A stage knows nothing of the budget, so all budgets share one path: stages are stored by
    their number, a smaller budget reads the first of them and a deeper one goes on where the stored ones end.

    ``scores_`` is the order of removal as a share: an edge of score q goes when the sparsity reaches q. Edges that
    never had to go are ranked by the last stage.
    """

    prune_ratio: float = 0.05

    complexity: ClassVar[str] = "rounds · epochs"

    def check(self) -> None:
        super().check()
        ratio = (self.prune_ratio, float, lambda v: 0 < v < 1, "a share between 0 and 1")
        check_options(type(self).__name__, prune_ratio=ratio)

    @abstractmethod
    def stage(self, run: Run, edges: EdgeSet, number: int, extra: Mapping[str, Tensor]) -> Content:
        """Scores, one per edge of what is left, and whatever the next stage shall find in ``extra``; seeded."""

    def finish(self, run: Run, keep_mask: Tensor, last: Stage | None) -> tuple[Network, float]:
        """The model for the sparse graph and its validation score: a fresh one, as for every method."""
        network, scores = run.train_fresh(keep_mask, "sparse")
        return network, scores["sparse_val"]

    @property
    def returns_fresh_model(self) -> bool:
        """Whether :meth:`finish` is the plain training from scratch."""
        return True

    def search(self, run: Run, num_kept: int) -> Found:
        if run.batching.batch != "full" or run.training.inductive:
            raise InputError(
                f"{type(self).__name__} gives every edge a value of its own, which takes full batches in the "
                "transductive setting: take batch full and no inductive, or the method gst"
            )
        scores, stages, history = self.path(run, num_kept)
        keep_mask = run.top_k(scores, num_kept)
        start = run.checkpoint.clock()
        network, val = self.finish(run, keep_mask, stages[-1] if stages else None)
        network.module.eval()
        with torch.no_grad():
            logits = network.logits(run.edges.subset(keep_mask))
        return Found(
            keep_mask,
            scores,
            network.module,
            logits,
            val,
            seconds={
                "anchor": sum(stage.seconds for stage in stages),
                "topology": 0.0,
                "sparse": run.checkpoint.clock() - start,
            },
            history=history,
            fresh=self.returns_fresh_model,
        )

    def path(self, run: Run, num_kept: int) -> tuple[Tensor, list[Stage], list[dict[str, Any]]]:
        """Order of removal, float64, down to ``num_kept`` edges; its stages; one line of history for each."""
        edges = run.edges
        depends = {**run.depends, **self.options, "search": method_version(self.name)}
        left = torch.arange(edges.num_edges, device=run.device)
        worst, gone = left.flip(0), []
        stages: list[Stage] = []
        history = []
        while left.numel() > num_kept:
            stage = self._stored(run, left, stages, depends)
            worst = worst_first(left, stage.scores)
            count = min(prune_count(left.numel(), self.prune_ratio), left.numel() - num_kept)
            gone.append(worst[:count])
            worst = worst[count:]
            stages.append(stage)
            history.append({"round": len(stages), "edges": left.numel(), "removed": count, **stage.facts})
            left = worst.sort().values
        return removal_scores(torch.cat([*gone, worst])), stages, history

    def _stored(self, run: Run, left: Tensor, stages: list[Stage], depends: dict[str, Any]) -> Stage:
        number = len(stages)

        def make() -> Content:
            start = run.checkpoint.clock()
            keep = torch.zeros(run.edges.num_edges, dtype=torch.bool, device=run.device)
            keep[left] = True
            # numbers of its own for every stage: those before it may come from the cache
            with seeded(1000 * run.training.seed + number):
                tensors, facts = self.stage(run, run.edges.subset(keep), number, stages[-1].extra if stages else {})
            return tensors, {"seconds": run.checkpoint.clock() - start, "facts": facts}

        tensors, meta = run.store.get(f"{self.name}-path", {**depends, "stage": number}, make)
        tensors = {name: tensor.to(run.device) for name, tensor in tensors.items()}
        return Stage(tensors.pop("scores"), tensors, meta["seconds"], meta["facts"])


def prune_count(left: int, ratio: float) -> int:
    """How many of the remaining edges one stage removes: the ratio of them, at least one.

    >>> prune_count(5278, 0.05), prune_count(3, 0.05)
    (264, 1)
    """
    return max(1, round(ratio * left))


def worst_first(left: Tensor, scores: Tensor) -> Tensor:
    """The ids ``left`` (ascending) by rising score; of equals the lower id goes last.

    >>> worst_first(torch.tensor([2, 5, 7, 8]), torch.tensor([0.5, 0.1, 0.5, 0.9])).tolist()
    [5, 7, 2, 8]
    """
    return left[torch.sort(scores, descending=True, stable=True).indices.flip(0)]


def removal_scores(order: Tensor) -> Tensor:
    """From the order of removal to one score per edge: the sparsity at which it goes.

    >>> removal_scores(torch.tensor([2, 0, 3, 1])).tolist()
    [0.5, 1.0, 0.25, 0.75]
    """
    places = torch.arange(1, order.numel() + 1, dtype=torch.float64, device=order.device)
    return torch.empty_like(places).index_copy_(0, order, places / max(1, order.numel()))


def fresh_network(run: Run) -> Network:
    """A network with the very weights from which ``run.train_fresh`` starts."""
    network = run.network()
    with seeded(run.training.seed + 1):
        reset_own_model(network)
    return network


class _Bound(nn.Module):
    """A network as a module, so that other weights can be put into it for one call."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.model, self.network = network.module, network

    def forward(self, edges: EdgeSet, values: Tensor | None, nodes: Tensor | None) -> Tensor:
        return self.network.logits(edges, values, nodes)


def logits_with(
    network: Network, weights: Mapping[str, Tensor], edges: EdgeSet, values: Tensor | None, nodes: Tensor | None
) -> Tensor:
    """Logits of the network as if these were its parameters, differentiable in them."""
    named = {f"model.{name}": weight for name, weight in weights.items()}
    return functional_call(_Bound(network), named, (edges, values, nodes))
