"""Layers of backbones with everything computed in advance that does not depend on the features."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from gst.nn.features import Features, SparseFeatures
from gst.nn.layers import Layer, sums_first
from gst.sparse import kernels


@dataclass(frozen=True)
class Rows:
    """A CSR matrix without values."""

    crow: Tensor  # int32 [rows + 1]
    col: Tensor  # int32 [nnz]

    def select(self, order: Tensor, number: Tensor | None, columns: int) -> tuple["Rows", Tensor]:
        """The rows in this order, with renumbered (None: the same) and sorted columns; and the old id of each entry."""
        ids = np.arange(self.col.numel(), dtype=np.int32)
        matrix = csr_matrix((ids, self.col.numpy(), self.crow.numpy()), (self.crow.numel() - 1, columns))[order.numpy()]
        if number is not None:
            matrix.indices = number.int().numpy()[matrix.indices]
            matrix.has_sorted_indices = False
            matrix.sort_indices()
        crow, col = (torch.from_numpy(part.astype(np.int32)) for part in (matrix.indptr, matrix.indices))
        return Rows(crow, col), torch.from_numpy(matrix.data).long()

    def product(self, values: Tensor, x: Tensor, init: Tensor | None = None, relu: bool = False) -> Tensor:
        """act(init + A·X); ``init``: None, one row for all nodes, or one per node."""
        start = torch.zeros(1, x.shape[1]) if init is None else init.view(-1, x.shape[1])
        return torch.from_numpy(kernels.product(*self._arrays(values), _bits(x), start.numpy(), relu))

    def attention(self, values: Tensor, x: Tensor, source: Tensor, target: Tensor, bias: Tensor) -> Tensor:
        """bias + means of X weighted by attention, from the scores of all sources and targets."""
        scores = (source.contiguous().numpy(), target.contiguous().numpy())
        return torch.from_numpy(kernels.attention(*self._arrays(values), _bits(x), *scores, bias.numpy()))

    def _arrays(self, values: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.crow.numpy(), self.col.numpy(), values.numpy()


def _bits(x: Tensor) -> np.ndarray:
    """numpy has no bfloat16: the kernels take its bits as int16."""
    return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy()


@dataclass(frozen=True)
class SparseRows:
    """Sparse features."""

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


class CompiledLayer(nn.Module):
    """A layer whose tensors are buffers; optional are a skip connection and a LayerNorm before the activation."""

    values: Tensor  # of Â
    weight: Tensor
    bias: Tensor
    root: Tensor | None
    norm_weight: Tensor | None
    norm_bias: Tensor | None

    def __init__(self, **buffers: Tensor | None) -> None:
        super().__init__()
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    @property
    def only_sums(self) -> bool:
        """Whether the layer reads its input only to sum rows of it."""
        return False

    def normed(self, out: Tensor) -> Tensor:
        if self.norm_weight is None:
            return out
        return nn.functional.layer_norm(out, out.shape[1:], self.norm_weight, self.norm_bias)


class Convolution(CompiledLayer):
    """act(norm(Â·X·W + X·W_root + b)): all described layers without attention."""

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
        self.sum_first = sum_first
        self.relu = relu
        self.narrow = narrow

    @property
    def only_sums(self) -> bool:
        return self.sum_first and self.root is None

    def forward(self, x: Operand, matrix: Rows) -> Tensor:
        if self.sum_first:
            assert isinstance(x, Tensor)
            out = linear(matrix.product(self.values, self.rounded(x)), self.weight, self.bias)
            out = self.normed(out if self.root is None else out.addmm_(x.float(), self.root))
            return out.relu_() if self.relu else out
        product = self.rounded(linear(x, self.weight))
        init = self.bias if self.root is None else linear(x, self.root, self.bias)
        if self.norm_weight is None:
            return matrix.product(self.values, product, init, self.relu)
        out = self.normed(matrix.product(self.values, product, init))
        return out.relu_() if self.relu else out

    def rounded(self, x: Tensor) -> Tensor:
        """The rows to be summed, in bfloat16 if ``narrow``."""
        return x.bfloat16() if self.narrow else x.float()


class Attention(CompiledLayer):
    """A layer with attention; one product with ``attend`` gives the source and target scores of all heads."""

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
        self.elu = elu
        self.narrow = narrow

    def forward(self, x: Operand, matrix: Rows) -> Tensor:
        hidden = linear(x, self.weight)
        source, target = (hidden @ self.attend).chunk(2, dim=1)
        rounded = hidden.bfloat16() if self.narrow else hidden
        out = matrix.attention(self.values, rounded, source, target, self.bias)
        out = self.normed(out if self.root is None else out.add_(linear(x, self.root)))
        return nn.functional.elu_(out) if self.elu else out


def compile_layer(
    layer: Layer, values: Tensor, norm: nn.LayerNorm | None, nodes: int, *, dense: bool, last: bool, narrow: bool
) -> CompiledLayer:
    """A described layer with Â of these values; ``dense``: whether its input is a dense tensor."""
    weight, bias = _copy(layer.weight), _copy(layer.bias)
    optional = {"root": None if layer.root is None else _copy(layer.root)}
    if norm is not None:
        optional |= {"norm_weight": _copy(norm.weight), "norm_bias": _copy(norm.bias)}
    if layer.attention is not None:
        blocks = [torch.block_diag(*vectors.detach().cpu()).t() for vectors in layer.attention]
        attend = torch.cat(blocks, dim=1).contiguous()
        return Attention(values, weight, bias, attend, **optional, elu=not last, narrow=narrow)
    sum_first = dense and sums_first(nodes, nodes, values.numel(), weight.shape[0], weight.shape[1])
    return Convolution(values, weight, bias, **optional, sum_first=sum_first, relu=not last, narrow=narrow)


def _copy(parameter: Tensor) -> Tensor:
    return parameter.detach().cpu().clone()


def as_operand(x: Features) -> Operand:
    """Features in the form that compiled layers take."""
    if isinstance(x, SparseFeatures):
        return SparseRows(Rows(x.pattern.crow.int(), x.pattern.col.int()), x.values.float(), x.shape[1])
    return x
