import ot
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn.models import GCN

from graphs import new_run, random_graph
from gst import InputError
from gst.base.randomness import seeded
from gst.methods.iterative import fresh_network
from gst.methods.ugs import Masked
from gst.methods.wdglt import WDGLT, separation, sinkhorn
from gst.storage.cache import Cache
from gst.testing import check_mask

QUICK = {"hidden": 8, "heads": 2, "anchor_epochs": 2, "sparse_epochs": 3, "round_epochs": 2, "cache": False}


def fit(data=None, **given):
    data = random_graph(nodes=30, edges=60) if data is None else data
    return WDGLT(**{**QUICK, **given}).fit(data)


def clouds(n=9, m=6, classes=4, dtype=torch.float64):
    g = torch.Generator().manual_seed(0)
    return (torch.randn(k, classes, generator=g, dtype=dtype).softmax(-1) for k in (n, m))


@pytest.mark.parametrize("epsilon", [1e-3, 1e-1])
@pytest.mark.parametrize("iterations", [1, 10])
def test_sinkhorn_equals_pot(epsilon, iterations):
    x, y = clouds()
    plan = ot.bregman.sinkhorn_log(
        torch.full((9,), 1 / 9).double(),
        torch.full((6,), 1 / 6).double(),
        ot.dist(x, y),
        epsilon,
        numItermax=iterations,
        stopThr=0.0,
        warn=False,
    )
    expected = (plan * ot.dist(x, y)).sum()
    torch.testing.assert_close(sinkhorn(x, y, epsilon, iterations), expected)


def test_sinkhorn_converges_to_the_regularised_and_to_the_exact_cost():
    x, y = clouds()
    a, b, cost = torch.full((9,), 1 / 9).double(), torch.full((6,), 1 / 6).double(), ot.dist(x, y)
    expected = ot.sinkhorn2(a, b, cost, 0.1, numItermax=10_000, stopThr=1e-14)
    torch.testing.assert_close(sinkhorn(x, y, 0.1, 2000), expected)
    torch.testing.assert_close(sinkhorn(x, y, 1e-3, 3000), ot.emd2(a, b, cost), rtol=1e-3, atol=0)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-1])
def test_sinkhorn_gradient(epsilon):
    x, y = (cloud.requires_grad_() for cloud in clouds(5, 4, 3))
    assert gradcheck(lambda x, y: sinkhorn(x, y, epsilon, 10), (x, y), eps=1e-8, atol=1e-4)


def test_sinkhorn_gradient_of_the_gradient():
    x, y = (cloud.requires_grad_() for cloud in clouds(5, 4, 3))
    assert gradgradcheck(lambda x, y: sinkhorn(x, y, 0.1, 5), (x, y), atol=1e-4)


def test_sinkhorn_in_single_precision_stays_finite():
    x, y = clouds(dtype=torch.float32)
    x = x.requires_grad_()
    value = sinkhorn(x, y, 1e-3, 10)
    value.backward()
    exact = sinkhorn(x.detach().double(), y.double(), 1e-3, 10)
    torch.testing.assert_close(value.detach().double(), exact, rtol=1e-3, atol=0)
    assert bool(x.grad.isfinite().all())


def test_separation_sums_over_predicted_classes():
    g = torch.Generator().manual_seed(1)
    logits = torch.randn(20, 3, generator=g)
    logits[:, 2] -= 20  # nobody is predicted to be in the last class
    p, predicted = logits.softmax(-1), logits.argmax(-1)
    expected = sum(sinkhorn(p[predicted == c], p[predicted != c], 0.05, 300) for c in (0, 1))
    torch.testing.assert_close(separation(logits, 100, 0.05, 300), expected)
    assert float(separation(torch.tensor([[5.0, 0.0]] * 4), 100, 0.05, 10)) == 0
    apart = torch.eye(3).repeat(5, 1) * 50
    torch.testing.assert_close(separation(apart, 100, 0.05, 50), torch.tensor(6.0))


def test_separation_of_several_labels_a_node():
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    logits[:, 2] = 3.0  # everybody is predicted to have the last label
    p = logits.sigmoid()
    expected = sum(sinkhorn(p[logits[:, c] > 0], p[logits[:, c] <= 0], 0.05, 300) for c in (0, 1))
    torch.testing.assert_close(separation(logits, 100, 0.05, 300, multilabel=True), expected)


def test_separation_draws_a_sample_of_large_classes():
    logits = torch.randn(2000, 3, generator=torch.Generator().manual_seed(2)).requires_grad_()
    values = []
    for seed in (0, 0, 1):
        with seeded(seed):
            values.append(separation(logits, 16, 1e-3, 10))
    assert values[0] == values[1] != values[2]
    values[0].backward()
    assert 0 < int((logits.grad.abs().sum(1) > 0).sum()) <= 3 * 2 * 16


@pytest.mark.parametrize("given", [{}, {"alpha": 1.0}, {"ascent": False}, {"weight_prune_ratio": 0.2}])
def test_same_seed_same_bits_stored_or_not(given, tmp_path):
    first = fit(sparsity=0.2, **given)
    for cache in (False, Cache(tmp_path), Cache(tmp_path)):
        again = fit(sparsity=0.2, cache=cache, **given)
        assert torch.equal(first.result_.scores, again.result_.scores) and torch.equal(
            first.found_.logits, again.found_.logits
        )
    assert bool(first.weight_masks_) == bool(given.get("weight_prune_ratio"))


def test_stored_path_serves_another_sparsity(tmp_path):
    events, cache = [], Cache(tmp_path)
    fit(sparsity=0.3, cache=cache)
    fit(sparsity=0.1, cache=cache, callbacks=lambda step: events.append(step.phase))
    assert "prune" not in events
    fit(sparsity=0.1, cache=cache, alpha=1.0, callbacks=lambda step: events.append(step.phase))
    assert "prune" in events


def small(**given):
    run = new_run(random_graph(nodes=30, edges=60), hidden=8, dropout=0.0, lr=0.01, cache=False)
    with seeded(0):
        masked = Masked(run, fresh_network(run), run.edges, {})
    masked.mask.data.fill_(0.5)
    return masked, WDGLT(sparsity=0.5, sample_size=100, **given)


@pytest.mark.parametrize("ascent", [True, False])
def test_the_mask_climbs_and_the_weights_descend(ascent):
    masked, method = small(ascent=ascent, epsilon=0.05)
    mask, weights = masked.mask.detach().clone(), {n: p.clone() for n, p in masked.network.module.named_parameters()}

    def loss(values):
        with torch.no_grad():
            return float(method.loss(masked, values))

    before = loss(mask)
    method.epoch(masked)
    after = masked.mask.detach().clone()
    at_new_weights = loss(after)
    for name, parameter in masked.network.module.named_parameters():
        parameter.data.copy_(weights[name])
    at_old_weights = loss(after)
    assert (at_old_weights > before) == ascent
    assert at_new_weights < at_old_weights
    assert float(after.min()) >= 0 and float(after.max()) <= 1


def test_every_edge_is_seen():
    masked, method = small()
    masked.network.module.eval()
    mask = masked.mask.detach().clone().requires_grad_()
    slope = torch.autograd.grad(method.loss(masked, mask), mask)[0]
    assert (slope != 0).float().mean() > 0.95


def test_implicit_gradient_is_that_of_the_loss_after_a_plain_step():
    found = {}
    for alpha in (0.0, 1.0):
        masked, method = small(alpha=alpha, epsilon=0.5)
        rate = masked.run.training.lr
        masked.network.module.double()
        masked.network.x = masked.network.x.double()
        masked.mask.data = masked.mask.data.double()
        mask, module = masked.mask.detach().clone().requires_grad_(), masked.network.module
        weight = module.layers[0].weight
        masked.mask_optimizer = torch.optim.SGD([masked.mask], lr=rate)  # the step of the formula
        masked.weight_optimizer = torch.optim.SGD([weight], lr=0.0)
        with seeded(3):
            method.epoch(masked)
        found[alpha] = weight.grad.clone()

        def after_a_step(method=method, masked=masked, mask=mask, rate=rate):
            with seeded(3):
                slope = torch.autograd.grad(method.loss(masked, mask), mask)[0]
                return method.loss(masked, (mask + rate * slope).clamp(0, 1)).item()

        if alpha == 1:
            for i, j in ((0, 1), (2, 3), (4, 7)):
                base = weight.data[i, j].clone()
                sides = []
                for shift in (1e-5, -1e-5):
                    weight.data[i, j] = base + shift
                    sides.append(after_a_step())
                weight.data[i, j] = base
                assert abs((sides[0] - sides[1]) / 2e-5 - float(found[1.0][i, j])) < 1e-6
    assert not torch.allclose(found[0.0], found[1.0], rtol=1e-9, atol=0)


def test_own_model():
    data = random_graph(nodes=30, edges=60)
    method = fit(data, model=GCN(5, 8, 2, out_channels=3), sparsity=0.1, hidden=None, heads=None)
    check_mask(data, method.result_.edge_mask, sparsity=0.1)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"iterations": 0}, {"alpha": 2}, {"sample_size": 0}, {"prune_ratio": 0}]
)
def test_wrong_arguments_get_one_clear_line(wrong):
    with pytest.raises(InputError, match=f"WDGLT: {next(iter(wrong))} = "):
        WDGLT(sparsity=0.5, **wrong)
