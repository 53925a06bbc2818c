"""The Laplacian of a weighted graph and its pseudo-inverse."""

from functools import cached_property

import numpy as np
from scipy import sparse

from gst.graph.edgeset import EdgeSet

_TINY = np.finfo(float).tiny


class Laplacian:
    """L = D − A, directions ignored. ``solve`` applies L⁺ by conjugate gradients, preconditioned by the diagonal."""

    def __init__(self, edges: EdgeSet, weight: np.ndarray) -> None:
        u, v = edges.pairs.cpu().numpy()
        self.size = edges.num_nodes
        self._weighted_pairs = weight, u, v
        self.degree = np.asarray(self.adjacency.sum(1)).ravel()
        self.component = edges.components.numpy()
        self._member = sparse.csr_matrix((np.ones(self.size), (np.arange(self.size), self.component)))
        self._mean = (sparse.diags(1 / np.bincount(self.component)) @ self._member.T).tocsr()

    @property
    def adjacency(self) -> sparse.csr_matrix:
        weight, u, v = self._weighted_pairs
        half = sparse.coo_matrix((weight, (u, v)), shape=(self.size, self.size))
        return (half + half.T).tocsr()

    @cached_property
    def matrix(self) -> sparse.csr_matrix:
        return (sparse.diags(self.degree) - self.adjacency).tocsr()

    def centre(self, x: np.ndarray) -> np.ndarray:
        """``x`` without its part in the null space, which consists of the constants on each component."""
        return x - self._member @ (self._mean @ x)

    def solve(self, right: np.ndarray, tolerance: float) -> np.ndarray:
        """L⁺ times the columns of ``right``, solved together; ``tolerance``: the reduction of each residual."""
        precondition = 1 / np.where(self.degree > 0, self.degree, 1)[:, None]
        residual = self.centre(right)
        x = np.zeros_like(residual)
        z = precondition * residual
        direction = z.copy()
        energy = np.einsum("ij,ij->j", residual, z)
        # a right-hand side in the null space leaves only rounding errors, which no step can reduce
        goal = np.maximum(tolerance**2 * energy, 1e-28 * np.einsum("ij,ij->j", right, precondition * right))
        for _ in range(20 * int(self.size**0.5) + 200):
            active = energy > goal  # finished columns must not be updated: further steps divide zero by zero
            if not active.any():
                break
            image = self.matrix @ direction
            step = np.where(active, energy / np.maximum(np.einsum("ij,ij->j", direction, image), _TINY), 0)
            x += step * direction
            residual -= step * image
            np.multiply(precondition, residual, out=z)
            before, energy = energy, np.einsum("ij,ij->j", residual, z)
            direction *= np.where(active, energy / np.maximum(before, _TINY), 0)
            direction += z
        return self.centre(x)
