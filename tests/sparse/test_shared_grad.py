"""What runs of rows read of all nodes: values and slopes are those of plain autograd on the whole."""

import pytest
import torch

from gst.nn.features import SharedFeatures, as_features
from gst.sparse.csr import Pattern, spmm
from gst.sparse.shared_grad import Shared, shared_linear, shared_spmm, take, token


def random_pattern(rows, columns, density=0.3):
    row, col = (torch.rand(rows, columns) < density).nonzero(as_tuple=True)
    return Pattern(row, col, (rows, columns))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_runs_add_up_to_autograd(dtype, known):
    torch.manual_seed(0)
    x, weight = torch.randn(9, 6, dtype=dtype), torch.randn(6, 4, dtype=dtype)
    patterns = [random_pattern(5, 9), random_pattern(3, 9)]
    shared = Shared.of(x, token(True), known)
    whole = x.clone().requires_grad_()
    for pattern in patterns:
        values = torch.randn(pattern.nnz, dtype=dtype)
        own = torch.randint(9, (pattern.shape[0],))
        mine, plain = values.clone().requires_grad_(), values.clone().requires_grad_()
        halves = [shared_spmm(pattern, mine, half) for half in shared.split(2)]
        found = shared_spmm(pattern, mine, shared, weight) + shared_linear(shared, own, weight)
        found = torch.cat([found, torch.cat(halves, 1), take(shared, own)], 1)
        sums = spmm(pattern, plain, whole)
        wanted = torch.cat([sums @ weight + whole[own] @ weight, sums, whole[own]], 1)
        if not known:
            assert torch.allclose(found, wanted, atol=1e-5)
        slope = torch.randn_like(wanted)
        to_mine = torch.autograd.grad(found, [mine, shared.token], slope, allow_unused=True)[0]
        wanted.backward(slope)
        assert torch.allclose(to_mine, plain.grad, atol=1e-5)
    assert torch.allclose(shared.slope, whole.grad, atol=1e-5)


def test_nobody_asks_nobody_adds():
    shared = Shared.of(torch.randn(4, 2), token(False))
    values = torch.ones(3).requires_grad_()
    pattern = Pattern(torch.tensor([0, 0, 1]), torch.tensor([1, 3, 2]), (2, 4))
    shared_spmm(pattern, values, shared).sum().backward()
    assert shared.slope is None and torch.allclose(values.grad, shared.value[[1, 3, 2]].sum(1))


@pytest.mark.parametrize("density", [0.02, 0.9])
def test_products_are_taken_once(density):
    torch.manual_seed(0)
    x = torch.randn(30, 12) * (torch.rand(30, 12) < density)
    given, weight = SharedFeatures(as_features(x)), torch.randn(12, 3)
    assert torch.allclose(given.times(weight).value, x @ weight, atol=1e-6)
    assert given.times(weight) is given.times(weight)
    assert given.times(weight * 2, weight) is given.times(weight)
    assert given.times(weight * 2).value.allclose(2 * x @ weight, atol=1e-5)


def test_slopes_are_carried_back_once():
    torch.manual_seed(0)
    x, weight = torch.randn(7, 5), torch.randn(5, 3)
    given = SharedFeatures(x, slope=True)
    given.times(weight).slope.copy_(torch.ones(7, 3))
    given.itself.slope.fill_(2)
    assert torch.allclose(given.slope(), torch.ones(7, 3) @ weight.t() + 2)
