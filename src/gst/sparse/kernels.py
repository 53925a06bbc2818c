r"""Sparse × dense products: rows summed in vector registers, neighbours prefetched, bias and ReLU fused.

.. math:: Y_i = \mathrm{act}\Big(B_i + \sum_j v_{ij} X_j\Big), \qquad
    Y_i = b + \frac{\sum_j v_{ij} \exp e_{ij}\, X_j}{\sum_j v_{ij} \exp e_{ij}}

X is float32, or bfloat16 (its bits as int16) for half the memory traffic; sums are float32 either way. Every row is
summed by one thread in the order of its entries, so the number of threads does not change a bit. Products are rounded
before they are added, on every processor; where PyTorch's product does the same (MKL on AMD), both give the same bits.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gst.base.jit import njit

_AHEAD = 16  # entries between a prefetch and its use; without it, rows of 256 numbers took up to 1.7 times as long
_LINE = 64  # bytes of a cache line
_F32, _I64, _I32, _I16, _I8 = ir.FloatType(), ir.IntType(64), ir.IntType(32), ir.IntType(16), ir.IntType(8)


def _prefetch(b: Any, address: Any) -> None:
    """Prefetches the cache line at an address."""
    signature = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(b.module, signature, "llvm.prefetch.p0i8")
    read_keep_data = (ir.Constant(_I32, flag) for flag in (0, 3, 1))
    b.call(function, [b.inttoptr(address, _I8.as_pointer()), *read_keep_data])


def _summing(vectors: int, lanes: int) -> Any:
    """An intrinsic that sums ``vectors · lanes`` adjacent columns of one row: out = init + Σ_e v_e · x[col_e]."""
    vector: Any = _F32 if lanes == 1 else ir.VectorType(_F32, lanes)

    def over_lanes(scalar: Any) -> Any:
        return scalar if lanes == 1 else ir.VectorType(scalar, lanes)

    @intrinsic
    def add(
        typingctx: Any, x: Any, column: Any, col: Any, value: Any, count: Any, limit: Any, init: Any, out: Any
    ) -> Any:
        narrow = x.dtype.bitwidth == 16

        def generate(context: Any, b: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, b, value=args[0])
            column, col, value, count, limit, init, out = args[1:]
            stride, size = b.extract_value(array.strides, 0), 2 if narrow else 4
            start = b.add(b.ptrtoint(array.data, _I64), b.mul(column, ir.Constant(_I64, size)))

            def int64(number: int) -> Any:
                return ir.Constant(_I64, number)

            def read(address: Any, of: Any, align: int = 4) -> Any:
                return b.load(b.inttoptr(address, of.as_pointer()), align=align)

            def row_of(entry: Any) -> Any:
                index = b.sext(read(b.add(col, b.mul(entry, int64(4))), _I32), _I64)
                return b.add(start, b.mul(index, stride))

            def operand(row: Any, k: int) -> Any:
                address = b.add(row, int64(k * lanes * size))
                if not narrow:
                    return read(address, vector)
                bits = b.zext(read(address, over_lanes(_I16), 2), over_lanes(_I32))
                sixteen = ir.Constant(over_lanes(_I32), 16 if lanes == 1 else [16] * lanes)
                return b.bitcast(b.shl(bits, sixteen), vector)  # a bfloat16 is the upper half of a float32

            initial = [read(b.add(init, int64(4 * k * lanes)), vector) for k in range(vectors)]
            before = b.block
            head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
            b.branch(head)
            b.position_at_end(head)
            entry, totals = b.phi(_I64), [b.phi(vector) for _ in initial]
            for phi, start_value in zip([entry, *totals], [int64(0), *initial], strict=True):
                phi.add_incoming(start_value, before)
            b.cbranch(b.icmp_signed("<", entry, count), body, done)

            b.position_at_end(body)
            later = b.add(entry, int64(_AHEAD))
            later_row = row_of(b.select(b.icmp_signed("<", later, limit), later, limit))
            for offset in range(0, vectors * lanes * size, _LINE):
                _prefetch(b, b.add(later_row, int64(offset)))
            factor = read(b.add(value, b.mul(entry, int64(4))), _F32)
            if lanes > 1:
                undefined = ir.Constant(vector, ir.Undefined)
                first_lane = b.insert_element(undefined, factor, ir.Constant(_I32, 0))
                factor = b.shuffle_vector(first_lane, undefined, ir.Constant(over_lanes(_I32), [0] * lanes))
            row = row_of(entry)
            updated = [b.fadd(totals[k], b.fmul(factor, operand(row, k))) for k in range(vectors)]
            for phi, updated_value in zip([entry, *totals], [b.add(entry, int64(1)), *updated], strict=True):
                phi.add_incoming(updated_value, body)
            b.branch(head)

            b.position_at_end(done)
            for k, total in enumerate(totals):
                b.store(total, b.inttoptr(b.add(out, int64(4 * k * lanes)), vector.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.void(x, *[types.intp] * 7), generate

    return add


def _fetch_row(typingctx: Any, x: Any, row: Any) -> Any:
    """Prefetches a whole row of a matrix."""

    def generate(context: Any, b: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, b, value=args[0])
        row = context.cast(b, args[1], signature.args[1], types.int64)
        start = b.add(b.ptrtoint(array.data, _I64), b.mul(row, b.extract_value(array.strides, 0)))
        size = b.mul(b.extract_value(array.shape, 1), b.extract_value(array.strides, 1))
        with cgutils.for_range_slice(b, ir.Constant(_I64, 0), size, ir.Constant(_I64, _LINE)) as (offset, _):
            _prefetch(b, b.add(start, offset))
        return context.get_dummy_value()

    return types.void(x, row), generate


fetch: Any = intrinsic(_fetch_row)
_add_64, _add_32, _add_16, _add_8 = (_summing(vectors, 8) for vectors in (8, 4, 2, 1))
_add_4, _add_2, _add_1 = (_summing(1, lanes) for lanes in (4, 2, 1))


@njit(nogil=True, cache=True)
def _add_row(
    x: np.ndarray, first: int, last: int, col: Any, value: Any, count: Any, limit: Any, init: Any, out: Any
) -> None:
    """out = init + Σ_e value_e · x[col_e, first:last]; col, value, init and out are addresses, the latter of column 0.

    ``limit``: the last entry that may be read from ``col``, to prefetch for the next rows.
    """
    k = first
    while k + 64 <= last:
        _add_64(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)
        k += 64
    if k + 32 <= last:
        _add_32(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)
        k += 32
    if k + 16 <= last:
        _add_16(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)
        k += 16
    if k + 8 <= last:
        _add_8(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)
        k += 8
    if k + 4 <= last:
        _add_4(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)
        k += 4
    if k + 2 <= last:
        _add_2(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)
        k += 2
    if k < last:
        _add_1(x, k, col, value, count, limit, init + 4 * k, out + 4 * k)


@njit(nogil=True, cache=True)
def _product_rows(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    init: np.ndarray,
    out: np.ndarray,
    relu: bool,
    begin: int,
    end: int,
) -> None:
    width = out.shape[1]
    step = 0 if init.shape[0] == 1 else init.strides[0]
    for i in range(begin, end):
        start = np.int64(crow[i])
        count = np.int64(crow[i + 1]) - start
        entries = (col.ctypes.data + 4 * start, values.ctypes.data + 4 * start, count, col.size - 1 - start)
        _add_row(x, 0, width, *entries, init.ctypes.data + step * i, out.ctypes.data + out.strides[0] * i)
        if relu:
            for k in range(width):
                out[i, k] = max(out[i, k], np.float32(0))


@njit(nogil=True, cache=True, error_model="numpy")
def _attention_rows(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    source: np.ndarray,  # [N, heads] a_s·W x_j
    target: np.ndarray,  # [N, heads] a_t·W x_i
    parts: np.ndarray,  # [2, N, heads] exp(s − S) and exp(0.2 (s − S)), S the largest s of the head
    top: np.ndarray,  # [heads] S
    exact: bool,
    bias: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """The exponential of LeakyReLU is max(exp z, exp 0.2 z), and each of the two is a product of one factor per node.

    So no entry needs an exponential of its own, unless the factors would leave the range of float32 (``exact``).
    """
    heads, width = source.shape[1], out.shape[1] // source.shape[1]
    longest = 0
    for i in range(begin, end):
        longest = max(longest, crow[i + 1] - crow[i])
    weight, factor, total = np.empty((heads, longest), np.float32), np.empty((2, heads), np.float32), np.empty(heads)
    for i in range(begin, end):
        start = np.int64(crow[i])
        count = np.int64(crow[i + 1]) - start
        for h in range(heads):
            total[h] = 0
            peak = top[h]
            if exact:
                peak = np.float32(-np.inf)
                for e in range(count):
                    peak = max(peak, source[col[start + e], h])
            z = target[i, h] + peak
            peak = max(z, np.float32(0.2) * z)  # no logit of the row is larger
            factor[0, h], factor[1, h] = np.exp(z - peak), np.exp(np.float32(0.2) * z - peak)
            if exact:
                factor[0, h] = peak
        for e in range(count):
            j = col[start + e]
            for h in range(heads):
                if exact:
                    z = target[i, h] + source[j, h]
                    w = np.exp(max(z, np.float32(0.2) * z) - factor[0, h])
                else:
                    w = max(factor[0, h] * parts[0, j, h], factor[1, h] * parts[1, j, h])
                w *= values[start + e]
                weight[h, e] = w
                total[h] += w
        for h in range(heads):
            scale = np.float32(1 / total[h])
            for e in range(count):
                weight[h, e] *= scale
            entries = (col.ctypes.data + 4 * start, weight[h].ctypes.data, count, col.size - 1 - start)
            first = h * width
            _add_row(x, first, first + width, *entries, bias.ctypes.data, out.ctypes.data + out.strides[0] * i)


def product(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    init: np.ndarray,
    relu: bool,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """act(init + A·X), ``[rows, D]``, into ``out`` if given; ``init`` has one row per output row, or one for all."""
    if out is None:
        out = np.empty((crow.size - 1, init.shape[1]), np.float32)
    over_rows(crow, _product_rows, crow, col, values, x, init, out, relu)
    return out


def attention(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    bias: np.ndarray,
) -> np.ndarray:
    """bias + softmax-weighted means of X for every head; see :class:`gst.nn.backbones.gat.GATLayer`."""
    out = np.empty((crow.size - 1, bias.size), np.float32)
    top = source.max(0)
    exact = bool((top - source.min(0)).max() > 80)  # exp(−87) is the smallest normal float32
    shifted = source - top
    parts = np.exp(np.stack([shifted, np.float32(0.2) * shifted]))
    over_rows(crow, _attention_rows, crow, col, values, x, source, target, parts, top, exact, bias, out)
    return out


def over_rows(crow: np.ndarray, kernel: Any, *args: Any) -> None:
    """Calls ``kernel(*args, begin, end)`` on ranges of rows of about equal cost, on as many threads as torch uses."""
    threads, rows = torch.get_num_threads(), crow.size - 1
    if threads == 1 or rows < 64 * threads:
        kernel(*args, 0, rows)
        return
    cuts = np.searchsorted(crow + np.arange(rows + 1), np.linspace(0, int(crow[-1]) + rows, 4 * threads + 1)[1:-1])
    ends = [0, *(int(cut) for cut in cuts), rows]
    futures: list[Future[None]] = []
    for begin, end in pairwise(ends):
        futures.append(_pool(threads).submit(partial(kernel, *args, begin, end)))
    for future in futures:
        future.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gst-rows")
