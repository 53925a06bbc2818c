"""Brute force: the whole forward pass on every candidate graph."""

import torch

TEMPERATURE = 0.15


def divergence(network, edges, keep, wanted):
    with torch.no_grad():
        found = (network.logits(edges.subset(keep)) / TEMPERATURE).log_softmax(-1)
    return float(
        torch.nn.functional.kl_div(found, (wanted / TEMPERATURE).log_softmax(-1), reduction="sum", log_target=True)
    )


def trials(network, edges, keep, wanted, sign):
    """δ of every candidate; infinite for the others."""
    now, found = divergence(network, edges, keep, wanted), torch.full(keep.shape, torch.inf, dtype=torch.float64)
    for e in ((sign < 0) == keep).nonzero().flatten().tolist():
        other = keep.clone()
        other[e] = sign > 0
        found[e] = divergence(network, edges, other, wanted) - now
    return found
