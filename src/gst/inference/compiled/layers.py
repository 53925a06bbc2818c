"""The backbones' layers with everything that does not depend on the features computed beforehand."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from gst.nn.features import Features, SparseFeatures
from gst.nn.layers import (
    ClusterGCNLayer,
    GATLayer,
    GCNLayer,
    GINLayer,
    Layer,
    SAGELayer,
    gcn_norm,
    mean_norm,
    sums_first,
)
from gst.sparse import kernels
from gst.sparse.adjacency import Adjacency


@dataclass(frozen=True)
class Rows:
    """A CSR matrix without values."""

    crow: Tensor  # int32 [rows + 1]
    col: Tensor  # int32 [nnz]

    def select(self, order: Tensor, number: Tensor | None, columns: int) -> tuple["Rows", Tensor]:
        """The rows in this order, columns renumbered (None: as they are) and sorted; and which entry each one was."""
        ids = np.arange(self.col.numel(), dtype=np.int32)
        matrix = csr_matrix((ids, self.col.numpy(), self.crow.numpy()), (self.crow.numel() - 1, columns))[order.numpy()]
        if number is not None:
            matrix.indices = number.int().numpy()[matrix.indices]
            matrix.has_sorted_indices = False
            matrix.sort_indices()
        crow, col = (torch.from_numpy(part.astype(np.int32)) for part in (matrix.indptr, matrix.indices))
        return Rows(crow, col), torch.from_numpy(matrix.data).long()

    def product(self, values: Tensor, x: Tensor, init: Tensor | None = None, relu: bool = False) -> Tensor:
        """act(init + A·X); ``init``: None, one row for all, or one each."""
        start = torch.zeros(1, x.shape[1]) if init is None else init.view(-1, x.shape[1])
        found = kernels.product(*self._arrays(values), _bits(x), start.numpy(), relu)
        return torch.from_numpy(found)

    def attention(self, values: Tensor, x: Tensor, source: Tensor, target: Tensor, bias: Tensor) -> Tensor:
        ends = (source.contiguous().numpy(), target.contiguous().numpy())
        return torch.from_numpy(kernels.attention(*self._arrays(values), _bits(x), *ends, bias.numpy()))

    def _arrays(self, values: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.crow.numpy(), self.col.numpy(), values.numpy()


def _bits(x: Tensor) -> np.ndarray:
    return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy()


@dataclass(frozen=True)
class SparseRows:
    """Features that are mostly zeros."""

    rows: Rows
    values: Tensor
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.crow.numel() - 1, self.width

    def __getitem__(self, order: Tensor) -> "SparseRows":
        rows, entries = self.rows.select(order, None, self.width)
        return SparseRows(rows, self.values[entries], self.width)


Operand = Tensor | SparseRows


def linear(x: Operand, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X·W + b."""
    if isinstance(x, SparseRows):
        return x.rows.product(x.values, weight, bias)
    x = x.float()
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


class Normed(nn.Module):
    """A layer with buffers, some of which may be missing, and perhaps a LayerNorm between sum and activation."""

    root: Tensor | None
    norm_weight: Tensor | None
    norm_bias: Tensor | None

    def __init__(self, **buffers: Tensor | None) -> None:
        super().__init__()
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def normed(self, out: Tensor) -> Tensor:
        if self.norm_weight is None:
            return out
        return nn.functional.layer_norm(out, out.shape[1:], self.norm_weight, self.norm_bias)


class Convolution(Normed):
    """act(norm(Â·X·W + X·W_root + b)) with Â's values at hand: GCN, GIN, GraphSAGE and Cluster-GCN."""

    values: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        values: Tensor,
        weight: Tensor,
        bias: Tensor,
        root: Tensor | None = None,
        norm_weight: Tensor | None = None,
        norm_bias: Tensor | None = None,
        *,
        sum_first: bool,
        relu: bool,
        narrow: bool,
    ) -> None:
        super().__init__(
            values=values, weight=weight, bias=bias, root=root, norm_weight=norm_weight, norm_bias=norm_bias
        )
        self.sum_first, self.relu, self.narrow = sum_first, relu, narrow

    def forward(self, x: Operand, matrix: Rows) -> Tensor:
        if self.sum_first:
            assert isinstance(x, Tensor)
            out = linear(matrix.product(self.values, self.rounded(x)), self.weight, self.bias)
            out = self.normed(out if self.root is None else out.addmm_(x.float(), self.root))
            return out.relu_() if self.relu else out
        moved = self.rounded(linear(x, self.weight))
        own = self.bias if self.root is None else linear(x, self.root, self.bias)
        if self.norm_weight is None:
            return matrix.product(self.values, moved, own, self.relu)
        out = self.normed(matrix.product(self.values, moved, own))
        return out.relu_() if self.relu else out

    def rounded(self, x: Tensor) -> Tensor:
        """What rows are summed from, at half the width if wanted."""
        return x.bfloat16() if self.narrow else x.float()


class Attention(Normed):
    """A layer of GAT; source and target logits of all heads come from one product with ``attend``."""

    values: Tensor
    weight: Tensor
    bias: Tensor
    attend: Tensor  # [heads · d, 2 · heads]

    def __init__(
        self,
        values: Tensor,
        weight: Tensor,
        bias: Tensor,
        attend: Tensor,
        root: Tensor | None = None,
        norm_weight: Tensor | None = None,
        norm_bias: Tensor | None = None,
        *,
        elu: bool,
        narrow: bool,
    ) -> None:
        parts = {"values": values, "weight": weight, "bias": bias, "attend": attend}
        super().__init__(**parts, root=root, norm_weight=norm_weight, norm_bias=norm_bias)
        self.elu, self.narrow = elu, narrow

    def forward(self, x: Operand, matrix: Rows) -> Tensor:
        hidden = linear(x, self.weight)
        source, target = (hidden @ self.attend).chunk(2, dim=1)
        moved = hidden.bfloat16() if self.narrow else hidden
        out = matrix.attention(self.values, moved, source, target, self.bias)
        out = self.normed(out if self.root is None else out.add_(linear(x, self.root)))
        return nn.functional.elu_(out) if self.elu else out


def entry_values(layer: Any, adjacency: Adjacency) -> Tensor:
    """Â of one layer."""
    if isinstance(layer, GCNLayer):
        return gcn_norm(adjacency, None, torch.float32)
    if isinstance(layer, SAGELayer):
        return mean_norm(adjacency, adjacency.values(None, layer.diagonal(adjacency), torch.float32))
    if isinstance(layer, GINLayer):
        return adjacency.values(None, adjacency.loops + 1 + layer.eps.cpu(), torch.float32)
    return adjacency.values(None, torch.ones_like(adjacency.loops), torch.float32)


KNOWN = (GCNLayer, GINLayer, SAGELayer, ClusterGCNLayer, GATLayer)


def compile_layer(
    layer: Layer, norm: nn.LayerNorm | None, values: Tensor, nnz: int, x: tuple[int, bool], last: bool, narrow: bool
) -> nn.Module:
    """``x``: how many nodes there are and whether what comes in is a dense tensor."""
    nodes, dense = x
    weight, bias = _copy(layer.weight), _copy(layer.bias)
    more = {"root": None if layer.root is None else _copy(layer.root)}
    if norm is not None:
        more |= {"norm_weight": _copy(norm.weight), "norm_bias": _copy(norm.bias)}
    if isinstance(layer, GATLayer):
        ends = [torch.block_diag(*part.detach().cpu()) for part in (layer.attend_source, layer.attend_target)]
        attend = torch.cat([end.view(layer.heads, -1).t() for end in ends], dim=1)
        return Attention(values, weight, bias, attend.contiguous(), **more, elu=not last, narrow=narrow)
    first = dense and sums_first(nodes, nodes, nnz, weight.shape[0], weight.shape[1])
    return Convolution(values, weight, bias, **more, sum_first=first, relu=not last, narrow=narrow)


def _copy(parameter: Tensor) -> Tensor:
    return parameter.detach().cpu().clone()


def as_operand(x: Features) -> Operand:
    """Features in the form that the layers take."""
    if isinstance(x, SparseFeatures):
        return SparseRows(Rows(x.pattern.crow.int(), x.pattern.col.int()), x.values.float(), x.shape[1])
    return x
