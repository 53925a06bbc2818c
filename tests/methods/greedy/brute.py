"""Brute force: the whole forward pass on every candidate graph."""

import torch
from torch.distributions import Bernoulli, Categorical, kl_divergence

from gst.methods.greedy.divergence import Target

TARGET = Target(0.15)
STEEP = Target(0.15, damped=False)


def divergence(network, edges, keep, wanted, target=TARGET):
    with torch.no_grad():
        found = network.logits(edges.subset(keep)).double()
    return apart(wanted.double(), found, target)


def apart(wanted, found, target):
    """D of two answers by the book."""
    kind = Bernoulli if target.labels else Categorical
    one, two = (kind(logits=z / target.temperature) for z in (wanted, found))
    each = kl_divergence(one, two)
    each = each.sum(-1) if target.labels else each
    return float((each.log1p() if target.damped else each).sum())


def trials(network, edges, keep, wanted, sign, target=TARGET):
    """δ of every candidate; infinite for the others."""
    now, found = (
        divergence(network, edges, keep, wanted, target),
        torch.full(keep.shape, torch.inf, dtype=torch.float64),
    )
    for e in ((sign < 0) == keep).nonzero().flatten().tolist():
        other = keep.clone()
        other[e] = sign > 0
        found[e] = divergence(network, edges, other, wanted, target) - now
    return found
