"""Effective resistance of large graphs: the projections of :mod:`gst.graph.resistance` in single precision.

Sums over nodes are in double precision, so residuals still shrink by 10⁻⁴, far below the error of random projections.
Memory bandwidth limits these loops: every array as large as the graph is allocated once and read as rarely as possible.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gst.base.jit import njit
from gst.graph.edgeset import EdgeSet
from gst.sparse.kernels import fetch, over_rows, product
from gst.sparse.neighbours import row_sums
from gst.sparse.sampler import mix

LARGE = 1 << 19  # edges
_BLOCK = 64  # right-hand sides solved together, one per bit of a hash
_TOLERANCE = 1e-4
_TINY = np.finfo(float).tiny
_AHEAD = 16  # edges between a prefetch and its use
_SINGLE_ROWS = 64  # rows summed in single precision before the sum is added in double
_PIECE = 512  # rows per partial sum; fixed, so that the number of threads does not change the result


def projected_resistance(edges: EdgeSet, conductance: np.ndarray, k: int, seed: int) -> np.ndarray:
    """‖Z(e_i − e_j)‖² of every edge, as in :func:`gst.graph.resistance.effective_resistance`; O(k·E)."""
    system = LargeLaplacian(edges, conductance)
    u, v = edges.pairs.cpu().numpy()
    resistance = np.zeros(u.size)
    work: list[np.ndarray] = []
    for begin in range(0, k, _BLOCK):
        width = min(_BLOCK, k - begin)
        if begin == 0 or width < _BLOCK:
            work = [np.empty((edges.num_nodes, width), np.float32) for _ in range(4)]
        right = work[0]
        system.project(right, np.uint64(seed), np.uint64(begin))
        _add_squares(u, v, system.solve(right, work[1:]), 1 / k, resistance)
    return resistance


class LargeLaplacian:
    """L = D − A, directions ignored; ``solve`` applies L⁺ by conjugate gradients, preconditioned by the diagonal."""

    def __init__(self, edges: EdgeSet, conductance: np.ndarray) -> None:
        self.component = edges.components.numpy()
        self.count = np.bincount(self.component)
        weight = conductance.astype(np.float32)
        arcs = edges.neighbours
        if edges.directed:  # opposite arcs are parallel conductors
            pair = edges.underlying.column_edge[: edges.num_edges].cpu().numpy()
            arcs = edges.underlying.neighbours
            weight = np.bincount(pair, conductance).astype(np.float32)
        self.start, self.source, self.value = arcs.start, arcs.source, -weight[arcs.edge]
        self.pair = arcs.edge
        self.root = np.sqrt(weight)
        self.degree = row_sums(arcs.start, arcs.edge, weight, None, np.zeros(edges.num_nodes)).astype(np.float32)

    def project(self, right: np.ndarray, seed: np.uint64, begin: np.uint64) -> None:
        """Fills ``right`` with Bᵀ W^½ Qᵀ for the rows of the random signs Q from ``begin`` on."""
        over_rows(self.start, _signed_rows, self.start, self.source, self.pair, self.root, seed, begin, right)

    def solve(self, residual: np.ndarray, work: Sequence[np.ndarray]) -> np.ndarray:
        """L⁺ times the columns of ``residual``, until each residual is reduced by the factor 10⁻⁴.

        The result is the first of the three arrays of ``work``; all four are overwritten.
        """
        inverse = 1 / np.where(self.degree > 0, self.degree, np.float32(1))
        right_norm = np.einsum("ij,i,ij->j", residual, inverse, residual, dtype=np.float64)
        self._centre(residual)
        x, direction, image = work
        for array in work:
            array.fill(0)
        size = residual.shape
        zero_row = np.zeros((1, size[1]), np.float32)
        zeros = np.zeros(size[1], np.float32)

        def step_by(step: np.ndarray) -> np.ndarray:
            return _in_pieces(_step, *size, residual, direction, image, self.degree, inverse, step)

        def turn_by(step: np.ndarray, ratio: np.ndarray) -> None:
            over_rows(np.arange(size[0] + 1), _turn, x, direction, residual, inverse, step, ratio)

        energy = step_by(zeros)
        turn_by(zeros, zeros)
        # a right-hand side in the null space leaves only rounding errors, which no step can reduce
        goal = np.maximum(_TOLERANCE**2 * energy, 1e-13 * right_norm)
        for _ in range(20 * int(size[0] ** 0.5) + 200):
            active = energy > goal  # finished columns must not be updated: further steps divide zero by zero
            if not active.any():
                break
            product(self.start, self.source, self.value, direction, zero_row, relu=False, out=image)
            curvature = _in_pieces(_curvature, *size, direction, image, self.degree)
            step = np.where(active, energy / np.maximum(curvature, _TINY), 0).astype(np.float32)
            before, energy = energy, step_by(step)
            turn_by(step, np.where(active, energy / np.maximum(before, _TINY), 0).astype(np.float32))
        self._centre(x)
        return x

    def _centre(self, x: np.ndarray) -> None:
        """Removes the part in the null space, which consists of the constants on each component."""
        mean = np.zeros((self.count.size, x.shape[1]))
        _add_by(self.component, x, mean)
        _subtract_by(self.component, (mean / self.count[:, None]).astype(np.float32), x)


@njit(cache=True, nogil=True)
def _signed_rows(
    start: np.ndarray,
    source: np.ndarray,
    pair: np.ndarray,
    root: np.ndarray,
    seed: np.uint64,
    first: np.uint64,
    right: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Rows of Bᵀ W^½ Qᵀ; the signs Q of a pair, directed from its lower to its upper end, are the bits of a hash.

    Σ ±r is 2 Σ r·bit − Σ r: without a branch on the bits, the columns are processed in vector registers.
    """
    salt, half = mix(mix(seed) ^ first), min(32, right.shape[1])
    for i in range(begin, end):
        row, total = right[i], np.float32(0)
        row[:] = 0
        for a in range(start[i], start[i + 1]):
            bits = mix(salt + np.uint64(pair[a]) * np.uint64(0x9E3779B97F4A7C15))
            low, high = np.uint32(bits), np.uint32(bits >> np.uint64(32))
            signed = root[pair[a]] if i < source[a] else -root[pair[a]]
            total += signed
            twice = 2 * signed
            for c in range(half):
                row[c] += twice * np.float32((low >> np.uint32(c)) & np.uint32(1))
            for c in range(32, row.size):
                row[c] += twice * np.float32((high >> np.uint32(c - 32)) & np.uint32(1))
        for c in range(row.size):
            row[c] -= total


@njit(cache=True, nogil=True, fastmath=True)
def _add_squares(u: np.ndarray, v: np.ndarray, x: np.ndarray, share: float, total: np.ndarray) -> None:
    """Adds share · ‖x_u − x_v‖²."""
    for e in range(u.size):
        fetch(x, v[min(e + _AHEAD, v.size - 1)])
        square = np.float32(0)
        for c in range(x.shape[1]):
            difference = x[u[e], c] - x[v[e], c]
            square += difference * difference
        total[e] += share * square


@njit(cache=True, nogil=True)
def _add_by(group: np.ndarray, x: np.ndarray, total: np.ndarray) -> None:
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            total[group[i], c] += x[i, c]


@njit(cache=True, nogil=True)
def _subtract_by(group: np.ndarray, mean: np.ndarray, x: np.ndarray) -> None:
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            x[i, c] -= mean[group[i], c]


def _in_pieces(kernel: Any, rows: int, width: int, *args: Any) -> np.ndarray:
    """The sum over all pieces of rows of what the kernel computes for each, by column."""
    pieces = -(-rows // _PIECE)
    totals = np.empty((pieces, width))
    over_rows(np.arange(pieces + 1), kernel, *args, totals)
    return totals.sum(0)


@njit(cache=True, nogil=True)
def _curvature(
    direction: np.ndarray, image: np.ndarray, degree: np.ndarray, totals: np.ndarray, begin: int, end: int
) -> None:
    """dᵀ L d of every column; ``image`` is −A d."""
    part = np.empty(direction.shape[1], np.float32)
    for piece in range(begin, end):
        total = totals[piece]
        total[:] = 0
        last = min((piece + 1) * _PIECE, direction.shape[0])
        for first in range(piece * _PIECE, last, _SINGLE_ROWS):
            part[:] = 0
            for i in range(first, min(first + _SINGLE_ROWS, last)):
                for c in range(part.size):
                    part[c] += direction[i, c] * (degree[i] * direction[i, c] + image[i, c])
            total += part


@njit(cache=True, nogil=True)
def _step(
    residual: np.ndarray,
    direction: np.ndarray,
    image: np.ndarray,
    degree: np.ndarray,
    inverse: np.ndarray,
    step: np.ndarray,
    totals: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """r −= step · L d, and rᵀ D⁻¹ r of every column."""
    part = np.empty(step.size, np.float32)
    for piece in range(begin, end):
        total = totals[piece]
        total[:] = 0
        last = min((piece + 1) * _PIECE, residual.shape[0])
        for first in range(piece * _PIECE, last, _SINGLE_ROWS):
            part[:] = 0
            for i in range(first, min(first + _SINGLE_ROWS, last)):
                for c in range(part.size):
                    left = residual[i, c] - step[c] * (degree[i] * direction[i, c] + image[i, c])
                    residual[i, c] = left
                    part[c] += left * left * inverse[i]
            total += part


@njit(cache=True, nogil=True)
def _turn(
    x: np.ndarray,
    direction: np.ndarray,
    residual: np.ndarray,
    inverse: np.ndarray,
    step: np.ndarray,
    ratio: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """x += step · d, then d = D⁻¹ r + ratio · d."""
    for i in range(begin, end):
        for c in range(step.size):
            x[i, c] += step[c] * direction[i, c]
            direction[i, c] = inverse[i] * residual[i, c] + ratio[c] * direction[i, c]
