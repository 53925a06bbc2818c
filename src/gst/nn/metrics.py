"""Metrics of predictions."""

import torch
from torch import Tensor


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Share of nodes whose largest logit is their class."""
    return float((logits.argmax(-1) == y).double().mean())


def roc_auc(scores: Tensor, y: Tensor) -> float:
    """Probability that a positive node scores above a negative one, ties counting half; 0.5 where a class is missing.

    >>> roc_auc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
    0.75
    """
    positive = int(y.sum())
    negative = y.numel() - positive
    if positive == 0 or negative == 0:
        return 0.5
    _, inverse, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    rank = last - (counts - 1) / 2  # mean rank of tied scores, from 1
    total = float(rank[inverse][y == 1].sum())
    return (total - positive * (positive + 1) / 2) / (positive * negative)


def mean_roc_auc(scores: Tensor, y: Tensor) -> float:
    """ROC-AUC averaged over the columns of labels, as OGB does; columns with a single class do not count.

    >>> mean_roc_auc(torch.tensor([[0.1, 0.0], [0.8, 1.0]]), torch.tensor([[0, 1], [1, 1]]))
    1.0
    """
    both = (y == 0).any(0) & (y == 1).any(0)
    areas = [roc_auc(scores[:, column], y[:, column]) for column in both.nonzero().flatten().tolist()]
    return sum(areas) / len(areas) if areas else 0.5


def micro_f1(scores: Tensor, y: Tensor) -> float:
    """Harmonic mean of precision and recall over all labels of all nodes; a label is given where its score is above 0.

    >>> micro_f1(torch.tensor([[1.0, -1.0], [1.0, 1.0]]), torch.tensor([[1, 1], [1, 0]]))
    0.6666666666666666
    """
    given = scores > 0
    right = int((given & (y == 1)).sum())
    total = int(given.sum()) + int((y == 1).sum())
    return 2 * right / total if total else 0.0
