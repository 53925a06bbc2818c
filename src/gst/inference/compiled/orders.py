"""Orders of the nodes: neighbours that are close in memory are more often in the cache."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.partition import metis

PART = 2**18  # bytes of features in a part of METIS: half of a small second-level cache


def natural(edges: EdgeSet, width: int) -> Tensor:
    """The order of the data."""
    return torch.arange(edges.num_nodes)


def degree(edges: EdgeSet, width: int) -> Tensor:
    """Hubs first: the features that most rows read are close together and stay in the cache."""
    return torch.sort(edges.degree, descending=True, stable=True).indices


def rcm(edges: EdgeSet, width: int) -> Tensor:
    """Reverse Cuthill–McKee: a narrow band."""
    u, v = edges.pairs.numpy()
    size = (edges.num_nodes, edges.num_nodes)
    matrix = csr_matrix((np.ones(2 * u.size, np.int8), (np.concatenate([u, v]), np.concatenate([v, u]))), size)
    return torch.from_numpy(reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64))


def parts(edges: EdgeSet, width: int) -> Tensor:
    """One part of METIS after another, each so small that its features fit into the cache."""
    count = max(2, min(1024, -(-edges.num_nodes * width * 4 // PART)))
    return torch.sort(metis(edges, min(count, edges.num_nodes)), stable=True).indices


ORDERS: dict[str, Callable[[EdgeSet, int], Tensor]] = {
    "natural": natural,
    "degree": degree,
    "rcm": rcm,
    "metis": parts,
}
