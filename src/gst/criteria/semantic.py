"""The semantic criterion: how strongly an edge moves the output away from the anchor's."""

import torch
from torch import Tensor

from gst.graph import EdgeSet
from gst.nn.network import Network
from gst.task import Task


def semantic_scores(
    network: Network, task: Task, anchor_logits: Tensor, edges: EdgeSet, keep: Tensor, mask: Tensor
) -> Tensor:
    r"""φ_sema = |∂S/∂g_e| with S = KL(softmax Z^A ‖ softmax f(m ⊙ g ⊙ A)) at g = keep, in evaluation mode.

    One backward pass for all edges, pruned ones included: gate 0 is deletion and still has a gradient.
    """
    gate = keep.to(mask.dtype).requires_grad_()
    network.module.eval()
    divergence = task.divergence(anchor_logits, network.logits(edges, mask * gate))
    return torch.autograd.grad(divergence, gate)[0].abs()
