"""Metrics of scored pairs and of rankings: AUC, average precision, Hits@K, MRR, recall, NDCG."""

import torch
from torch import Tensor

from gst.nn.metrics import roc_auc


def average_precision(scores: Tensor, y: Tensor) -> float:
    """Mean, over the positives, of the precision among all that score at least as high; ties count as one threshold.

    >>> round(average_precision(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1])), 4)
    0.8333
    """
    positive = int(y.sum())
    if positive == 0:
        return 0.0
    order = torch.sort(scores, descending=True, stable=True).indices
    hits = y[order].cumsum(0).double()
    last = torch.ones_like(order, dtype=torch.bool)  # of its group of equal scores
    last[:-1] = scores[order][1:] != scores[order][:-1]
    ends = last.nonzero().flatten()
    gained = hits[ends].diff(prepend=hits.new_zeros(1))
    return float((gained * hits[ends] / (ends + 1)).sum()) / positive


def precision_at(scores: Tensor, y: Tensor, k: int) -> float:
    """Share of positives among the k highest scores; of equal scores, the expectation over their orders.

    >>> precision_at(torch.tensor([0.9, 0.8, 0.8, 0.1]), torch.tensor([1, 0, 1, 1]), 2)
    0.75
    """
    k = min(k, scores.numel())
    if k == 0:
        return 0.0
    threshold = scores.topk(k).values[-1]
    above, tied = scores > threshold, scores == threshold
    share = (k - int(above.sum())) / int(tied.sum())
    return float(y[above].sum() + share * y[tied].sum()) / k


def hits_at(positives: Tensor, negatives: Tensor, k: int) -> float:
    """Share of the positives that score above the k-th highest negative, as OGB has it; 1 with fewer negatives.

    >>> hits_at(torch.tensor([3.0, 1.0]), torch.tensor([4.0, 2.0, 0.0]), 2)
    0.5
    """
    if negatives.numel() < k:
        return 1.0
    return float((positives > negatives.topk(k).values[-1]).double().mean())


def mean_reciprocal_rank(positives: Tensor, negatives: Tensor) -> float:
    """Mean of 1 / rank of each positive among all negatives; equal scores share the mean of their ranks, as in OGB.

    >>> round(mean_reciprocal_rank(torch.tensor([3.0, 1.0]), torch.tensor([4.0, 2.0, 0.0])), 4)
    0.4167
    """
    ordered = negatives.sort().values
    above = ordered.numel() - torch.searchsorted(ordered, positives, right=True)
    at_least = ordered.numel() - torch.searchsorted(ordered, positives, right=False)
    return float((2 / (2 + above + at_least).double()).mean())


def link_metrics(scores: Tensor, y: Tensor) -> dict[str, float]:
    """All metrics of the scores of positive and negative pairs, from 0 to 1."""
    positives, negatives = scores[y == 1], scores[y == 0]
    hits = {f"hits@{k}": hits_at(positives, negatives, k) for k in (10, 50, 100)}
    mrr = mean_reciprocal_rank(positives, negatives)
    return {"auc": roc_auc(scores, y), "ap": average_precision(scores, y), **hits, "mrr": mrr}


def binary_metrics(scores: Tensor, y: Tensor) -> dict[str, float]:
    """Metrics of rare positives, from 0 to 1: precision at as many as there are, and at the top 1 %, too."""
    positive = int(y.sum())
    one_percent = max(1, round(y.numel() / 100))
    return {
        "auc": roc_auc(scores, y),
        "ap": average_precision(scores, y),
        "precision@positives": precision_at(scores, y, positive),
        "precision@1%": precision_at(scores, y, one_percent),
        "positives": positive / max(1, y.numel()),
    }
