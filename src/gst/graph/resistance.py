r"""Effective resistance of every edge, without an eigensolver.

.. math:: R_{ij} = (e_i - e_j)^\top L^+ (e_i - e_j) = \sum_{λ_k > 0} \frac{(v_{k,i} - v_{k,j})^2}{λ_k}

so w_ij R_ij is the topology criterion of the Laplacian over *all* its eigenpairs at once.
"""

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.graph import large_laplacian
from gst.graph.edgeset import EdgeSet
from gst.graph.laplacian import Laplacian

_BLOCK = 32  # right-hand sides solved together
_SPAN = 1 << 20  # edges processed together


def effective_resistance(edges: EdgeSet, weight: Tensor, *, projections: int | None = None, seed: int = 0) -> Tensor:
    r"""R_ij of every edge, float64; directions are ignored.

    With ``projections=None`` exact, by one solve per end point, at most N. With k projections it is ‖Z(e_i − e_j)‖²,
    where Z = k^-½ Q W^½ B L^+ and Q are random signs (Spielman & Srivastava, STOC 2008): k solves and a relative
    standard error of √(2/k) per edge.
    """
    conductance = weight.detach().cpu().double().numpy()
    if projections is not None and edges.num_edges >= large_laplacian.LARGE:
        resistance = large_laplacian.projected_resistance(edges, conductance, projections, seed)
        return torch.from_numpy(np.minimum(resistance, 1 / conductance, out=resistance))
    laplacian = Laplacian(edges, conductance)
    u, v = edges.pairs.cpu().numpy()
    if projections is None:
        return torch.from_numpy(_exact(laplacian, u, v))
    return torch.from_numpy(_projected(laplacian, u, v, conductance, projections, seed))


def _exact(laplacian: Laplacian, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """R = L⁺_uu + L⁺_vv − 2 L⁺_uv, from one block of columns of L⁺ at a time."""
    nodes = np.unique(np.concatenate([u, v]))
    diagonal = np.zeros(laplacian.size)
    cross = np.empty(u.size)
    for begin in range(0, nodes.size, _BLOCK):
        block = nodes[begin : begin + _BLOCK]
        unit = np.zeros((laplacian.size, block.size))
        unit[block, np.arange(block.size)] = 1
        inverse = laplacian.solve(unit, tolerance=1e-9)
        diagonal[block] = inverse[block, np.arange(block.size)]
        in_block = np.flatnonzero((u >= block[0]) & (u <= block[-1]))
        cross[in_block] = inverse[v[in_block], np.searchsorted(block, u[in_block])]
    return diagonal[u] + diagonal[v] - 2 * cross


def _projected(
    laplacian: Laplacian, u: np.ndarray, v: np.ndarray, conductance: np.ndarray, k: int, seed: int
) -> np.ndarray:
    random = np.random.default_rng(seed)
    root = np.sqrt(conductance)
    resistance = np.zeros(u.size)
    for begin in range(0, k, _BLOCK):
        right = np.zeros((laplacian.size, min(_BLOCK, k - begin)))
        for part in _spans(u.size):
            signs = random.integers(0, 2, (part.stop - part.start, right.shape[1]), dtype=np.int8)
            _add_signed(u[part], v[part], root[part], signs, right)
        potential = laplacian.solve(right, tolerance=1e-4)
        for part in _spans(u.size):
            resistance[part] += np.square(potential[u[part]] - potential[v[part]]).sum(1) / k
    return np.minimum(resistance, 1 / conductance)  # the edge alone connects its ends: its resistance is the maximum


def _spans(size: int) -> list[slice]:
    return [slice(begin, min(begin + _SPAN, size)) for begin in range(0, size, _SPAN)]


@njit(cache=True)
def _add_signed(u: np.ndarray, v: np.ndarray, root: np.ndarray, signs: np.ndarray, right: np.ndarray) -> None:
    """Adds Bᵀ W^½ Qᵀ of some edges, Q = 2 · signs − 1, without a matrix of edges × right-hand sides."""
    for e in range(u.size):
        for c in range(right.shape[1]):
            signed = root[e] if signs[e, c] else -root[e]
            right[u[e], c] += signed
            right[v[e], c] -= signed
