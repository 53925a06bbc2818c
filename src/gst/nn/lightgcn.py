"""LightGCN: He et al., LightGCN: simplifying and powering graph convolution network for recommendation, SIGIR 2020."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from gst.base.randomness import generator
from gst.sparse.csr import Pattern, row_sum, spmm
from gst.sparse.kernels import product


class LightGCN(nn.Module):
    r"""Embeddings as parameters, and their mean over 0 … L hops; nothing else is learned.

    .. math:: Z = \frac{1}{L + 1} \sum_{l=0}^{L} Â^l E, \quad Â = D^{-1/2} A D^{-1/2}

    D sums what flows into a node, as in PyG's ``LGConv``; a node into which nothing flows neither receives nor sends.

    Args:
        num_nodes: users and items.
        width: of the embeddings.
        layers: L.

    >>> model = LightGCN(3, width=2, layers=1)
    >>> model(torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([3, 2])
    """

    def __init__(self, num_nodes: int, width: int = 64, layers: int = 3) -> None:
        super().__init__()
        self.layers = layers
        self.embedding = nn.Parameter(torch.randn(num_nodes, width, generator=generator()) / 10)

    def forward(self, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Z of all nodes; ``edge_weight``: one value per column, of which 0 deletes it and still has a gradient."""
        nodes = self.embedding.shape[0]
        order = torch.argsort(edge_index[1] * nodes + edge_index[0])
        pattern = Pattern(edge_index[1, order], edge_index[0, order], (nodes, nodes))
        weight = self.embedding.new_ones(order.numel()) if edge_weight is None else edge_weight[order]
        return self.propagate(pattern, weight)

    def propagate(self, pattern: Pattern, weight: Tensor) -> Tensor:
        """Z on a pattern whose rows are targets, each entry with its weight."""
        values = normalised(pattern, weight)
        out: Tensor = self.embedding
        for _ in range(self.layers):
            out = self.embedding + spmm(pattern, values, out)
        return out / (self.layers + 1)


def normalised(pattern: Pattern, weight: Tensor) -> Tensor:
    """The entries of D^-½ A D^-½; where a degree is 0 or less, its 1/√D counts as 0 and, for gradients, as 1."""
    degree = row_sum(pattern, weight)
    scale = torch.where(degree > 0, degree, 1.0).rsqrt()
    return weight * scale[pattern.row] * (scale * (degree > 0))[pattern.col]


@dataclass(frozen=True)
class Propagation:
    """P(Â) of a graph in compiled products, for training and inference of embeddings without autograd."""

    crow: np.ndarray  # int32, rows are targets
    col: np.ndarray
    values: np.ndarray
    layers: int

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int, layers: int) -> "Propagation":
        """Of the columns (source, target)."""
        col, row = edge_index.numpy()
        order = np.lexsort((col, row))
        row, col = row[order], col[order]
        degree = np.bincount(row, minlength=num_nodes)
        scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0.0)
        crow = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
        values = (scale[row] * scale[col]).astype(np.float32)
        return cls(crow, col.astype(np.int32), values, layers)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """P(Â) x, by Horner's rule."""
        out = x
        for _ in range(self.layers):
            out = product(self.crow, self.col, self.values, out, x, relu=False)
        return out / np.float32(self.layers + 1)
