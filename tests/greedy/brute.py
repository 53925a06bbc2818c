"""Brute force: the whole forward pass on every candidate graph."""

import torch

from gst.greedy.target import Target

TARGET = Target(0.15)


def divergence(network, edges, keep, wanted):
    with torch.no_grad():
        found = network.logits(edges.subset(keep)).double() / TARGET.temperature
    wanted = wanted.double() / TARGET.temperature
    one, two = (torch.distributions.Categorical(logits=z) for z in (wanted, found))
    return float(torch.distributions.kl_divergence(one, two).sum())


def trials(network, edges, keep, wanted, sign):
    """δ of every candidate; infinite for the others."""
    now, found = divergence(network, edges, keep, wanted), torch.full(keep.shape, torch.inf, dtype=torch.float64)
    for e in ((sign < 0) == keep).nonzero().flatten().tolist():
        other = keep.clone()
        other[e] = sign > 0
        found[e] = divergence(network, edges, other, wanted) - now
    return found
