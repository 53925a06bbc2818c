"""Dynamic sparse training of edges: SNIP, SET, SNFS, RigL and MEST as rules in GST's loop."""

from typing import Any

import torch
from torch import Tensor, nn

from gst.base.arguments import check_options
from gst.base.randomness import generator, seeded
from gst.methods.base import Found, LearnedSparsifier
from gst.methods.criteria.gradients import edge_gradient, mutation_importance, sensitivity, smoothed
from gst.methods.gst import Refinement, Rule, sparse_phase
from gst.nn.masker import Masker
from gst.train.anchor import Anchor, find_anchor
from gst.train.run import Problem
from gst.train.trainer import Trainer
from gst.train.unseen import Arrivals


class DynamicSparsifier(LearnedSparsifier, Rule):
    r"""GST with another rule: anchor, one-shot cut and schedule are the same, only the scores of edges are not.

    The weight of an edge is the masker's value m_g. A subclass says which of the kept edges go and which of the pruned
    ones come back; unless it says otherwise, the lowest |m_g| go (and the highest are there at the beginning).

    Arguments and learned values are those of :class:`~gst.methods.base.LearnedSparsifier`; ``scores_`` is the score
    that the method drops by, at the network, masker and graph that are returned.
    """

    def search(self, problem: Problem, kept: int, **given: Any) -> Found:
        settings = problem.settings
        network = problem.network()
        with seeded(settings.seed + 1):  # as GST does: the two share their anchors
            masker = Masker(problem.x.shape[1], settings.masker_hidden, settings.mask_deviation).to(problem.device)
            anchor = find_anchor(problem, network, masker)
        start = problem.checkpoint.clock()
        with seeded(settings.seed + 2):
            trainer = problem.trainer(network, masker)
            arrivals = Arrivals(problem, anchor.mask, kept)
            best, history = sparse_phase(problem, trainer, anchor, self, arrivals)
        trainer.restore(best.kept)
        scores = arrivals.join_scores(self.drop_scores(problem, trainer, best.kept["keep"]))
        keep = arrivals.join(best.kept["keep"])
        logits = trainer.logits(problem.edges.subset(keep))
        seconds = {"anchor": anchor.seconds, "topology": 0.0, "sparse": problem.checkpoint.clock() - start}
        return Found(keep, scores, network.module, logits, best.val, seconds, history)

    def scores(self, problem: Problem, at: Refinement) -> tuple[Tensor, Tensor]:
        return self.drop_scores(problem, at.trainer, at.keep), self.grow_scores(problem, at)

    def drop_scores(self, problem: Problem, trainer: Trainer, keep: Tensor) -> Tensor:
        """The kept edges of lowest go: |w|."""
        return edge_weights(problem, trainer).abs()

    def grow_scores(self, problem: Problem, at: Refinement) -> Tensor:
        """The pruned edges of highest come: any as likely as any other."""
        return torch.rand(at.keep.shape, device=at.keep.device, generator=generator(at.keep.device))


class SET(DynamicSparsifier):
    r"""Drops the lowest |w|, regrows at random (Mocanu et al., Nature Communications 2018)."""


class RigL(DynamicSparsifier):
    r"""Drops the lowest |w|, regrows the highest :math:`|∂L/∂w|` (Evci et al., ICML 2020)."""

    def grow_scores(self, problem: Problem, at: Refinement) -> Tensor:
        return gradient(problem, at.trainer, at.keep).abs()


class SNFS(DynamicSparsifier):
    r"""Drops the lowest |w|, regrows the highest momentum |M| (Dettmers & Zettlemoyer, 2019).

    .. math:: M ← α M + (1 − α) ∂L/∂w \quad \text{after every epoch, of pruned edges too}

    SNFS also moves weights between layers by their mean momentum; a graph is one layer.

    Args:
        momentum: α.
    """

    def __init__(self, model: nn.Module | None = None, *, momentum: float = 0.9, **rest: Any) -> None:
        super().__init__(model, **rest)
        check_options("SNFS", momentum=(momentum, float, lambda v: 0 <= v < 1, "at least 0 and below 1"))
        self.momentum = momentum

    def options(self) -> dict[str, Any]:
        return {"momentum": self.momentum}

    def look(self, problem: Problem, at: Refinement) -> None:
        if not problem.settings.tune:
            return
        now = gradient(problem, at.trainer, at.keep)
        at.memory = {"momentum": smoothed(at.memory.get("momentum", torch.zeros_like(now)), now, self.momentum)}

    def grow_scores(self, problem: Problem, at: Refinement) -> Tensor:
        return at.memory["momentum"].abs()


class MEST(DynamicSparsifier):
    r"""Drops the lowest :math:`|w| + λ |∂L/∂w|`, regrows at random (Yuan et al., NeurIPS 2021).

    Each term is measured in standard deviations over the kept edges. This is the paper's *Elastic Mutation*; its soft
    memory bound, which lets more edges live for a while, would break the exact budget.

    Args:
        gradient_weight: λ.
    """

    def __init__(self, model: nn.Module | None = None, *, gradient_weight: float = 1.0, **rest: Any) -> None:
        super().__init__(model, **rest)
        check_options(
            "MEST", gradient_weight=(gradient_weight, float, lambda v: 0 <= v <= 1e6, "a number from 0 to 1e6")
        )
        self.gradient_weight = gradient_weight

    def options(self) -> dict[str, Any]:
        return {"gradient_weight": self.gradient_weight}

    def drop_scores(self, problem: Problem, trainer: Trainer, keep: Tensor) -> Tensor:
        slope = gradient(problem, trainer, keep)
        return mutation_importance(edge_weights(problem, trainer), slope, self.gradient_weight, keep)


class SNIP(DynamicSparsifier):
    r"""Keeps the highest :math:`|w ⊙ ∂L/∂w|` at the anchor and never looks again (Lee et al., ICLR 2019)."""

    updates = False

    def one_shot(self, problem: Problem, trainer: Trainer, anchor: Anchor) -> Tensor:
        mask = problem.of_view(anchor.mask)
        self.sensitivity_ = sensitivity(mask, gradient(problem, trainer, torch.ones_like(mask, dtype=torch.bool)))
        return self.sensitivity_

    def drop_scores(self, problem: Problem, trainer: Trainer, keep: Tensor) -> Tensor:
        return self.sensitivity_


@torch.no_grad()
def edge_weights(problem: Problem, trainer: Trainer) -> Tensor:
    """The masker's value m_g of all edges that training sees."""
    mask = trainer.mask(problem.view)
    assert mask is not None
    return mask


def gradient(problem: Problem, trainer: Trainer, keep: Tensor) -> Tensor:
    return edge_gradient(trainer.network, trainer.task, problem.view, keep, edge_weights(problem, trainer))
