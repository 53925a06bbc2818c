r"""The topology criterion: how much an edge moves the eigenvalues of the anchor graph.

.. math:: φ^{topo}(e) = \sum_k \left| \frac{Δλ_k}{λ_k} \right|

over the K largest and the K smallest eigenvalues, with the first-order change Δλ_k when edge e of weight w is removed
(a, b: left and right eigenvector, v: eigenvector of a symmetric matrix, d: degree):

=========================  ==========================================  ==============================================
matrix                     undirected pair {i, j}                      arc j → i of a directed graph
=========================  ==========================================  ==============================================
adjacency  A               2 w v_i v_j                                 w a_i b_j / aᵀb
laplacian  D − A           w (v_i − v_j)²                              w a_i (b_i − b_j) / aᵀb
normalised                 w ((u_i − u_j)² − λ(u_i² + u_j²)),          w a_i (b_j − (1−λ) b_i) / (d_i aᵀb)
                           u = D^-½ v of I − D^-½ A D^-½               of I − D⁻¹A
=========================  ==========================================  ==============================================

Signs are omitted. Zero eigenvalues are skipped: 1/λ is undefined there, and the null space of a Laplacian, with one
dimension per connected component (438 on CiteSeer), would use up all of K = 20.
"""

import numpy as np
import torch
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, eigsh
from torch import Tensor

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.laplacian import Laplacian
from gst.graph.resistance import effective_resistance

MATRICES = ("adjacency", "laplacian", "normalised")
PROJECTIONS = 128  # for effective resistance: relative standard error of 1/8 per edge
_ZERO = 1e-8  # eigenvalues below this share of the largest count as zero
_TOLERANCE = 1e-6


def topology_scores(
    edges: EdgeSet, mask: Tensor, *, matrix: str = "laplacian", eigenpairs: int | str = 20, seed: int = 0
) -> Tensor:
    """φ_topo of every edge of the graph m ⊙ A, float64.

    ``eigenpairs="all"`` uses every eigenpair of the Laplacian: the sum is then w_ij times the effective resistance,
    which needs no eigensolver and ignores directions.
    """
    if matrix not in MATRICES:
        raise InputError(f"unknown matrix {matrix!r}: choose from {', '.join(MATRICES)}")
    weight = mask.detach().cpu().double() * edges.edge_weight.cpu().double()
    if eigenpairs == "all":
        if matrix != "laplacian":
            raise InputError(f'eigenpairs="all" is for matrix="laplacian" (effective resistance), not for {matrix!r}')
        return weight * effective_resistance(edges, weight, projections=PROJECTIONS, seed=seed)
    if not isinstance(eigenpairs, int) or eigenpairs < 1:
        raise InputError(f'eigenpairs {eigenpairs!r} is not a positive number or "all"')
    relative_changes = _directed if edges.directed else _undirected
    return weight * torch.from_numpy(relative_changes(edges, weight.numpy(), matrix, eigenpairs, seed))


def _undirected(edges: EdgeSet, weight: np.ndarray, matrix: str, k: int, seed: int) -> np.ndarray:
    """Σ_k |Δλ_k / λ_k| / w of every pair."""
    i, j = edges.pairs.cpu().numpy()
    laplacian = Laplacian(edges, weight)
    total = np.zeros(i.size)
    for value, v in zip(*_eigenpairs(laplacian, matrix, k, seed), strict=True):
        if matrix == "adjacency":
            change = 2 * v[i] * v[j]
        elif matrix == "laplacian":
            change = np.square(v[i] - v[j])
        else:
            u = v / np.sqrt(np.where(laplacian.degree > 0, laplacian.degree, 1))
            change = np.square(u[i] - u[j]) - value * (np.square(u[i]) + np.square(u[j]))
        total += np.abs(change / value)
    return total


def _eigenpairs(laplacian: Laplacian, matrix: str, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest and k smallest nonzero eigenvalues; eigenvectors in rows."""
    size = laplacian.size
    tiny = 2 * k >= size - 1  # ARPACK cannot compute nearly all pairs; such a matrix is small
    if matrix == "adjacency":
        operator = laplacian.adjacency
    elif matrix == "laplacian":
        operator = laplacian.matrix
    else:
        root = np.sqrt(laplacian.degree)
        inverse = sparse.diags(1 / np.where(root > 0, root, 1))
        operator = sparse.identity(size) - inverse @ laplacian.adjacency @ inverse
        if not tiny:
            operator = _lifted(operator.tocsr(), root, laplacian.component)
    if tiny:
        values, vectors = linalg.eigh(operator.toarray())
    elif matrix == "laplacian":  # its small eigenvalues are the large ones of L⁺, far from its null space
        pseudo_inverse = LinearOperator(
            operator.shape, matvec=lambda x: laplacian.solve(x.reshape(-1, 1), tolerance=1e-9).ravel(), dtype=float
        )
        large, top = _lanczos(operator, k, "LA", seed)
        small, bottom = _lanczos(pseudo_inverse, k, "LA", seed)
        values, vectors = np.concatenate([1 / small, large]), np.hstack([bottom, top])
    else:
        values, vectors = _lanczos(operator, 2 * k, "BE", seed)
    order = np.argsort(values)
    order = order[np.abs(values[order]) > _ZERO * np.abs(values).max()]
    ends = np.unique(np.concatenate([order[:k], order[-k:]]))
    return values[ends], vectors[:, ends].T


def _lanczos(operator: sparse.spmatrix | LinearOperator, k: int, end: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    size = operator.shape[0]
    start = np.random.default_rng(seed).standard_normal(size)
    try:
        return eigsh(operator, k, which=end, v0=start, tol=_TOLERANCE, ncv=min(size, 3 * k + 20), rng=seed)
    except ArpackNoConvergence as stopped:  # the pairs that did converge are usable
        return stopped.eigenvalues, stopped.eigenvectors


def _lifted(matrix: sparse.csr_matrix, null: np.ndarray, component: np.ndarray) -> LinearOperator:
    """I − D^-½AD^-½ with its null vectors (``null`` on one component each) moved from 0 to 1, between the two ends."""
    length = np.sqrt(np.bincount(component, weights=null**2))[component]
    basis = sparse.csr_matrix((null / np.where(length > 0, length, 1), (np.arange(null.size), component)))
    back = basis.T.tocsr()
    return LinearOperator(matrix.shape, matvec=lambda x: matrix @ x + basis @ (back @ x), dtype=float)


def _directed(edges: EdgeSet, weight: np.ndarray, matrix: str, k: int, seed: int) -> np.ndarray:
    """Σ_k |Δλ_k / λ_k| / w of every arc, by left and right eigenvectors. Row = target, column = source."""
    j, i = edges.pairs.cpu().numpy()
    size = edges.num_nodes
    adjacency = sparse.csr_matrix((weight, (i, j)), shape=(size, size))
    degree = np.asarray(adjacency.sum(1)).ravel()
    inverse = 1 / np.where(degree > 0, degree, 1)
    operator = {
        "adjacency": adjacency,
        "laplacian": sparse.diags(degree) - adjacency,
        "normalised": sparse.diags((degree > 0).astype(float)) - sparse.diags(inverse) @ adjacency,
    }[matrix].tocsr()
    total = np.zeros(i.size)
    for value, a, b in _left_right(operator, k, seed):
        if matrix == "adjacency":
            change = a[i] * b[j]
        elif matrix == "laplacian":
            change = a[i] * (b[i] - b[j])
        else:
            change = a[i] * inverse[i] * (b[j] - (1 - value) * b[i])
        total += np.abs(change / (value * (a @ b)))
    return total


def _left_right(matrix: sparse.csr_matrix, k: int, seed: int) -> list[tuple[complex, np.ndarray, np.ndarray]]:
    """Eigenvalues with the k largest and k smallest real parts, with matching left and right eigenvectors."""
    size = matrix.shape[0]
    if 2 * k >= size - 2:  # a graph so small that nearly all pairs are needed
        values, left, right = linalg.eig(matrix.toarray(), left=True, right=True)
        order = np.argsort(values.real)
        ends = order[np.r_[0 : min(k, size), max(k, size - k) : size]]
        pairs = [(values[p], left[:, p].conj(), right[:, p]) for p in ends]
    else:
        pairs = []
        for end in ("LR", "SR"):
            values, right = _arpack(matrix, k, end, seed)
            left_values, left = _arpack(matrix.T.tocsr(), k, end, seed)
            matched: set[int] = set()
            for p, value in enumerate(values):
                distance = np.abs(left_values - value)
                distance[list(matched)] = np.inf
                if distance.size and distance.min() < 1e-4 * (1 + abs(value)):
                    matched.add(int(distance.argmin()))
                    pairs.append((value, left[:, distance.argmin()], right[:, p]))
    top = max((abs(value) for value, _, _ in pairs), default=0.0)
    # aᵀb vanishes where eigenvectors coalesce: such an eigenvalue has no first-order change
    return [
        (value, a, b)
        for value, a, b in pairs
        if abs(value) > _ZERO * top and abs(a @ b) > 1e-8 * np.linalg.norm(a) * np.linalg.norm(b)
    ]


def _arpack(matrix: sparse.csr_matrix, k: int, end: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    start = np.random.default_rng(seed).standard_normal(matrix.shape[0])
    try:
        return eigs(matrix, k, which=end, v0=start, tol=_TOLERANCE, ncv=min(matrix.shape[0], 4 * k + 1), rng=seed)
    except ArpackNoConvergence as stopped:
        return stopped.eigenvalues, stopped.eigenvectors
