"""Metrics of ranked pairs against OGB's evaluator, scikit-learn and brute force."""

import numpy as np
import pytest
import torch

from gst.nn.ranking import average_precision, hits_at, link_metrics, mean_reciprocal_rank, precision_at


def scored(seed: int, ties: bool) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(400, generator=generator)
    return (scores * 4).round() if ties else scores, (torch.rand(400, generator=generator) < 0.3).long()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("name", "k"), [("ogbl-collab", 50), ("ogbl-ddi", 20), ("ogbl-ppa", 100)])
def test_hits_are_those_of_ogb(name, k, ties):
    evaluator = pytest.importorskip("ogb.linkproppred").Evaluator(name)
    scores, y = scored(k, ties)
    positives, negatives = scores[y == 1], scores[y == 0]
    theirs = evaluator.eval({"y_pred_pos": positives, "y_pred_neg": negatives})[f"hits@{k}"]
    assert hits_at(positives, negatives, k) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_mrr_is_that_of_ogb(ties):
    evaluator = pytest.importorskip("ogb.linkproppred").Evaluator("ogbl-citation2")
    scores, y = scored(1, ties)
    positives, negatives = scores[y == 1], scores[y == 0]
    theirs = evaluator.eval({"y_pred_pos": positives, "y_pred_neg": negatives.expand(positives.numel(), -1)})
    assert mean_reciprocal_rank(positives, negatives) == pytest.approx(float(theirs["mrr_list"].mean()), abs=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_auc_and_average_precision_are_those_of_scikit_learn(ties):
    metrics = pytest.importorskip("sklearn.metrics")
    scores, y = scored(2, ties)
    assert link_metrics(scores, y)["auc"] == pytest.approx(metrics.roc_auc_score(y, scores), abs=1e-12)
    assert average_precision(scores, y) == pytest.approx(metrics.average_precision_score(y, scores), abs=1e-12)


def test_precision_at_k_is_the_mean_over_all_orders_of_ties():
    scores, y = scored(3, ties=True)
    random = np.random.default_rng(0)
    for k in (1, 17, 120, 1000):
        draws = []
        for _ in range(300):
            order = np.lexsort((random.random(400), -scores.numpy()))
            draws.append(y.numpy()[order[:k]].mean())
        assert precision_at(scores, y, k) == pytest.approx(np.mean(draws), abs=0.03 if k < 20 else 0.01)


def test_nothing_to_rank():
    assert average_precision(torch.ones(3), torch.zeros(3)) == 0
    assert precision_at(torch.zeros(0), torch.zeros(0), 5) == 0
    assert hits_at(torch.ones(3), torch.zeros(2), 50) == 1
