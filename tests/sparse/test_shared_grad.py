"""Values shared by runs of rows: products and gradients equal those of plain autograd on the whole."""

import pytest
import torch

from gst.nn.features import SharedFeatures, as_features
from gst.sparse.csr import Pattern, spmm
from gst.sparse.shared_grad import Shared, shared_linear, shared_spmm, take, token


def random_pattern(rows, columns, density=0.3):
    row, col = (torch.rand(rows, columns) < density).nonzero(as_tuple=True)
    return Pattern(row, col, (rows, columns))


@pytest.mark.parametrize("backward_only", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_runs_add_up_to_autograd(dtype, backward_only):
    torch.manual_seed(0)
    x, weight = torch.randn(9, 6, dtype=dtype), torch.randn(6, 4, dtype=dtype)
    patterns = [random_pattern(5, 9), random_pattern(3, 9)]
    shared = Shared.of(x, token(True), backward_only)
    whole = x.clone().requires_grad_()
    for pattern in patterns:
        values = torch.randn(pattern.nnz, dtype=dtype)
        own = torch.randint(9, (pattern.shape[0],))
        mine, plain = values.clone().requires_grad_(), values.clone().requires_grad_()
        halves = [shared_spmm(pattern, mine, half) for half in shared.split(2)]
        found = shared_spmm(pattern, mine, shared, weight) + shared_linear(shared, own, weight)
        found = torch.cat([found, torch.cat(halves, 1), take(shared, own)], 1)
        sums = spmm(pattern, plain, whole)
        expected = torch.cat([sums @ weight + whole[own] @ weight, sums, whole[own]], 1)
        if not backward_only:
            assert torch.allclose(found, expected, atol=1e-5)
        slope = torch.randn_like(expected)
        to_mine = torch.autograd.grad(found, [mine, shared.token], slope, allow_unused=True)[0]
        expected.backward(slope)
        assert torch.allclose(to_mine, plain.grad, atol=1e-5)
    assert torch.allclose(shared.slope, whole.grad, atol=1e-5)


def test_no_gradient_is_accumulated_unless_requested():
    shared = Shared.of(torch.randn(4, 2), token(False))
    values = torch.ones(3).requires_grad_()
    pattern = Pattern(torch.tensor([0, 0, 1]), torch.tensor([1, 3, 2]), (2, 4))
    shared_spmm(pattern, values, shared).sum().backward()
    assert shared.slope is None and torch.allclose(values.grad, shared.value[[1, 3, 2]].sum(1))


@pytest.mark.parametrize("density", [0.02, 0.9])
def test_products_are_computed_once(density):
    torch.manual_seed(0)
    x = torch.randn(30, 12) * (torch.rand(30, 12) < density)
    features, weight = SharedFeatures(as_features(x)), torch.randn(12, 3)
    assert torch.allclose(features.times(weight).value, x @ weight, atol=1e-6)
    assert features.times(weight) is features.times(weight)
    assert features.times(weight * 2, weight) is features.times(weight)
    assert features.times(weight * 2).value.allclose(2 * x @ weight, atol=1e-5)


def test_gradients_of_products_and_features_add_up():
    torch.manual_seed(0)
    x, weight = torch.randn(7, 5), torch.randn(5, 3)
    features = SharedFeatures(x, slope=True)
    features.times(weight).slope.copy_(torch.ones(7, 3))
    features.itself.slope.fill_(2)
    assert torch.allclose(features.slope(), torch.ones(7, 3) @ weight.t() + 2)
