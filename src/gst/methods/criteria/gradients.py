"""Criteria of dynamic sparse training: what its methods think of a weight, said of an edge.

The weight of an edge is w = m·g: the masker's value m on kept edges, 0 on pruned ones, where it still has a gradient.
"""

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.nn.network import Network
from gst.train.task import Task


def edge_gradient(network: Network, task: Task, edges: EdgeSet, keep: Tensor, mask: Tensor) -> Tensor:
    r"""∂L/∂w_e of the task loss at w = m ⊙ g, g = keep, in evaluation mode: one backward pass for all edges."""
    values = (mask.detach() * keep.to(mask.dtype)).requires_grad_()
    network.module.eval()
    return torch.autograd.grad(task.loss(network.logits(edges, values)[task.train]), values)[0]


def sensitivity(weights: Tensor, gradient: Tensor) -> Tensor:
    r"""SNIP's connection sensitivity :math:`|w ⊙ ∂L/∂w|`: how the loss moves when the connection begins to close.

    SNIP divides it by its sum, which changes no rank.
    """
    return (weights * gradient).abs()


def mutation_importance(weights: Tensor, gradient: Tensor, gradient_weight: float, keep: Tensor) -> Tensor:
    r"""MEST's :math:`|w| + λ |∂L/∂w|`, each term first divided by its standard deviation over the kept edges.

    The mask varies by 0.01 around 1 and the gradient is of another order on every graph: without a common unit λ would
    mean nothing.
    """
    return _in_deviations(weights.abs(), keep) + gradient_weight * _in_deviations(gradient.abs(), keep)


def smoothed(momentum: Tensor, gradient: Tensor, decay: float) -> Tensor:
    r"""SNFS's exponentially smoothed gradient :math:`M ← α M + (1 − α) ∂L/∂w`."""
    return decay * momentum + (1 - decay) * gradient


def _in_deviations(values: Tensor, keep: Tensor) -> Tensor:
    values = values.double()
    among = values[keep] if bool(keep.any()) else values
    return values / among.std(correction=0).clamp(min=1e-300)
