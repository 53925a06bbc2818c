r"""How much of its spectrum a graph loses by sparsification.

The matrix is the Laplacian L = D − A without self-loops, or the normalised one, I − D^-½ A D^-½, with rows of zeros
for isolated nodes; of a directed graph, that of the undirected pairs.
With both spectra in ascending order, the relative error of the i-th eigenvalue is

.. math:: |λ_i - λ'_i| / λ_i

for the largest 200 and for the smallest 200 above zero: L has one zero per component, for which a relative error is
not defined. Removing edges only lowers the eigenvalues of D − A, so every error of theirs lies between 0 and 1, which
those of the normalised one need not; it is 1 where the sparse graph has more than i components. The paper's sum over
200 eigenvalues is 200 times the mean computed here.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.laplacian import Laplacian

COUNT = 200
Matrix = Literal["laplacian", "normalised"]
_SMALL = 400  # components of up to so many nodes are solved densely, which is exact
_SHIFT = 1e-3  # makes L + shift · I invertible


@dataclass(frozen=True)
class Spectra:
    """Both ends of both spectra, each in ascending order."""

    top: np.ndarray  # of the full graph
    top_sparse: np.ndarray
    bottom: np.ndarray  # above zero
    bottom_sparse: np.ndarray
    matrix: Matrix = "laplacian"

    @property
    def top_error(self) -> float:
        return mean_error(self.top, self.top_sparse)

    @property
    def bottom_error(self) -> float:
        return mean_error(self.bottom, self.bottom_sparse)

    def facts(self) -> dict[str, Any]:
        """All eigenvalues as JSON, with six digits."""
        names = ("top", "top_sparse", "bottom", "bottom_sparse")
        ends = {name: [float(f"{value:.6g}") for value in getattr(self, name)] for name in names}
        return {"matrix": self.matrix, **ends}


def mean_error(before: np.ndarray, after: np.ndarray) -> float:
    """Mean over i of |λ_i − λ'_i| / λ_i.

    >>> mean_error(np.array([2.0, 4.0]), np.array([1.0, 4.0]))
    0.25
    """
    return float(np.mean(np.abs(before - after) / before)) if before.size else 0.0


def compare_spectra(edges: EdgeSet, keep_mask: Tensor, count: int = COUNT, matrix: Matrix = "laplacian") -> Spectra:
    """Both ends of the spectra of the full graph and of its edges in ``keep_mask``."""
    make = normalised if matrix == "normalised" else laplacian
    full, thin = make(edges), make(edges.subset(keep_mask))
    zeros = int(edges.components.max()) + 1
    count = min(count, edges.num_nodes - zeros)
    bottom, bottom_sparse = (smallest(each, zeros + count)[zeros:] for each in (full, thin))
    return Spectra(largest(full, count), largest(thin, count), bottom, bottom_sparse, matrix)


def laplacian(edges: EdgeSet) -> sparse.csr_matrix:
    """D − A with the weights of the edges, float64."""
    return Laplacian(edges, edges.edge_weight.double().cpu().numpy()).matrix


def normalised(edges: EdgeSet) -> sparse.csr_matrix:
    """D^-½ (D − A) D^-½, float64; 0 where a degree is."""
    whole = Laplacian(edges, edges.edge_weight.double().cpu().numpy())
    scale = sparse.diags(np.divide(1, np.sqrt(whole.degree), out=np.zeros(whole.size), where=whole.degree > 0))
    return (scale @ whole.matrix @ scale).tocsr()


def largest(matrix: sparse.csr_matrix, count: int) -> np.ndarray:
    """The ``count`` largest eigenvalues, ascending."""
    return _eigenvalues(matrix, count, top=True)


def smallest(matrix: sparse.csr_matrix, count: int) -> np.ndarray:
    """The ``count`` smallest eigenvalues, ascending."""
    return _eigenvalues(matrix, count, top=False)


def _eigenvalues(matrix: sparse.csr_matrix, count: int, top: bool) -> np.ndarray:
    """Solved for each component: the zeros are exact, and none repeats between components, which Lanczos could miss."""
    components = sparse.csgraph.connected_components(matrix, directed=False)[1]
    order = np.argsort(components, kind="stable")
    sizes = np.bincount(components)
    need = count if top else count - sizes.size + 1  # per component: every other one contributes its zero first
    if need < 1:
        return np.zeros(count)
    spectra = []
    for nodes in np.split(order, np.cumsum(sizes)[:-1]):
        if nodes.size == 1:
            spectra.append(np.zeros(1))
            continue
        block = matrix[nodes][:, nodes]
        if nodes.size <= _SMALL:
            values = np.linalg.eigvalsh(block.toarray())
            values[0] = 0.0  # exactly one zero per component
            spectra.append(values)
        else:
            spectra.append(_lanczos(block, min(need, nodes.size - 2), top))
    values = np.sort(np.concatenate(spectra))
    return values[-count:] if top else values[:count]


def _lanczos(block: sparse.csr_matrix, count: int, top: bool) -> np.ndarray:
    start = np.random.default_rng(0).standard_normal(block.shape[0])
    num_vectors = min(block.shape[0], max(2 * count + 1, 20))
    if top:
        return eigsh(block, count, which="LA", v0=start, ncv=num_vectors, return_eigenvectors=False)
    shifted = (block + _SHIFT * sparse.identity(block.shape[0])).tocsc()  # positive definite: no pivoting, less fill-in
    solver = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    inverse = LinearOperator(block.shape, solver.solve, dtype=np.float64)
    values = eigsh(
        block, count, sigma=-_SHIFT, which="LM", OPinv=inverse, v0=start, ncv=num_vectors, return_eigenvectors=False
    )
    values = np.sort(values)
    values[0] = 0.0
    return values
