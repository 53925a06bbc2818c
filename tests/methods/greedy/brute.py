"""Reference by brute force: a full forward pass on every candidate graph."""

import torch
from torch.distributions import Bernoulli, Categorical, kl_divergence

from gst.methods.greedy.divergence import Target

TARGET = Target(0.15)
STEEP = Target(0.15, damped=False)


def divergence(network, edges, keep_mask, wanted, target=TARGET):
    """D of the answers on the kept edges from the wanted ones."""
    with torch.no_grad():
        logits = network.logits(edges.subset(keep_mask)).double()
    return divergence_between(wanted.double(), logits, target)


def divergence_between(wanted, logits, target):
    """D of two sets of logits, by torch.distributions."""
    distribution = Bernoulli if target.multilabel else Categorical
    p, q = (distribution(logits=z / target.temperature) for z in (wanted, logits))
    kl = kl_divergence(p, q)
    kl = kl.sum(-1) if target.multilabel else kl
    return float((kl.log1p() if target.damped else kl).sum())


def trials(network, edges, keep_mask, wanted, sign, target=TARGET):
    """δ of every candidate: pruned edges for sign 1, kept edges for −1; infinite for the others."""
    before = divergence(network, edges, keep_mask, wanted, target)
    deltas = torch.full(keep_mask.shape, torch.inf, dtype=torch.float64)
    for e in ((sign < 0) == keep_mask).nonzero().flatten().tolist():
        changed = keep_mask.clone()
        changed[e] = sign > 0
        deltas[e] = divergence(network, edges, changed, wanted, target) - before
    return deltas
