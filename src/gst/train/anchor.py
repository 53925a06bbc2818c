"""The anchor: what the full graph and the network know at the best epoch of a short dense training."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gst.base.randomness import seeded
from gst.nn.masker import Masker
from gst.storage.cache import Content
from gst.storage.files import flatten, unflatten
from gst.train.run import Run
from gst.train.settings import Masking
from gst.train.trainer import Trainer, train


@dataclass(frozen=True)
class Anchor:
    """Copies of m_g^A, Z^A, Θ^A and Ψ^A. They do not depend on the sparsity: train once, use for every budget."""

    mask: Tensor  # m_g^A, [E]
    logits: Tensor  # Z^A in evaluation mode, [N, classes]
    model: dict[str, Tensor]  # Θ^A
    masker: dict[str, Tensor]  # Ψ^A
    val: float
    epoch: int
    seconds: float  # of its training, also when it comes from the cache


def new_masker(run: Run, masking: Masking) -> Masker:
    """A freshly initialised Ψ; the caller seeds."""
    return run.new_masker(masking.masker_hidden, masking.mask_deviation)


def find_anchor(run: Run, masking: Masking) -> Anchor:
    """Trains Θ and Ψ together on m_g ⊙ A for E epochs, or takes what an earlier run has stored."""
    run.check_memory(masker_hidden=masking.masker_hidden)

    def make() -> Content:
        start = run.checkpoint.clock()
        network = run.network()
        with seeded(run.training.seed + 1):  # a seed for each phase: a cached anchor changes nothing after it
            trainer = run.trainer(network, new_masker(run, masking))
            epochs = run.training.anchor_epochs
            seen, judged = run.shown(run.edges, None)
            best = train(trainer, seen, epochs, "anchor", 0.0, run.watch, run.checkpoint, judged)
        with torch.no_grad():
            mask = trainer.mask(run.edges)
        assert mask is not None
        tensors = {"mask": mask, "logits": trainer.logits(run.view, run.of_view(mask))}
        tensors |= flatten("model", best.kept["model"]) | flatten("masker", best.kept["masker"])
        return tensors, {"val": best.val, "epoch": best.epoch, "seconds": run.checkpoint.clock() - start}

    tensors, meta = run.store.get("anchor", {**run.depends, **masking.model_dump()}, make)
    tensors = {name: tensor.to(run.device) for name, tensor in tensors.items()}
    model, masker = unflatten("model", tensors), unflatten("masker", tensors)
    return Anchor(tensors["mask"], tensors["logits"], model, masker, **meta)


def anchored_trainer(run: Run, anchor: Anchor, masking: Masking) -> Trainer:
    """Θ^A and Ψ^A with a new optimiser, to train on from the anchor."""
    with seeded(run.training.seed + 1):  # numbers that the trainer must not see: the weights are the anchor's
        masker = new_masker(run, masking)
    trainer = run.trainer(run.network(), masker)
    trainer.restore({"model": anchor.model, "masker": anchor.masker})
    return trainer
