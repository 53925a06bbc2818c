"""Criteria of dynamic sparse training, which score the weights of a network, applied to edges.

The weight of an edge is w = m·g: the masker's value m on kept edges, 0 on pruned edges, which still have a gradient.
"""

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.nn.network import Network
from gst.train.task import Task


def edge_gradient(network: Network, task: Task, edges: EdgeSet, keep_mask: Tensor, mask: Tensor) -> Tensor:
    r"""∂L/∂w_e of the task loss at w = m ⊙ g, g = keep_mask, in evaluation mode: one backward pass for all edges."""
    values = (mask.detach() * keep_mask.to(mask.dtype)).requires_grad_()
    network.module.eval()
    return torch.autograd.grad(task.loss(network.logits(edges, values)[task.train]), values)[0]


def sensitivity(weights: Tensor, gradient: Tensor) -> Tensor:
    r"""SNIP's connection sensitivity :math:`|w ⊙ ∂L/∂w|`: how fast the loss changes as the connection is closed.

    SNIP divides it by its sum, which does not affect the ranking.
    """
    return (weights * gradient).abs()


def mutation_importance(weights: Tensor, gradient: Tensor, gradient_weight: float, keep_mask: Tensor) -> Tensor:
    r"""MEST's :math:`|w| + λ |∂L/∂w|`, each term first divided by its standard deviation over the kept edges.

    The mask varies by 0.01 around 1, and the scale of the gradient differs from graph to graph: without a common unit,
    λ would be meaningless.
    """
    return _in_deviations(weights.abs(), keep_mask) + gradient_weight * _in_deviations(gradient.abs(), keep_mask)


def smoothed(momentum: Tensor, gradient: Tensor, decay: float) -> Tensor:
    r"""SNFS's exponentially smoothed gradient :math:`M ← α M + (1 − α) ∂L/∂w`."""
    return decay * momentum + (1 - decay) * gradient


def _in_deviations(values: Tensor, keep_mask: Tensor) -> Tensor:
    values = values.double()
    sample = values[keep_mask] if bool(keep_mask.any()) else values
    return values / sample.std(correction=0).clamp(min=1e-300)
