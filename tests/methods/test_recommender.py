"""LightGCN against PyG's, its training against autograd, its sparse graphs and metrics against brute force."""

import numpy as np
import pytest
import torch
from scipy.optimize import isotonic_regression
from torch.nn import functional
from torch_geometric.nn.models import LightGCN as PyGLightGCN

import gst
from gst.data.gowalla import Recommendation, load_gowalla
from gst.methods.greedy.linear import _drop_rows, balanced_weight
from gst.methods.recommender import RecommenderPath, with_arcs
from gst.nn.lightgcn import LightGCN, Propagation
from gst.nn.recommend import Interactions, recommendation_metrics
from gst.train import bpr
from gst.train.bpr import BPRState, bpr_steps

USERS, ITEMS = 12, 15


@pytest.fixture(scope="module")
def seen() -> Interactions:
    generator = torch.Generator().manual_seed(0)
    key = torch.randperm(USERS * ITEMS, generator=generator)[:60]
    return Interactions.of(torch.stack([key // ITEMS, key % ITEMS]), USERS, ITEMS)


@pytest.fixture
def model() -> LightGCN:
    model = LightGCN(USERS + ITEMS, width=16)
    model.embedding.data = torch.randn(USERS + ITEMS, 16, generator=torch.Generator().manual_seed(1))
    return model


def test_it_is_the_model_of_pyg(seen, model):
    theirs = PyGLightGCN(USERS + ITEMS, 16, num_layers=3)
    theirs.embedding.weight.data = model.embedding.data
    assert torch.allclose(model(seen.edge_index), theirs.get_embedding(seen.edge_index), atol=1e-6)
    fast = Propagation.of(seen.edge_index, USERS + ITEMS, 3)(model.embedding.detach().numpy())
    assert np.allclose(fast, model(seen.edge_index).detach().numpy(), atol=1e-6)


def test_weight_zero_is_deletion_and_has_a_gradient(seen, model):
    keep = torch.arange(seen.edge_index.shape[1]) % 3 > 0
    weight = keep.float().requires_grad_()
    out = model(seen.edge_index, weight)
    assert torch.allclose(out, model(seen.edge_index[:, keep]), atol=1e-6)
    slope = torch.autograd.grad(out.square().sum(), weight)[0]
    assert slope.isfinite().all() and (slope[~keep] != 0).any()


@pytest.mark.parametrize("by_user", [True, False])
def test_a_step_follows_the_gradient_of_autograd(by_user, monkeypatch):
    """The first step of Adam has the sign of the gradient; here the gradient itself is read from its moment."""
    drawn = []
    original = bpr._ranking

    def watched(final, sample, *rest):
        drawn.append(sample)
        return original(final, sample, *rest)

    monkeypatch.setattr(bpr, "_ranking", watched)
    start = torch.randn(5, 4, generator=torch.Generator().manual_seed(2))
    state = BPRState.of(start)
    only = Interactions.of(torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2]]), 2, 3)  # every user has one possible negative
    propagate = Propagation.of(only.edge_index, 5, 3)
    options = {"steps": 1, "batch": 64, "lr": 0.1, "warm_down": 1, "penalty": 0.01, "seed": 0, "by_user": by_user}
    next(bpr_steps(state, propagate, only, **options))
    network = LightGCN(5, width=4)
    network.embedding.data = start.clone()
    z = network(only.edge_index)
    user, item = torch.from_numpy(only.user[drawn[0]]), torch.from_numpy(only.item[drawn[0]])
    negative = torch.where(user == 0, 2, 0)  # the one item that each user has not seen
    triples = [network.embedding[user], network.embedding[2 + item], network.embedding[2 + negative]]
    loss = -functional.logsigmoid((z[user] * (z[2 + item] - z[2 + negative])).sum(1)).mean()
    loss = loss + 0.01 / 2 * sum(part.square().sum() for part in triples) / 64
    slope = torch.autograd.grad(loss, network.embedding)[0]
    assert torch.allclose(state.mean, 0.1 * slope, atol=1e-6)


def test_training_ranks_what_was_seen_first(seen):
    state = BPRState.of(torch.randn(USERS + ITEMS, 16, generator=torch.Generator().manual_seed(0)) / 10)
    propagate = Propagation.of(seen.edge_index, USERS + ITEMS, 3)
    list(bpr_steps(state, propagate, seen, steps=200, batch=64, lr=0.05, warm_down=50, penalty=1e-4, seed=0))
    assert np.mean(state.losses[-20:]) < 0.3 * state.losses[0]
    again = BPRState(state.embedding, state.mean, state.square, state.step)
    assert list(bpr_steps(again, propagate, seen, steps=200, batch=64, lr=0.05, warm_down=50, penalty=0, seed=0)) == []


def test_metrics_are_those_of_brute_force(seen, model):
    generator = torch.Generator().manual_seed(3)
    known = set(zip(seen.user.tolist(), seen.item.tolist(), strict=True))
    free = [(u, i) for u in range(USERS) for i in range(ITEMS) if (u, i) not in known]
    test = torch.tensor([free[k] for k in torch.randperm(len(free), generator=generator)[:30]]).t()
    z = model(seen.edge_index).detach()
    recalls, gains = [], []
    for user in range(USERS):
        wanted = set(test[1, test[0] == user].tolist())
        scores = (z[user] @ z[USERS:].t()).tolist()
        ranked = sorted((i for i in range(ITEMS) if (user, i) not in known), key=lambda i: -scores[i])[:5]
        if wanted:
            hits = [item in wanted for item in ranked]
            recalls.append(sum(hits) / len(wanted))
            ideal = sum(1 / np.log2(k + 2) for k in range(min(5, len(wanted))))
            gains.append(sum(hit / np.log2(k + 2) for k, hit in enumerate(hits)) / ideal)
    metrics = recommendation_metrics(z, seen, test, k=5)
    assert metrics["recall@5"] == pytest.approx(np.mean(recalls), abs=1e-6)
    assert metrics["ndcg@5"] == pytest.approx(np.mean(gains), abs=1e-6)
    assert 0 <= metrics["popularity"] <= 1 and 0 < metrics["coverage"] <= 1


def test_the_path_is_one_order_with_exact_budgets(seen, model):
    path = RecommenderPath(model, seen)
    arcs = seen.edge_index.shape[1]
    assert sorted(path.order.tolist()) == list(range(arcs))
    before = None
    for sparsity in (0.0, 0.3, 0.6, 0.9):
        result = path.sparse(sparsity)
        assert int(result.edge_mask.sum()) == arcs - round(sparsity * arcs) == result.graph.num_edges
        assert before is None or not (result.edge_mask & ~before).any()
        before = result.edge_mask
    assert torch.allclose(path.sparse(0.0).embeddings(), model(seen.edge_index), atol=1e-6)


def test_weights_keep_the_degrees_of_the_dense_graph(seen):
    mask = torch.arange(seen.edge_index.shape[1]) % 2 > 0
    weight, target = balanced_weight(seen.edge_index, mask, USERS + ITEMS), seen.edge_index[1, mask]
    degree = torch.zeros(USERS + ITEMS).index_add(0, target, weight)
    dense = torch.bincount(seen.edge_index[1], minlength=USERS + ITEMS).float()
    has = torch.bincount(target, minlength=USERS + ITEMS) > 0
    assert torch.allclose(degree[has], dense[has])


def test_costs_are_those_of_brute_force():
    """One row of seven arcs: each drop is the best of all that are left, its cost the slope of the pooled path."""
    generator = torch.Generator().manual_seed(4)
    sent, values = torch.randn(8, 6, generator=generator), torch.rand(7, generator=generator)
    crow, col = torch.tensor([0, 7] + [7] * 7), torch.arange(1, 8)
    own, other = torch.tensor([2.0] + [0.0] * 7), torch.tensor([0.5] + [0.0] * 7)
    cost = np.empty(7)
    _drop_rows(*(part.numpy() for part in (crow, col, values, sent, own, other)), cost)

    scale = torch.tensor([2.0] * 3 + [0.5] * 3)
    messages = scale * values[:, None] * sent[1:]

    def error(kept):
        found = 7 / len(kept) * messages[kept].sum(0) if kept else torch.zeros(6)
        return float((found - messages.sum(0)).square().sum())

    left, drops, slopes = list(range(7)), [], []
    while left:
        best = min(left, key=lambda arc: error([other for other in left if other != arc]))
        rest = [arc for arc in left if arc != best]
        slopes.append(error(rest) - error(left))
        drops.append(best)
        left = rest
    assert cost[drops] == pytest.approx(isotonic_regression(slopes).x, rel=1e-3, abs=1e-4)


def test_deploy_keeps_more_than_random_arcs(seen, model):
    dense = model(seen.edge_index).detach()
    arcs = seen.edge_index.shape[1]
    path = RecommenderPath(model, seen)
    keep = torch.rand(arcs, generator=torch.Generator().manual_seed(5)).argsort() < arcs - round(0.4 * arcs)
    errors = []
    for result in (path.sparse(0.4), with_arcs(model, seen.edge_index, keep)):
        z = result.embeddings()
        errors.append(float((z[:USERS] @ z[USERS:].t() - dense[:USERS] @ dense[USERS:].t()).square().mean()))
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([[0, 1], [0, 9]], [[0], [1]], "train names users outside"),
        ([[0, 0], [1, 1]], [[0], [0]], "twice"),
        ([[0, 1], [0, 1]], [[0], [0]], "1 test interactions are also in train"),
        ([[], []], [[0], [0]], "train should be"),
    ],
)
def test_bad_interactions(train, test, message):
    with pytest.raises(gst.InputError, match=message):
        Recommendation.of(torch.tensor(train).long(), torch.tensor(test), 2, 3)


def test_a_model_of_another_size(seen):
    with pytest.raises(gst.InputError, match="5 embeddings, users and items are 27"):
        RecommenderPath(LightGCN(5), seen)


def test_gowalla_is_looked_for_and_checked(tmp_path, monkeypatch):
    monkeypatch.delenv("GST_MIRROR", raising=False)
    with pytest.raises(gst.InputError, match=r"no gowalla/interactions\.npz"):
        load_gowalla(tmp_path)
    (tmp_path / "gowalla").mkdir()
    (tmp_path / "gowalla" / "interactions.npz").write_bytes(b"broken")
    with pytest.raises(gst.InputError, match="no file with the arrays"):
        load_gowalla(tmp_path)
