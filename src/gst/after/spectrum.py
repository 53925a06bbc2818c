r"""How much of the spectrum a sparse graph keeps.

The matrix is the Laplacian L = D − A of the graph without self-loops; of a directed graph, that of the pairs beneath.
With both spectra in rising order, the relative error of the i-th eigenvalue is

.. math:: |λ_i - λ'_i| / λ_i

for the largest 200 and for the smallest 200 above zero: L has as many zeros as components, for which a relative error
is not defined. Taking edges away only lowers eigenvalues of L, so every error lies between 0 and 1; it is 1 where the
sparse graph has fallen apart into more components than i. The paper's Σ over 200 is 200 times the mean given here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.laplacian import Laplacian

COUNT = 200
_SMALL = 400  # nodes up to which a component is solved densely: bounded, and exact
_SHIFT = 1e-3  # L + this is invertible


@dataclass(frozen=True)
class Spectra:
    """Both ends of both spectra, each in rising order, place by place."""

    top: np.ndarray  # of the full graph
    top_sparse: np.ndarray
    bottom: np.ndarray  # above zero
    bottom_sparse: np.ndarray

    @property
    def top_error(self) -> float:
        return mean_error(self.top, self.top_sparse)

    @property
    def bottom_error(self) -> float:
        return mean_error(self.bottom, self.bottom_sparse)

    def facts(self) -> dict[str, Any]:
        """As JSON, six digits of each."""
        ends = {name: [float(f"{value:.6g}") for value in values] for name, values in vars(self).items()}
        return {"matrix": "laplacian", **ends}


def mean_error(before: np.ndarray, after: np.ndarray) -> float:
    """Mean over i of |λ_i − λ'_i| / λ_i.

    >>> mean_error(np.array([2.0, 4.0]), np.array([1.0, 4.0]))
    0.25
    """
    return float(np.mean(np.abs(before - after) / before)) if before.size else 0.0


def compare_spectra(edges: EdgeSet, keep: Tensor, count: int = COUNT) -> Spectra:
    """Both ends of the spectrum before and after only the edges ``keep`` stay."""
    full, thin = laplacian(edges), laplacian(edges.subset(keep))
    zeros = int(edges.components.max()) + 1
    count = min(count, edges.num_nodes - zeros)
    bottom, bottom_sparse = (smallest(matrix, zeros + count)[zeros:] for matrix in (full, thin))
    return Spectra(largest(full, count), largest(thin, count), bottom, bottom_sparse)


def laplacian(edges: EdgeSet) -> sparse.csr_matrix:
    """D − A, float64, weighted as the edges are."""
    return Laplacian(edges, edges.edge_weight.double().cpu().numpy()).matrix


def largest(matrix: sparse.csr_matrix, count: int) -> np.ndarray:
    """The ``count`` largest eigenvalues, rising."""
    return _union(matrix, count, top=True)


def smallest(matrix: sparse.csr_matrix, count: int) -> np.ndarray:
    """The ``count`` smallest eigenvalues, rising."""
    return _union(matrix, count, top=False)


def _union(matrix: sparse.csr_matrix, count: int, top: bool) -> np.ndarray:
    """The spectrum is the union of those of the components: exact zeros, and no copies for Lanczos to miss."""
    components = sparse.csgraph.connected_components(matrix, directed=False)[1]
    order = np.argsort(components, kind="stable")
    sizes = np.bincount(components)
    need = count if top else count - sizes.size + 1  # every other component has a zero that comes before
    if need < 1:
        return np.zeros(count)
    found = []
    for nodes in np.split(order, np.cumsum(sizes)[:-1]):
        if nodes.size == 1:
            found.append(np.zeros(1))
            continue
        block = matrix[nodes][:, nodes]
        if nodes.size <= _SMALL:
            values = np.linalg.eigvalsh(block.toarray())
            values[0] = 0.0  # one zero a component
            found.append(values)
        else:
            found.append(_lanczos(block, min(need, nodes.size - 2), top))
    values = np.sort(np.concatenate(found))
    return values[-count:] if top else values[:count]


def _lanczos(block: sparse.csr_matrix, count: int, top: bool) -> np.ndarray:
    start = np.random.default_rng(0).standard_normal(block.shape[0])
    space = min(block.shape[0], max(2 * count + 1, 20))
    if top:
        return eigsh(block, count, which="LA", v0=start, ncv=space, return_eigenvectors=False)
    shifted = (block + _SHIFT * sparse.identity(block.shape[0])).tocsc()  # positive definite: no pivots, less fill
    solver = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    inverse = LinearOperator(block.shape, solver.solve, dtype=np.float64)
    values = eigsh(
        block, count, sigma=-_SHIFT, which="LM", OPinv=inverse, v0=start, ncv=space, return_eigenvectors=False
    )
    values = np.sort(values)
    values[0] = 0.0
    return values
