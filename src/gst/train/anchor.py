"""The anchor: what the full graph and the network know at the best epoch of a short dense training."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gst.nn.masker import Masker
from gst.nn.network import Network
from gst.storage.cache import Content
from gst.storage.files import flatten, unflatten
from gst.train.run import Problem
from gst.train.trainer import train


@dataclass(frozen=True)
class Anchor:
    """Copies of m_g^A, Z^A, Θ^A and Ψ^A. They do not depend on the sparsity: train once, use for every budget."""

    mask: Tensor  # m_g^A, [E]
    logits: Tensor  # Z^A in evaluation mode, [N, classes]
    model: dict[str, Tensor]  # Θ^A
    masker: dict[str, Tensor]  # Ψ^A
    val: float
    epoch: int
    seconds: float  # what the training took, also when it came from the cache


def find_anchor(problem: Problem, network: Network, masker: Masker) -> Anchor:
    """Trains Θ and Ψ together on m_g ⊙ A, or finds that this was done before; the caller seeds."""

    def make() -> Content:
        clock = problem.checkpoint.clock
        start = clock()
        trainer = problem.trainer(network, masker)
        epochs = problem.settings.anchor_epochs
        seen, judged = problem.shown(problem.edges, None)
        best = train(trainer, seen, epochs, "anchor", 0.0, problem.watch, problem.checkpoint, judged)
        with torch.no_grad():
            mask = trainer.mask(problem.edges)
        assert mask is not None
        tensors = {"mask": mask, "logits": trainer.logits(problem.view, problem.of_view(mask))}
        tensors |= flatten("model", best.kept["model"]) | flatten("masker", best.kept["masker"])
        return tensors, {"val": best.val, "epoch": best.epoch, "seconds": clock() - start}

    tensors, meta = problem.store.get("anchor", problem.depends, make)
    tensors = {name: tensor.to(problem.device) for name, tensor in tensors.items()}
    model, masker_state = unflatten("model", tensors), unflatten("masker", tensors)
    return Anchor(tensors["mask"], tensors["logits"], model, masker_state, **meta)
