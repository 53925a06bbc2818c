"""GAT: Veličković et al., Graph attention networks, ICLR 2018."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gst.base.errors import InputError
from gst.nn.backbones.base import BACKBONES, Backbone
from gst.nn.features import Features, SharedFeatures, linear
from gst.nn.layers import Layer, glorot
from gst.sparse.adjacency import Block
from gst.sparse.csr import row_max, row_sum, spmm
from gst.sparse.shared_grad import Shared, shared_spmm, take


class GATLayer(Layer):
    r"""Attention with the gate inside the softmax.

    .. math:: α_{ij} = \frac{m_{ij} g_{ij} \exp e_{ij}}{\sum_k m_{ik} g_{ik} \exp e_{ik}}, \quad
        e_{ij} = \mathrm{LeakyReLU}(a_t·W x_i + a_s·W x_j)

    The self-loop takes part with value 1, whether the data has it or not, as in PyG.
    """

    norm = "sum"
    fixed_diagonal = True
    described = True

    def __init__(self, inputs: int, outputs: int, heads: int, *, residual: bool = False) -> None:
        super().__init__(inputs, heads * outputs, residual=residual)
        self.heads = heads
        self.attend_source = glorot(heads, outputs)
        self.attend_target = glorot(heads, outputs)

    @property
    def attention(self) -> tuple[Tensor, Tensor]:
        return self.attend_source, self.attend_target

    def diagonal(self, loops: Tensor) -> Tensor:
        return torch.ones_like(loops)

    def forward(self, x: Features | SharedFeatures, block: Block, edge_values: Tensor | None) -> Tensor:
        pattern, skip = block.pattern, self.skip(x, block)
        hidden = x.times(self.weight) if isinstance(x, SharedFeatures) else linear(x, self.weight)
        attention = self.shares(x, hidden, block, edge_values)
        if isinstance(hidden, Shared):
            parts = [
                shared_spmm(pattern, a, h) for a, h in zip(attention.unbind(1), hidden.split(self.heads), strict=True)
            ]
        else:
            by_head = hidden.view(hidden.shape[0], self.heads, -1).unbind(1)
            parts = [spmm(pattern, a, h) for a, h in zip(attention.unbind(1), by_head, strict=True)]
        return self.total(torch.cat(parts, dim=1), skip)

    def shares(
        self, x: Features | SharedFeatures, hidden: Tensor | Shared, block: Block, edge_values: Tensor | None
    ) -> Tensor:
        """α of every entry of a block and head, [nnz, heads], where ``hidden`` is W x."""
        pattern = block.pattern
        source, target = (self._scores(x, hidden, vector) for vector in self.attention)
        logits = functional.leaky_relu(
            take(target, block.row_columns)[pattern.row] + take(source, pattern.col), 0.2
        )  # [nnz, heads]

        if edge_values is None and block.adjacency.weight is None:  # all values are 1
            weight = (logits - row_max(pattern, logits)[pattern.row]).exp()
        else:
            values = self.entry_values(block, edge_values).unsqueeze(1)
            # the largest logit of the remaining edges: a deleted one must not push the others into underflow
            top = row_max(pattern, logits.masked_fill(values == 0, -torch.inf))
            weight = values * (logits - top[pattern.row]).clamp(max=60).exp()
        return weight / row_sum(pattern, weight)[pattern.row]

    def _scores(self, x: Features | SharedFeatures, hidden: Tensor | Shared, vector: Tensor) -> Tensor | Shared:
        """a·W x of every node and head."""
        if isinstance(x, SharedFeatures):
            return x.times((self.weight.view(x.shape[1], self.heads, -1) * vector).sum(-1), vector)
        assert isinstance(hidden, Tensor)
        return (hidden.view(hidden.shape[0], self.heads, -1) * vector).sum(-1)

    def macs(self, nodes: int, nnz: int, stored: int | None = None) -> tuple[int, int]:
        """With a_s·h and a_t·h of every node; Â is multiplied last."""
        dense, _ = super().macs(nodes, nnz, stored)
        outputs = self.weight.shape[1]
        return dense + 2 * nodes * outputs, nnz * outputs


@BACKBONES.register("gat")
class GAT(Backbone):
    """Graph attention network: ``hidden`` is the width of all heads together, the last layer has one head."""

    layer_class = GATLayer
    activation = staticmethod(functional.elu)
    arguments = ("heads",)
    bytes_per_arc = 800

    def __init__(self, inputs: int, hidden: int, outputs: int, *, heads: int = 8, **options: Any) -> None:
        if hidden % heads:
            raise InputError(f"hidden {hidden} is not a multiple of the {heads} attention heads of GAT")
        self.heads = heads
        super().__init__(inputs, hidden, outputs, **options)

    def layer(self, inputs: int, outputs: int, *, last: bool) -> Layer:
        heads = 1 if last else self.heads
        return GATLayer(inputs, outputs // heads, heads, residual=self.residual)
