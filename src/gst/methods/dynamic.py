"""Dynamic sparse training of edges: the drop–regrow loop that GST, SNIP, SET, SNFS, RigL and MEST share."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from gst.base.randomness import generator, seeded
from gst.methods.base import LearnedSparsifier
from gst.methods.criteria.gradients import edge_gradient
from gst.methods.found import Found
from gst.train.anchor import Anchor, anchored_trainer, find_anchor
from gst.train.run import Run
from gst.train.schedule import inverse_power, num_updates, swap_count
from gst.train.settings import Batching, Config, Masking, Training, Updates
from gst.train.trainer import Best, Progress, Trainer, in_epoch
from gst.train.unseen import UnseenEdges


@dataclass
class SparsePhase:
    """What the sparse phase carries from epoch to epoch."""

    trainer: Trainer
    keep_mask: Tensor  # M_g
    updates: int = 0  # exchanges that M_g has had
    best: Best = field(default_factory=Best)
    history: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Tensor] = field(default_factory=dict)  # whatever the method remembers between epochs


@dataclass(kw_only=True, eq=False, repr=False)
class DynamicSparsifier(LearnedSparsifier):
    """Anchor, one-shot cut, then training on the sparse graph that exchanges edges every ΔT epochs.

    A subclass says which of the kept edges go and which of the pruned ones come back. The weight of an edge is the
    masker's value m_g; unless a subclass says otherwise, the highest m_g stay at first and the lowest |m_g| go.

    Args:
        interval: ΔT, epochs between two updates [20].
        swap_ratio: τ, share of edges that the first update exchanges [0.3].
        decay: κ, how fast that share decreases [1].
        output: the graph that is returned: ``"last"``, M_g after the last update, or ``"best"``, that of the epoch
            of the highest validation score, which may be the one-shot cut ["last"].
        tune: ablation: False keeps the one-shot mask [True].
        masker_hidden: width of the masker's hidden layer [64].
        mask_deviation: standard deviation of the mask around 1 [0.01].

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`.
    """

    interval: int | None = None
    swap_ratio: float | None = None
    decay: float | None = None
    output: str | None = None
    tune: bool | None = None
    masker_hidden: int | None = None
    mask_deviation: float | None = None

    configs: ClassVar[tuple[type[Config], ...]] = (Training, Batching, Updates, Masking)
    complexity: ClassVar[str] = "E + D epochs"
    updates_edges: ClassVar[bool] = True  # False: the edges of the one-shot cut stay

    def search(self, run: Run, num_kept: int) -> Found:
        anchor = find_anchor(run, self.config(Masking, run.data))
        return self.refine(run, anchor, num_kept)

    def one_shot_scores(self, run: Run, trainer: Trainer, anchor: Anchor) -> Tensor:
        """One score per edge of the view, at the anchor; the highest stay."""
        return run.of_view(anchor.mask)

    def observe(self, run: Run, phase: SparsePhase) -> None:
        """Called after every epoch; writes what is to be remembered into ``phase.memory``."""

    def drop_scores(self, run: Run, phase: SparsePhase) -> Tensor:
        """The kept edges of lowest score go: |m_g|."""
        return edge_weights(run, phase.trainer).abs()

    def grow_scores(self, run: Run, phase: SparsePhase, drop: Tensor) -> Tensor:
        """The pruned edges of highest score come back: at random. ``drop``: the scores that edges were dropped by."""
        keep_mask = phase.keep_mask
        return torch.rand(keep_mask.shape, device=keep_mask.device, generator=generator(keep_mask.device))

    def refine(self, run: Run, anchor: Anchor, num_kept: int, topology_seconds: float = 0.0) -> Found:
        """Trains on m_g ⊙ M_g ⊙ A from the anchor on, D epochs, updating M_g.

        Returns M_g after the last update with the model of the best validation epoch on it, or, if ``output`` says so,
        both as they were at the best epoch of all.
        """
        updates: Updates = self.config(Updates, run.data)
        start = run.checkpoint.clock()
        with seeded(run.training.seed + 2):
            trainer = anchored_trainer(run, anchor, self.config(Masking, run.data))
            unseen = UnseenEdges(run, anchor.mask, num_kept)
            first = unseen.top_k(self.one_shot_scores(run, trainer, anchor))
            phase = SparsePhase(trainer, first)
            self._train(run, phase, unseen, updates)
        best = phase.best
        trainer.restore(best.kept)
        phase.keep_mask, phase.updates = best.kept["keep"], best.kept["updates"]
        scores = unseen.join_scores(self.drop_scores(run, phase))
        keep_mask = unseen.join(phase.keep_mask)
        seconds = {
            "anchor": anchor.seconds,
            "topology": topology_seconds,
            "sparse": run.checkpoint.clock() - start,
        }
        logits = trainer.logits(run.edges.subset(keep_mask))
        return Found(
            keep_mask,
            scores,
            trainer.network.module,
            logits,
            best.val,
            seconds,
            history=phase.history,
            updates=phase.updates,
        )

    def _train(self, run: Run, phase: SparsePhase, unseen: UnseenEdges, updates: Updates) -> None:
        trainer, epochs = phase.trainer, run.training.sparse_epochs
        total = num_updates(epochs, updates.interval)
        left = run.checkpoint.loop("sparse", epochs, phase, run.view)
        sparse, judged = unseen.graphs(phase.keep_mask)
        for epoch in left:
            with in_epoch("sparse", epoch):
                trainer.step(sparse)
                val = trainer.evaluate(judged)
            phase.best.offer(val, epoch, lambda: {**trainer.state(), "keep": phase.keep_mask, "updates": phase.updates})
            self.observe(run, phase)
            swapped = 0
            # not after the last epoch: there is none left to train on what it would bring
            if updates.tune and self.updates_edges and epoch % updates.interval == 0 and epoch < epochs:
                share = inverse_power(epoch // updates.interval, total, updates.swap_ratio, updates.decay)
                swapped = swap_count(share, unseen.num_kept, run.view.num_edges - unseen.num_kept)
            if swapped:
                drop = self.drop_scores(run, phase)
                grow = self.grow_scores(run, phase, drop)
                phase.keep_mask, swapped = unseen.exchange(phase.keep_mask, drop, grow, partial(swap_count, share))
                phase.updates += 1
                if updates.output == "last":
                    phase.best = Best()  # of the epochs on this mask
                sparse, judged = unseen.graphs(phase.keep_mask)
            phase.history.append({"epoch": epoch, "val": val, "swapped": swapped})
            run.watch(Progress("sparse", epoch, epochs, val, phase.best.val, unseen.sparsity))


@torch.no_grad()
def edge_weights(run: Run, trainer: Trainer) -> Tensor:
    """The masker's value m_g of all edges that training sees."""
    mask = trainer.mask(run.view)
    assert mask is not None
    return mask


def gradient(run: Run, trainer: Trainer, keep_mask: Tensor) -> Tensor:
    """∂L/∂w of every edge that training sees, pruned ones included."""
    return edge_gradient(trainer.network, trainer.task, run.view, keep_mask, edge_weights(run, trainer))
