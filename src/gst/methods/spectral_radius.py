"""Spectral radius: edges that the leading eigenvalue hangs on."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.methods.base import TopologySparsifier
from gst.methods.registry import register

_STEPS = 20  # vectors held at a time
_RESTARTS = 300  # where this is not enough, eigenvalues crowd at the top and a mixture of their vectors is as good


def spectral_radius_scores(edges: EdgeSet) -> Tensor:
    """First-order relative change of the adjacency's leading eigenvalue when each edge goes, float64.

    Only arcs inside the strongly connected component that it belongs to can change it: all other scores are 0, those of
    a directed graph without cycles altogether. Components that share the eigenvalue count with one eigenvector each.
    """
    i, j = edges.pairs.flip(0).cpu().numpy() if edges.directed else edges.pairs.cpu().numpy()
    weight = edges.edge_weight.double().cpu().numpy()
    matrix = sparse.csr_matrix((weight, (i, j)), (edges.num_nodes, edges.num_nodes))  # row = target, column = source
    component = connected_components(matrix, directed=edges.directed, connection="strong")[1]
    # arcs between components move no eigenvalue, yet they would spread its eigenvectors along every path in and out
    inside = component[i] == component[j]
    if not inside.any():
        return torch.zeros(edges.num_edges, dtype=torch.float64)
    if edges.directed:
        matrix = sparse.csr_matrix((weight[inside], (i[inside], j[inside])), matrix.shape)
        value, right = _leading(matrix)
        _, left = _leading(matrix.T.tocsr())
        change = left[i] * right[j]
    else:
        value, left = _leading(matrix + matrix.T)
        right, change = left, 2 * left[i] * left[j]
    length = np.bincount(component, weights=left * right)  # aᵀb of each component
    leading = length > 1e-12 * length.max()  # elsewhere the eigenvectors are rounding
    changed = inside & leading[component[i]]
    scores = np.divide(weight * change, value * length[component[i]], where=changed, out=np.zeros(i.size))
    return torch.from_numpy(scores).to(edges.pairs.device)


def _leading(matrix: sparse.csr_matrix) -> tuple[float, np.ndarray]:
    """The Perron root and its eigenvector, which is not negative, by Arnoldi iteration from the constant vector.

    ARPACK goes on from a random vector where the Krylov space is exhausted, which on symmetric graphs it soon is. This
    one then has the answer; it depends on nothing but the graph.
    """
    basis, projected = np.empty((_STEPS + 1, matrix.shape[0])), np.zeros((_STEPS + 1, _STEPS))
    vector, value = np.ones(matrix.shape[0]), 0.0
    for _ in range(_RESTARTS):
        basis[0] = vector / np.linalg.norm(vector)
        for size in range(1, _STEPS + 1):
            known, image = basis[:size], matrix @ basis[size - 1]
            length = np.linalg.norm(image)
            overlap = known @ image
            image -= overlap @ known
            again = known @ image  # once leaves rounding errors that grow
            image -= again @ known
            rest = projected[size, size - 1] = np.linalg.norm(image)
            projected[:size, size - 1] = overlap + again
            if rest <= 1e-14 * length:
                break
            basis[size] = image / rest
        values, vectors = np.linalg.eig(projected[:size, :size])
        best = values.real.argmax()
        value, vector = float(values[best].real), np.abs(vectors[:, best].real @ known)
        if rest * abs(vectors[-1, best]) <= 1e-13 * value:
            break
    return value, vector


@register("spectral-radius")
@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRadius(TopologySparsifier):
    r"""Keeps the edges that carry the largest eigenvalue of the adjacency matrix.

    .. math:: s_{ij} = \frac{2 w_{ij} v_i v_j}{λ_1} \;\text{(pair)}, \quad
              s_{j → i} = \frac{w_{ij}\, a_i b_j}{λ_1\, a^\top b} \;\text{(arc)}

    which is GST's topology criterion with the leading eigenpair alone: v its eigenvector, a and b the left and right
    ones of a directed graph. Scores fall off with the distance from the densest region, and are 0 in every component
    that does not have this eigenvalue.

    Arguments are those of :class:`~gst.methods.base.TopologySparsifier`; nothing is random.

    >>> import gst
    >>> data = gst.load("digits")
    >>> SpectralRadius(keep=100)(data).num_edges
    200
    """

    reference: ClassVar[str] = "Restrepo et al., PRL 2006"
    complexity: ClassVar[str] = "O(|E|·steps)"

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        return spectral_radius_scores(edges)
