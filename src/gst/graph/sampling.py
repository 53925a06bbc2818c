r"""Samples an exact number of edges without replacement, with weights that correct the bias.

Edge e with rate r_e gets a random arrival time T_e, exponential with mean 1/r_e; the first k to arrive are the sample.
This is the same as drawing edges one by one, each among the remaining ones with probability ∝ r_e. The score is

.. math:: s_e = -\ln T_e = \ln r_e + g_e, \quad g_e \text{ standard Gumbel},

so the sample is the top-k by score ("Gumbel top-k"; Efraimidis & Spirakis, IPL 2006).
"""

import torch
from torch import Tensor

from gst.graph.select import top_k


def gumbel_scores(rates: Tensor, seed: int) -> Tensor:
    """ln r_e plus Gumbel noise, float64; the k highest are a sample of k edges without replacement.

    >>> gumbel_scores(torch.tensor([1.0, 1e9]), seed=0).argmax().item()
    1
    """
    noise = torch.empty(rates.numel(), dtype=torch.float64)
    noise.exponential_(generator=torch.Generator().manual_seed(seed))
    return rates.double().log() - noise.log().to(rates.device)


def inverse_inclusion(rates: Tensor, scores: Tensor, k: int) -> Tensor:
    r"""Weights 1/π_e of the k edges of highest score that make any weighted sum over the sample unbiased.

    Let τ be the time of the (k+1)-th arrival. Given all *other* arrivals, a sampled e is in the sample if it arrives
    before the k-th of them, which is τ; so

    .. math:: π_e = P(T_e < τ \mid T_{f \ne e}) = 1 - e^{-r_e τ}, \quad E[1_e / π_e] = 1

    exactly, by taking the expectation over T_e first (Duffield, Lund & Thorup, JACM 2007). Edges outside the sample
    get 0; if all edges are in it, all get 1.
    """
    if k == rates.numel():
        return torch.ones_like(scores)
    threshold = scores.kthvalue(rates.numel() - k).values  # the (k+1)-th highest, −ln τ
    probability = -torch.expm1(-torch.exp(rates.double().log() - threshold))
    return torch.where(top_k(scores, k), 1 / probability, 0)
