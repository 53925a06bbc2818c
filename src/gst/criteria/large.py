"""Effective resistance of large graphs: the projections of :mod:`gst.criteria.resistance` in single precision.

Sums over nodes are in double, so residuals still fall by 10⁻⁴, far below the error of random projections. Whatever is
as long as the graph is allocated once and passed over as rarely as can be: memory is what bounds these loops.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from gst.graph import EdgeSet
from gst.nn.kernels import fetch, product
from gst.nn.neighbours import row_sums
from gst.nn.sampler import mix

LARGE = 1 << 16  # nodes
_BLOCK = 64  # right-hand sides solved together, as many as one hash has bits
_TOLERANCE = 1e-4
_TINY = np.finfo(float).tiny
_AHEAD = 16  # edges between a fetch and its use
_HELD = 64  # rows summed in single precision before they are added in double


def projected_resistance(edges: EdgeSet, conductance: np.ndarray, k: int, seed: int) -> np.ndarray:
    """‖Z(e_i − e_j)‖² of every edge, as in :func:`gst.criteria.resistance.effective_resistance`; O(k·E)."""
    system = LargeLaplacian(edges, conductance)
    u, v = edges.pairs.cpu().numpy()
    resistance, root = np.zeros(u.size), np.sqrt(conductance.astype(np.float32))
    room: list[np.ndarray] = []
    for begin in range(0, k, _BLOCK):
        width = min(_BLOCK, k - begin)
        if begin == 0 or width < _BLOCK:
            room = [np.empty((edges.num_nodes, width), np.float32) for _ in range(4)]
        right = room[0]
        right.fill(0)
        _add_signed(u, v, root, np.uint64(seed), np.uint64(begin), right)
        _add_squares(u, v, system.solve(right, room[1:]), 1 / k, resistance)
    return resistance


class LargeLaplacian:
    """L = D − A, directions ignored; ``solve`` applies L⁺ by conjugate gradients, preconditioned by the diagonal."""

    def __init__(self, edges: EdgeSet, conductance: np.ndarray) -> None:
        self.component = edges.components.numpy()
        self.count = np.bincount(self.component)
        weight, arcs = conductance.astype(np.float32), edges.neighbours
        if edges.directed:  # both arcs of a pair conduct
            pair, arcs = edges.beneath.column_edge[: edges.num_edges].cpu().numpy(), edges.beneath.neighbours
            weight = np.bincount(pair, conductance).astype(np.float32)
        self.start, self.source, self.value = arcs.start, arcs.source, -weight[arcs.edge]
        self.degree = row_sums(arcs.start, arcs.edge, weight, None, np.zeros(edges.num_nodes)).astype(np.float32)

    def solve(self, residual: np.ndarray, room: Sequence[np.ndarray]) -> np.ndarray:
        """L⁺ times the columns of ``residual``, the first of three arrays of ``room``; all four are used up.

        A column is done when its residual fell by 10⁻⁴.
        """
        inverse = 1 / np.where(self.degree > 0, self.degree, np.float32(1))
        given = np.einsum("ij,i,ij->j", residual, inverse, residual, dtype=np.float64)
        self._centre(residual)
        x, direction, image = room
        for array in room:
            array.fill(0)
        none, nothing = np.zeros((1, residual.shape[1]), np.float32), np.zeros(residual.shape[1], np.float32)
        energy = _step(residual, direction, image, self.degree, inverse, nothing)
        _turn(x, direction, residual, inverse, nothing, nothing)
        # of a right-hand side in the null space only rounding is left, which no step can shrink
        goal = np.maximum(_TOLERANCE**2 * energy, 1e-13 * given)
        for _ in range(20 * int(residual.shape[0] ** 0.5) + 200):
            busy = energy > goal  # a column that is done must stand still: further steps divide zero by zero
            if not busy.any():
                break
            product(self.start, self.source, self.value, direction, none, relu=False, out=image)
            bend = _bend(direction, image, self.degree)
            step = np.where(busy, energy / np.maximum(bend, _TINY), 0).astype(np.float32)
            before, energy = energy, _step(residual, direction, image, self.degree, inverse, step)
            ratio = np.where(busy, energy / np.maximum(before, _TINY), 0).astype(np.float32)
            _turn(x, direction, residual, inverse, step, ratio)
        self._centre(x)
        return x

    def _centre(self, x: np.ndarray) -> None:
        """Takes out the part in the null space, which is the constants on each component."""
        mean = np.zeros((self.count.size, x.shape[1]))
        _add_by(self.component, x, mean)
        _subtract_by(self.component, (mean / self.count[:, None]).astype(np.float32), x)


@njit(cache=True, nogil=True)
def _add_signed(
    u: np.ndarray, v: np.ndarray, root: np.ndarray, seed: np.uint64, begin: np.uint64, right: np.ndarray
) -> None:
    """Adds Bᵀ W^½ Qᵀ; the signs Q of an edge are the bits of a hash."""
    start = mix(mix(seed) ^ begin)
    for e in range(u.size):
        fetch(right, v[min(e + _AHEAD, v.size - 1)])
        bits = mix(start + np.uint64(e) * np.uint64(0x9E3779B97F4A7C15))
        for c in range(right.shape[1]):
            signed = root[e] if (bits >> np.uint64(c)) & np.uint64(1) else -root[e]
            right[u[e], c] += signed
            right[v[e], c] -= signed


@njit(cache=True, nogil=True, fastmath=True)
def _add_squares(u: np.ndarray, v: np.ndarray, x: np.ndarray, share: float, total: np.ndarray) -> None:
    """Adds share · ‖x_u − x_v‖²."""
    for e in range(u.size):
        fetch(x, v[min(e + _AHEAD, v.size - 1)])
        square = np.float32(0)
        for c in range(x.shape[1]):
            apart = x[u[e], c] - x[v[e], c]
            square += apart * apart
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


@njit(cache=True, nogil=True)
def _bend(direction: np.ndarray, image: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """dᵀ L d of every column; ``image`` is −A d."""
    total, part = np.zeros(direction.shape[1]), np.zeros(direction.shape[1], np.float32)
    for begin in range(0, direction.shape[0], _HELD):
        part[:] = 0
        for i in range(begin, min(begin + _HELD, direction.shape[0])):
            for c in range(direction.shape[1]):
                part[c] += direction[i, c] * (degree[i] * direction[i, c] + image[i, c])
        total += part
    return total


@njit(cache=True, nogil=True)
def _step(
    residual: np.ndarray,
    direction: np.ndarray,
    image: np.ndarray,
    degree: np.ndarray,
    inverse: np.ndarray,
    step: np.ndarray,
) -> np.ndarray:
    """r −= step · L d, and rᵀ D⁻¹ r of every column."""
    total, part = np.zeros(step.size), np.zeros(step.size, np.float32)
    for begin in range(0, residual.shape[0], _HELD):
        part[:] = 0
        for i in range(begin, min(begin + _HELD, residual.shape[0])):
            for c in range(step.size):
                left = residual[i, c] - step[c] * (degree[i] * direction[i, c] + image[i, c])
                residual[i, c] = left
                part[c] += left * left * inverse[i]
        total += part
    return total


@njit(cache=True, nogil=True)
def _turn(
    x: np.ndarray,
    direction: np.ndarray,
    residual: np.ndarray,
    inverse: np.ndarray,
    step: np.ndarray,
    ratio: np.ndarray,
) -> None:
    """x += step · d, then d = D⁻¹ r + ratio · d."""
    for i in range(x.shape[0]):
        for c in range(step.size):
            x[i, c] += step[c] * direction[i, c]
            direction[i, c] = inverse[i] * residual[i, c] + ratio[c] * direction[i, c]
