"""Unified graph sparsification (Chen et al., ICML 2021)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gst.base.arguments import check_options
from gst.base.randomness import generator, seeded
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods.iterative import IterativeSparsifier, Stage, fresh_network, logits_with, prune_count
from gst.methods.registry import register
from gst.nn.network import Network
from gst.storage.cache import Content
from gst.storage.files import flatten, unflatten
from gst.train.run import Run
from gst.train.settings import MOST_EPOCHS
from gst.train.trainer import Best, Progress, in_epoch, train

NOISE = 1e-5  # masks start at 1 ± this, so that edges which the loss does not see are pruned at random


@register("ugs")
@dataclass(kw_only=True, eq=False, repr=False)
class UGS(IterativeSparsifier):
    r"""Trains a mask on the edges, prunes the lowest, rewinds the weights, and again.

    .. math:: \mathcal L = \mathrm{CE}\big(f(|m| ⊙ A, Θ)\big) + γ \lVert m \rVert_1, \qquad m_0 = 1 + U(±10^{-5})

    Every round trains Θ and m from their initial values; at the best validation epoch the ``prune_ratio`` of the
    *remaining* edges with the lowest :math:`|m|` goes. The last cut meets the budget exactly, and a fresh model is
    trained on what is left, with the protocol of every method.

    A lottery ticket prunes weights along: with ``weight_prune_ratio`` > 0 every weight matrix has such a mask too,
    :math:`Θ ⊙ |m_Θ|`, and the final model trains only the weights that are left, from their initial values.

    Args:
        prune_ratio: share of the remaining edges that a round removes; 0.05 is the papers' choice.
        round_epochs: epochs of a round; published: 200. At the default learning rate, 40 are too few to learn from.
        l1: γ, weight of the ℓ1 penalty of both masks.
        weight_prune_ratio: share of the remaining weights that a round removes: 0, or 0.2 for lottery tickets.

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`. ``fit`` also sets ``weight_masks_``, by
    parameter name (empty without weight pruning). The path is stored and serves every sparsity.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.UGS(sparsity=0.2, round_epochs=3, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> total = est.edges_.num_edges
    >>> int(est.found_.keep_mask.sum()) == total - round(0.2 * total), len(est.found_.history)
    (True, 5)
    """

    round_epochs: int = 100
    l1: float = 1e-6
    weight_prune_ratio: float = 0.0

    reference: ClassVar[str] = "Chen et al., ICML 2021"

    def check(self) -> None:
        super().check()
        check_options(
            type(self).__name__,
            round_epochs=(self.round_epochs, int, lambda v: 1 <= v <= MOST_EPOCHS, f"a number from 1 to {MOST_EPOCHS}"),
            l1=(self.l1, float, lambda v: 0 <= v <= 1e6, "a number from 0 to 1e6"),
            weight_prune_ratio=(
                self.weight_prune_ratio,
                float,
                lambda v: 0 <= v < 1,
                "a share of at least 0 and below 1",
            ),
        )

    @property
    def returns_fresh_model(self) -> bool:
        return self.weight_prune_ratio == 0

    def stage(self, run: Run, edges: EdgeSet, number: int, extra: Mapping[str, Tensor]) -> Content:
        network = fresh_network(run)
        kept_weights = {}
        if self.weight_prune_ratio:
            # files give them in any order, but their order decides who gets which noise
            everything, left = all_weights(network.module), unflatten("weights", extra)
            kept_weights = {name: left.get(name, whole) for name, whole in everything.items()}
        masked, best = Masked(run, network, edges, kept_weights), Best()
        sparsity = 1 - edges.num_edges / run.edges.num_edges
        for epoch in run.checkpoint.loop("prune", self.round_epochs, Round(masked, best), edges):
            with in_epoch("prune", epoch):
                self.epoch(masked)
                val = masked.evaluate()
            best.offer(val, epoch, masked.magnitudes)
            run.watch(Progress("prune", epoch, self.round_epochs, val, best.val, sparsity))
        tensors = {"scores": best.kept["edges"]}
        if kept_weights:
            tensors |= flatten("weights", prune_weights(best.kept["weights"], kept_weights, self.weight_prune_ratio))
        return tensors, {"val": best.val, "epoch": best.epoch}

    def epoch(self, masked: "Masked") -> None:
        """One step of descent on weights and masks together."""
        masked.network.module.train()
        masked.zero_grad()
        task = masked.run.task
        loss = task.loss(masked.logits(nodes=task.train)) + self.l1 * masked.norm()
        loss.backward()
        masked.step()

    def finish(self, run: Run, keep_mask: Tensor, last: Stage | None) -> tuple[Network, float]:
        self.weight_masks_ = {} if last is None else unflatten("weights", last.extra)
        if not self.weight_masks_:
            return super().finish(run, keep_mask, last)
        return train_ticket(run, keep_mask, self.weight_masks_)


@dataclass
class Round:
    """What a round carries from epoch to epoch."""

    masked: "Masked"
    best: Best


class Masked:
    """A network with a trainable mask on its edges and, for tickets, on the weights that are left; the caller seeds.

    The value of an edge is :math:`|m|`: a negative one has no meaning in a degree or a softmax, and pruning goes by
    magnitude anyway.
    """

    def __init__(self, run: Run, network: Network, edges: EdgeSet, kept_weights: Mapping[str, Tensor]) -> None:
        self.run, self.network, self.edges = run, network, edges
        self.mask = _near_one(run.edges.loops.new_ones(edges.num_edges))
        self.weight_masks = {name: _near_one(kept.float()) for name, kept in kept_weights.items()}
        self.kept_weights = kept_weights
        weights = [p for p in network.module.parameters() if p.requires_grad]
        groups: list[dict[str, Any]] = [
            {"params": weights, "weight_decay": run.training.weight_decay},
            {"params": list(self.weight_masks.values())},  # not decayed: masks have their ℓ1 penalty
        ]
        self.weight_optimizer = torch.optim.Adam(groups, lr=run.training.lr)
        self.mask_optimizer = torch.optim.Adam([self.mask], lr=run.training.lr)

    def parts(self) -> dict[str, Any]:
        """All that a checkpoint must hold to resume from here."""
        masks = {"mask": self.mask, "weight_masks": self.weight_masks}
        optimizers = {"weight_optimizer": self.weight_optimizer, "mask_optimizer": self.mask_optimizer}
        return {"model": self.network.module, **masks, **optimizers}

    def logits(self, mask: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        """Logits with all masks on; ``mask`` instead of the trainable one of the edges."""
        values = (self.mask if mask is None else mask).abs()
        if not self.weight_masks:
            return self.network.logits(self.edges, values, nodes)
        parameters = dict(self.network.module.named_parameters())
        weights = {n: parameters[n] * m.abs() * self.kept_weights[n] for n, m in self.weight_masks.items()}
        return logits_with(self.network, weights, self.edges, values, nodes)

    def norm(self) -> Tensor:
        """ℓ1 norm of all masks."""
        return self.mask.abs().sum() + sum(mask.abs().sum() for mask in self.weight_masks.values())

    @torch.no_grad()
    def evaluate(self) -> float:
        self.network.module.eval()
        return self.run.task.score(self.logits(nodes=self.run.task.val), "val")

    def magnitudes(self) -> dict[str, Any]:
        weights = {name: mask.detach().abs() for name, mask in self.weight_masks.items()}
        return {"edges": self.mask.detach().abs(), "weights": weights}

    def zero_grad(self) -> None:
        self.weight_optimizer.zero_grad()
        self.mask_optimizer.zero_grad()

    def step(self) -> None:
        self.weight_optimizer.step()
        self.mask_optimizer.step()


def _near_one(like: Tensor) -> nn.Parameter:
    noise = torch.rand(like.shape, generator=generator()).to(like.device)  # drawn on the CPU: the same on every device
    return nn.Parameter(like * (1 + NOISE * (2 * noise - 1)))


def all_weights(module: nn.Module) -> dict[str, Tensor]:
    """Masks that keep everything of what a ticket prunes: weights, not biases, norms or scalars."""
    return {n: torch.ones_like(p, dtype=torch.bool) for n, p in module.named_parameters() if p.dim() > 1}


def prune_weights(magnitudes: Mapping[str, Tensor], kept: Mapping[str, Tensor], ratio: float) -> dict[str, Tensor]:
    """The masks without the ``ratio`` of the remaining weights of lowest magnitude, over all matrices together."""
    left = torch.cat([mask.flatten() for mask in kept.values()])
    scores = torch.cat([magnitudes[name].flatten() for name in kept]).masked_fill(~left, -torch.inf)
    total = int(left.sum())
    stays = top_k(scores, max(0, total - prune_count(total, ratio)))
    parts = stays.split([mask.numel() for mask in kept.values()])
    return {name: part.view_as(kept[name]) for name, part in zip(kept, parts, strict=True)}


def train_ticket(run: Run, keep_mask: Tensor, masks: Mapping[str, Tensor]) -> tuple[Network, float]:
    """``run.train_fresh`` for the weights that are left: the others are 0 and stay 0."""
    network = fresh_network(run)
    hooks = []
    for name, weight in network.module.named_parameters():
        if name in masks:
            weight.data.mul_(masks[name])
            hooks.append(weight.register_hook(lambda slope, mask=masks[name]: slope * mask))
    edges, settings = run.edges.subset(keep_mask), run.training
    epochs, sparsity = settings.anchor_epochs + settings.sparse_epochs, 1 - edges.num_edges / run.edges.num_edges
    with seeded(settings.seed + 1):
        trainer = run.trainer(network)
        best = train(trainer, edges, epochs, "sparse", sparsity, run.watch, run.checkpoint)
    for hook in hooks:
        hook.remove()
    return network, best.val
