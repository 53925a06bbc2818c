r"""Effective resistance of every edge, with no eigensolver.

.. math:: R_{ij} = (e_i - e_j)^\top L^+ (e_i - e_j) = \sum_{λ_k > 0} \frac{(v_{k,i} - v_{k,j})^2}{λ_k}

so w_ij R_ij is the topology criterion of the Laplacian over *all* its eigenpairs at once.
"""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from gst.criteria.laplacian import Laplacian
from gst.graph import EdgeSet

_BLOCK = 32  # right-hand sides solved together


def effective_resistance(edges: EdgeSet, weight: Tensor, *, projections: int | None = None, seed: int = 0) -> Tensor:
    r"""R_ij of every edge, float64; directions are ignored.

    With ``projections=None`` each end point is solved for: exact, at most N solves. With k projections,
    ‖Z(e_i − e_j)‖² with Z = k^-½ Q W^½ B L^+ and Q random signs (Spielman & Srivastava, STOC 2008): k solves and a
    relative standard error of √(2/k) an edge.
    """
    conductance = weight.detach().cpu().double().numpy()
    laplacian = Laplacian(edges, conductance)
    u, v = edges.pairs.cpu().numpy()
    if projections is None:
        return torch.from_numpy(_exact(laplacian, u, v))
    return torch.from_numpy(_projected(laplacian, u, v, conductance, projections, seed))


def _exact(laplacian: Laplacian, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """R = L⁺_uu + L⁺_vv − 2 L⁺_uv, a block of columns of L⁺ at a time."""
    nodes = np.unique(np.concatenate([u, v]))
    diagonal = np.zeros(laplacian.size)
    cross = np.empty(u.size)
    for begin in range(0, nodes.size, _BLOCK):
        block = nodes[begin : begin + _BLOCK]
        unit = np.zeros((laplacian.size, block.size))
        unit[block, np.arange(block.size)] = 1
        inverse = laplacian.solve(unit, tolerance=1e-9)
        diagonal[block] = inverse[block, np.arange(block.size)]
        mine = np.flatnonzero((u >= block[0]) & (u <= block[-1]))
        cross[mine] = inverse[v[mine], np.searchsorted(block, u[mine])]
    return diagonal[u] + diagonal[v] - 2 * cross


def _projected(
    laplacian: Laplacian, u: np.ndarray, v: np.ndarray, conductance: np.ndarray, k: int, seed: int
) -> np.ndarray:
    random = np.random.default_rng(seed)
    root = np.sqrt(conductance)[:, None]
    incidence = sparse.csr_matrix(
        (np.repeat([1.0, -1.0], u.size), (np.concatenate([u, v]), np.tile(np.arange(u.size), 2))),
        shape=(laplacian.size, u.size),
    )
    resistance = np.zeros(u.size)
    for begin in range(0, k, _BLOCK):
        signs = random.integers(0, 2, (u.size, min(_BLOCK, k - begin)), dtype=np.int8) * 2.0 - 1
        potential = laplacian.solve(incidence @ (root * signs), tolerance=1e-4)
        resistance += np.square(potential[u] - potential[v]).sum(1) / k
    return np.minimum(resistance, 1 / conductance)  # the wire itself is a path: no edge resists more than it
