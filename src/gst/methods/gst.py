"""Graph Sparse Training (Zhang et al., ICML 2024)."""

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gst.base.errors import InputError
from gst.base.randomness import seeded
from gst.base.versions import of_method
from gst.graph.edgeset import EdgeSet
from gst.graph.select import exchange
from gst.graph.shared_select import shared_top_k
from gst.methods.base import Found, LearnedSparsifier
from gst.methods.criteria.balance import combine
from gst.methods.criteria.semantic import semantic_scores
from gst.methods.criteria.topology import topology_scores
from gst.methods.deploy import deploy
from gst.methods.retrain import retrain
from gst.nn.masker import Masker
from gst.storage.cache import Content
from gst.train.anchor import Anchor, find_anchor
from gst.train.run import Problem
from gst.train.schedule import inverse_power, num_updates, swap_count
from gst.train.settings import Settings
from gst.train.trainer import Best, Progress, Trainer, in_epoch
from gst.train.unseen import Arrivals


class GST(LearnedSparsifier):
    r"""Trains a network and its sparse graph together.

    1. *Anchor*: network and masker train on the full graph m_g ⊙ A; the best validation epoch becomes the anchor.
    2. *One-shot*: the edges of highest m_g^A stay, exactly as many as the budget says.
    3. *Sparse phase*: training goes on; every ΔT epochs the kept edges of lowest importance are exchanged for the
       pruned ones of highest, φ = β_s φ_sema + β_t φ_topo.

    That is ``recipe="paper"``. Two others have a job each, with scores of their own:
    ``"deploy"`` (:func:`~gst.methods.deploy.deploy`), the edges that a trained model needs to keep its answers, and
    ``"retrain"`` (:func:`~gst.methods.retrain.retrain`), a graph on which a fresh model trains as well.

    With ``trained=True``, ``"deploy"`` takes ``model`` as it is and trains nothing.

    Arguments and learned values are those of :class:`~gst.methods.base.LearnedSparsifier`, and ``anchor_``, which
    ``fit(data, anchor=…)`` of another GST on the same data can reuse.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = GST(sparsity=0.5, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> int(est.keep_.sum()) == est.edges_.num_edges - round(0.5 * est.edges_.num_edges)
    True
    """

    def __init__(self, model: nn.Module | None = None, *, trained: bool = False, **given: Any) -> None:
        super().__init__(model, **given)
        self.trained = trained

    def options(self) -> dict[str, Any]:
        return {"trained": self.trained}

    def search(self, problem: Problem, kept: int, *, anchor: Anchor | None = None, **given: Any) -> Found:
        settings, edges = problem.settings, problem.view
        if self.trained and (problem.model is None or settings.recipe != "deploy"):
            raise InputError('trained is for recipe="deploy" and a model of your own that is trained already')
        if settings.recipe == "deploy":
            return deploy(problem, kept, self.trained)
        network = problem.network()
        with seeded(settings.seed + 1):  # each phase has its own numbers: a cached anchor changes nothing after it
            masker = Masker(problem.x.shape[1], settings.masker_hidden, settings.mask_deviation).to(problem.device)
            self.anchor_ = anchor or find_anchor(problem, network, masker)
        if settings.recipe == "retrain":
            return retrain(problem, self.anchor_, kept)
        topology, topology_seconds = None, 0.0
        if settings.topology and settings.tune and kept < problem.edges.num_edges:
            topology, topology_seconds = find_topology(problem, self.anchor_)

        start = problem.checkpoint.clock()
        with seeded(settings.seed + 2):
            trainer = problem.trainer(network, masker)
            arrivals = Arrivals(problem, self.anchor_.mask, kept)
            best, history = sparse_phase(problem, trainer, self.anchor_, Equilibria(self.anchor_, topology), arrivals)
        trainer.restore(best.kept)
        scores = edge_importance(trainer, self.anchor_, edges, topology, best.kept["keep"], settings)
        keep, scores = arrivals.join(best.kept["keep"]), arrivals.join_scores(scores)
        logits = trainer.logits(problem.edges.subset(keep))
        seconds = {
            "anchor": self.anchor_.seconds,
            "topology": topology_seconds,
            "sparse": problem.checkpoint.clock() - start,
        }
        return Found(keep, scores, network.module, logits, best.val, seconds, history)


@dataclass
class Refinement:
    """What the sparse phase carries from epoch to epoch."""

    trainer: Trainer
    keep: Tensor  # M_g
    best: Best = field(default_factory=Best)
    history: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Tensor] = field(default_factory=dict)  # whatever the rule remembers


class Rule:
    """What a sparse phase thinks of edges: those it starts from, those it drops and those it regrows."""

    updates = True  # False: those it starts from stay

    def one_shot(self, problem: Problem, trainer: Trainer, anchor: Anchor) -> Tensor:
        """One number per edge of the view at the anchor; the edges of highest stay."""
        return problem.of_view(anchor.mask)

    def look(self, problem: Problem, at: Refinement) -> None:
        """Called after every epoch; writes what shall be remembered into ``at.memory``."""

    def scores(self, problem: Problem, at: Refinement) -> tuple[Tensor, Tensor]:
        """One number per edge to drop by (the lowest of the kept go), one to regrow by (the highest pruned come)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Equilibria(Rule):
    """GST's own: φ for both."""

    anchor: Anchor
    topology: Tensor | None

    def scores(self, problem: Problem, at: Refinement) -> tuple[Tensor, Tensor]:
        phi = edge_importance(at.trainer, self.anchor, problem.view, self.topology, at.keep, problem.settings)
        return phi, phi


def sparse_phase(
    problem: Problem, trainer: Trainer, anchor: Anchor, rule: Rule, arrivals: Arrivals
) -> tuple[Best, list[dict[str, Any]]]:
    """Trains on m_g ⊙ M_g ⊙ A from the anchor on, refining M_g; the best validation epoch and the history."""
    settings, edges, kept = problem.settings, problem.view, arrivals.kept
    trainer.restore({"model": anchor.model, "masker": anchor.masker})
    at = Refinement(trainer, shared_top_k(rule.one_shot(problem, trainer, anchor), kept))
    epochs = problem.checkpoint.loop("sparse", settings.sparse_epochs, at, edges)
    sparse, judged = arrivals.graphs(at.keep)
    updates = num_updates(settings.sparse_epochs, settings.interval)
    for epoch in epochs:
        with in_epoch("sparse", epoch):
            trainer.step(sparse)
            val = trainer.evaluate(judged)
        at.best.offer(val, epoch, lambda: {**trainer.state(), "keep": at.keep})
        rule.look(problem, at)
        swapped = 0
        if settings.tune and rule.updates and epoch % settings.interval == 0:
            share = inverse_power(epoch // settings.interval, updates, settings.swap_ratio, settings.decay)
            swapped = swap_count(share, kept, edges.num_edges - kept)
        if swapped:
            drop, grow = rule.scores(problem, at)
            at.keep = exchange(at.keep, drop, swapped, grow, shared_top_k)
            sparse, judged = arrivals.graphs(at.keep)
        at.history.append({"epoch": epoch, "val": val, "swapped": swapped})
        problem.watch(Progress("sparse", epoch, settings.sparse_epochs, val, at.best.val, arrivals.sparsity))
    return at.best, at.history


def edge_importance(
    trainer: Trainer, anchor: Anchor, edges: EdgeSet, topology: Tensor | None, keep: Tensor, settings: Settings
) -> Tensor:
    """φ of every edge at the present network, masker and graph."""
    semantic = None
    if settings.semantic or topology is None:
        with torch.no_grad():
            mask = trainer.mask(edges)
        assert mask is not None
        semantic = semantic_scores(
            trainer.network, trainer.task, anchor.logits, edges, keep, mask, layerwise=trainer.layerwise
        )
    return combine(semantic, topology, settings.semantic_weight, settings.topology_weight)


def find_topology(problem: Problem, anchor: Anchor) -> tuple[Tensor, float]:
    """φ_topo and the seconds it took, computed once an anchor."""
    settings = problem.settings
    chosen: dict[str, Any] = {"matrix": settings.matrix, "eigenpairs": settings.eigenpairs, "seed": settings.seed}

    def make() -> Content:
        start = time.perf_counter()
        scores = topology_scores(problem.view, problem.of_view(anchor.mask), **chosen)
        return {"scores": scores}, {"seconds": time.perf_counter() - start}

    tensors, meta = problem.store.get("topology", {**problem.depends, **chosen, "search": of_method("gst")}, make)
    return tensors["scores"].to(problem.device), meta["seconds"]
