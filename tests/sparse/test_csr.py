import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from gst.sparse import csr
from gst.sparse.csr import Pattern, row_max, row_sum, sddmm, spmm


def random_pattern(rows: int, cols: int, seed: int = 0) -> tuple[Pattern, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    dense = torch.rand(rows, cols, generator=g) < 0.4
    dense[rows // 2] = False  # an empty row
    row, col = dense.nonzero(as_tuple=True)
    return Pattern(row, col, (rows, cols)), dense


def double(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("fallback", [False, True])
def test_products_equal_dense_ones(fallback, monkeypatch):
    if fallback:
        monkeypatch.delattr(torch.sparse, "sampled_addmm")
        monkeypatch.setattr(csr, "_CHUNK", 16)
    pattern, where = random_pattern(7, 5)
    values, x, a, b = double(pattern.nnz), double(5, 3), double(7, 4), double(5, 4)
    matrix = torch.zeros(7, 5, dtype=torch.float64).masked_scatter(where, values)
    assert torch.allclose(spmm(pattern, values, x), matrix @ x)
    assert torch.allclose(sddmm(pattern, a, b), (a @ b.t())[where])
    assert torch.allclose(row_sum(pattern, values), matrix.sum(1))


@pytest.mark.parametrize("fallback", [False, True])
def test_gradients_of_first_and_second_order(fallback, monkeypatch):
    if fallback:
        monkeypatch.delattr(torch.sparse, "sampled_addmm")
    pattern, _ = random_pattern(6, 4)
    inputs = (double(pattern.nnz), double(4, 3))
    assert gradcheck(lambda v, x: spmm(pattern, v, x), inputs)
    assert gradgradcheck(lambda v, x: spmm(pattern, v, x), inputs)
    operands = (double(6, 3), double(4, 3))
    assert gradcheck(lambda a, b: sddmm(pattern, a, b), operands)
    assert gradgradcheck(lambda a, b: sddmm(pattern, a, b), operands)


def test_no_intermediate_of_edges_times_width():
    """10,000 entries × 1,000 columns would be 40 MB; forward and backward stay far below."""
    nodes, entries, width = 200, 10_000, 1_000
    key = torch.randperm(nodes * nodes)[:entries].sort().values
    pattern = Pattern(key // nodes, key % nodes, (nodes, nodes))
    values, x = torch.rand(entries, requires_grad=True), torch.rand(nodes, width, requires_grad=True)
    with torch.profiler.profile(profile_memory=True) as profile:
        spmm(pattern, values, x).sum().backward()
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert largest < 5 * nodes * width * 4


def test_row_max_ignores_empty_rows():
    pattern, where = random_pattern(7, 5)
    values = torch.randn(pattern.nnz, 2) - 5
    expected = torch.stack([torch.full((7, 5), -torch.inf).masked_scatter(where, v) for v in values.t()], -1).amax(1)
    expected[~where.any(1)] = 0
    assert torch.equal(row_max(pattern, values), expected)


@pytest.mark.parametrize("width", [1, 15, 16, 50])
def test_float32_has_the_same_products_and_gradients_at_any_width(width):
    pattern, where = random_pattern(70, 50)
    values, x = torch.randn(pattern.nnz, requires_grad=True), torch.randn(width, 50).t().requires_grad_()
    matrix = torch.zeros(70, 50).masked_scatter(where, values)
    found, expected = spmm(pattern, values, x), matrix @ x
    torch.testing.assert_close(found, expected)
    back = torch.randn_like(expected)
    for mine, true in zip(*(torch.autograd.grad(y, (values, x), back) for y in (found, expected)), strict=True):
        torch.testing.assert_close(mine, true)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        spmm(pattern, values, torch.randn(49, width))


@pytest.mark.parametrize("width", [16, 37, 64])
def test_float32_sums_in_the_order_of_the_entries_products_rounded_first(width):
    pattern, _ = random_pattern(60, 40)
    values, x = torch.randn(pattern.nnz), torch.randn(40, width)
    expected = torch.zeros(60, width)
    for i, j, v in zip(pattern.row.tolist(), pattern.col.tolist(), values, strict=True):
        expected[i] += v * x[j]
    assert torch.equal(spmm(pattern, values, x), expected)
