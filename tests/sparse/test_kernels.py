"""The kernels against dense linear algebra."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from gst.sparse import kernels


def matrix(rng: np.random.Generator, rows: int, columns: int, density: float) -> tuple[np.ndarray, tuple]:
    """A dense matrix with some empty rows, and its CSR."""
    dense = (rng.random((rows, columns)) < density) * rng.standard_normal((rows, columns))
    dense[rng.random(rows) < 0.2] = 0
    sparse = csr_matrix(dense.astype(np.float32))
    return dense, (sparse.indptr.astype(np.int32), sparse.indices.astype(np.int32), sparse.data)


@given(
    rows=st.integers(1, 30),
    columns=st.integers(1, 30),
    width=st.integers(1, 200),
    density=st.sampled_from([0.0, 0.1, 1.0]),
    relu=st.booleans(),
    shared=st.booleans(),
    narrow=st.booleans(),
)
def test_product_equals_the_dense_one(rows, columns, width, density, relu, shared, narrow):
    rng = np.random.default_rng(rows * 31 + width)
    dense, csr = matrix(rng, rows, columns, density)
    x = torch.from_numpy(rng.standard_normal((columns, width)).astype(np.float32))
    x = x.bfloat16() if narrow else x
    init = rng.standard_normal((1 if shared else rows, width)).astype(np.float32)
    bits = (x.view(torch.int16) if narrow else x).numpy()
    found = kernels.product(*csr, bits, init, relu)
    expected = init + dense @ x.double().numpy()
    expected = np.maximum(expected, 0) if relu else expected
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spread", [1.0, 30.0, 500.0])
@pytest.mark.parametrize(("heads", "width"), [(1, 3), (2, 4), (8, 16)])
def test_attention_equals_the_softmax(heads, width, spread):
    rng = np.random.default_rng(heads)
    _, (crow, col, _) = matrix(rng, 20, 20, 0.3)
    values = rng.random(col.size).astype(np.float32) + 0.5
    x = rng.standard_normal((20, heads * width)).astype(np.float32)
    source, target = (spread * rng.standard_normal((2, 20, heads))).astype(np.float32)
    bias = rng.standard_normal(heads * width).astype(np.float32)
    found = kernels.attention(crow, col, values, x, source, target, bias)
    for i in range(20):
        row = slice(crow[i], crow[i + 1])
        near = col[row]
        if near.size == 0:
            np.testing.assert_array_equal(found[i], bias)
            continue
        z = target[i].astype(float) + source[near]
        z = np.maximum(z, 0.2 * z)
        weight = values[row, None] * np.exp(z - z.max(0))
        weight /= weight.sum(0)
        expected = np.einsum("eh,ehd->hd", weight, x[near].reshape(-1, heads, width)).ravel() + bias
        np.testing.assert_allclose(found[i], expected, rtol=2e-4, atol=2e-5 * spread)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(3)
    _, csr = matrix(rng, 1000, 1000, 0.02)
    x, init = rng.standard_normal((2, 1000, 40)).astype(np.float32)
    logits = rng.standard_normal((2, 1000, 4)).astype(np.float32)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append((kernels.product(*csr, x, init, True), kernels.attention(*csr, x, *logits, init[0])))
    finally:
        torch.set_num_threads(before)
    for product, attention in results[1:]:
        np.testing.assert_array_equal(product, results[0][0])
        np.testing.assert_array_equal(attention, results[0][1])
