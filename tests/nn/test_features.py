import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from gst.nn.features import SparseFeatures, as_features, dropout, feature_dropout, linear


def test_layout_follows_density():
    thin = (torch.rand(50, 40) < 0.02).float()
    assert isinstance(as_features(thin), SparseFeatures)
    assert isinstance(as_features(torch.rand(50, 40)), torch.Tensor)


def test_sparse_and_dense_products_agree_with_their_gradients():
    x = torch.randn(30, 20) * (torch.rand(30, 20) < 0.04)
    sparse = as_features(x)
    assert isinstance(sparse, SparseFeatures) and torch.equal(sparse.pattern.matrix(sparse.values).to_dense(), x)
    weight = torch.randn(20, 6, requires_grad=True)
    same = weight.detach().clone().requires_grad_()
    (linear(sparse, weight) ** 2).sum().backward()
    (linear(x, same) ** 2).sum().backward()
    assert torch.allclose(weight.grad, same.grad, atol=1e-5)


def test_dropout_keeps_the_mean_and_the_right_share():
    torch.manual_seed(0)
    x = torch.ones(1000, 333)
    for p in (0.25, 0.5, 0.6):
        out = dropout(x, p, training=True)
        zeros = float((out == 0).double().mean())
        assert abs(zeros - p) < 0.005
        assert abs(float(out.mean()) - 1) < 0.01
        assert out.unique().numel() == 2
    # every byte of a random word is used: neighbours are independent
    kept = (dropout(x, 0.5, training=True) > 0).double()
    assert abs(float((kept[:, 1:] * kept[:, :-1]).mean()) - 0.25) < 0.005
    share = kept.flatten()[: 8 * 41000].view(-1, 8).mean(0)
    assert bool(((share - 0.5).abs() < 0.01).all())


def test_dropout_gradient_is_its_own_mask():
    x = torch.randn(20, 5, dtype=torch.float64, requires_grad=True)

    def repeated(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return dropout(x, 0.5, training=True)

    assert gradcheck(repeated, (x,)) and gradgradcheck(repeated, (x,))
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_large_dropout_and_its_slopes_are_those_of_many_small_ones(kind, threads):
    x, grad = torch.randn(4, 8, 8192, dtype=kind).unbind()[:2]
    whole, parts = x.clone().requires_grad_(), x.clone().requires_grad_()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(5)
        out = dropout(whole.view(2048, 32), 0.3, training=True).view_as(x)
    finally:
        torch.set_num_threads(before)
    torch.manual_seed(5)
    random = torch.empty(x.numel() // 8 + 1, dtype=torch.int64).random_(-(2**63), None).view(torch.uint8)
    expected = parts * (random[: x.numel()].view_as(x) >= 77) * (256 / 179)
    assert torch.equal(out, expected) and torch.equal(torch.signbit(out), torch.signbit(expected))
    out.backward(grad)
    expected.backward(grad)
    assert torch.equal(whole.grad, parts.grad)


def test_sparse_dropout_touches_values_only():
    x = as_features((torch.rand(50, 40) < 0.03).float())
    out = feature_dropout(x, 0.5, training=True)
    assert out.pattern is x.pattern and set(out.values.unique().tolist()) <= {0.0, 2.0}
