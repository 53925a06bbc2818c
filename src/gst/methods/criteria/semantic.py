"""The semantic criterion: how strongly an edge moves the output away from the anchor's."""

from functools import partial

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.nn.layerwise import edge_gradient
from gst.nn.network import NativeNetwork, Network
from gst.train.task import Task


def semantic_scores(
    network: Network,
    task: Task,
    anchor_logits: Tensor,
    edges: EdgeSet,
    keep_mask: Tensor,
    mask: Tensor,
    *,
    layerwise: bool = False,
) -> Tensor:
    r"""φ_sema = |∂S/∂g_e| with S = KL(softmax Z^A ‖ softmax f(m ⊙ g ⊙ A)) at g = keep_mask, in evaluation mode.

    One backward pass for all edges, including pruned ones: a gate of 0 removes an edge but still has a gradient.
    ``layerwise`` computes the same in the memory of a mini-batch.
    """
    network.module.eval()
    gate = keep_mask.to(mask.dtype)
    if layerwise:
        assert isinstance(network, NativeNetwork)
        divergence_of = partial(task.divergence, anchor_logits)
        return edge_gradient(network.module, network.x, edges, mask * gate, divergence_of).mul_(mask).abs_()
    gate.requires_grad_()
    divergence = task.divergence(anchor_logits, network.logits(edges, mask * gate))
    return torch.autograd.grad(divergence, gate)[0].abs()
