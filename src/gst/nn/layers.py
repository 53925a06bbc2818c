r"""Graph convolutions with gated edges.

Every layer takes the features of a block's columns and one value per edge of the whole graph (mask times gate, m·g).
Value 0 is deletion, to rounding: degrees, softmax and sums see only what is left. Yet an edge of value 0 still has a
gradient, so that training can call it back.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from gst.base.randomness import generator
from gst.nn.features import Features, SharedFeatures, linear, rows
from gst.sparse.adjacency import Adjacency, Block
from gst.sparse.csr import row_max, row_sum, spmm
from gst.sparse.shared_grad import Shared, shared_linear, shared_spmm, take

CACHE = 2**21  # numbers that stay in a processor's cache


def glorot(inputs: int, outputs: int) -> nn.Parameter:
    weight = torch.empty(inputs, outputs)
    nn.init.xavier_uniform_(weight, generator=generator(weight.device))
    return nn.Parameter(weight)


def propagate(block: Block, values: Tensor, x: Features | SharedFeatures, weight: Tensor) -> Tensor:
    """A·X·W in the order that takes less time; sparse features are multiplied first and so stay sparse."""
    if isinstance(x, SharedFeatures):  # a product of all nodes is taken once for all blocks: only widths matter
        if isinstance(x.x, Tensor) and weight.shape[0] <= weight.shape[1]:
            return shared_spmm(block.pattern, values, x.itself, weight)
        return shared_spmm(block.pattern, values, x.times(weight))
    if isinstance(x, Tensor) and sums_first(*block.pattern.shape, block.pattern.nnz, *weight.shape):
        return spmm(block.pattern, values, x) @ weight
    return spmm(block.pattern, values, linear(x, weight))


def sums_first(rows: int, columns: int, nnz: int, inputs: int, outputs: int) -> bool:
    """Whether (A·X)·W takes less time than A·(X·W), counted in multiplications of a dense product."""
    before = _spmm_cost(columns, nnz, inputs) + rows * inputs * outputs
    return before < columns * inputs * outputs + _spmm_cost(columns, nnz, outputs)


def _spmm_cost(columns: int, nnz: int, width: int) -> int:
    """Of a sparse product; one that fetches its rows from memory rather than from cache is about 8 times as slow."""
    return nnz * width * (8 if columns * width > CACHE else 1)


class Layer(nn.Module):
    r"""Weights W and b of a graph convolution and, with ``residual``, a learnable skip connection :math:`x_i W_{root}`.

    The skip connection is that of PyG's ``GATConv(residual=True)``: linear, without a bias, added to what the
    convolution gives.
    """

    root: nn.Parameter | None

    def __init__(self, inputs: int, outputs: int, *, residual: bool = False) -> None:
        super().__init__()
        self.weight = glorot(inputs, outputs)
        self.register_parameter("root", glorot(inputs, outputs) if residual else None)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def own_part(self, x: Features | SharedFeatures, block: Block) -> Tensor | None:
        """What the skip connection gives to the rows of a block; to be asked for before the sums over neighbours.

        Slopes are carried back in the reverse order, and what they add up to in place depends on it to the last bit.
        """
        if self.root is None:
            return None
        if isinstance(x, SharedFeatures):
            dense = isinstance(x.x, Tensor)
            return shared_linear(x.itself, block.own, self.root) if dense else linear(rows(x, block.own), self.root)
        if block.entries is None:  # of a block with its own adjacency, most columns are no rows
            return linear(x if block.pattern.shape[0] == x.shape[0] else rows(x, block.own), self.root)
        return linear(x, self.root)[block.own]

    def total(self, sums: Tensor, own: Tensor | None) -> Tensor:
        return sums + self.bias if own is None else sums + own + self.bias


class GCNLayer(Layer):
    r"""Kipf & Welling, ICLR 2017, with the normalisation computed from the gated values.

    .. math:: D̃^{-1/2} (A ∘ m ∘ g + I) D̃^{-1/2} X W + b

    A self-loop that the data carries takes the place of the one from I, as in PyG.
    """

    def forward(self, x: Features | SharedFeatures, block: Block, edge_values: Tensor | None) -> Tensor:
        values = block.select(gcn_norm(block.adjacency, edge_values, self.weight.dtype, block.own))
        own = self.own_part(x, block)
        return self.total(propagate(block, values, x, self.weight), own)


def gcn_norm(adjacency: Adjacency, edge_values: Tensor | None, dtype: torch.dtype, own: Tensor | None = None) -> Tensor:
    """The entries of D̃^-½ (A∘m∘g + I) D̃^-½; D̃ sums each row, that is, what flows into a node.

    ``own``: the column of each row's own node, of an adjacency that is told its degrees.
    """
    pattern = adjacency.pattern

    def make() -> Tensor:
        diagonal = torch.where(adjacency.loops > 0, adjacency.loops, 1.0)
        values = adjacency.values(edge_values, diagonal, dtype)
        if adjacency.degree is not None:
            assert own is not None
            scale = take(adjacency.degree, own).rsqrt()
            return values * scale[pattern.row] * take(adjacency.degree, pattern.col).rsqrt()
        scale = row_sum(pattern, values).rsqrt()
        return values * scale[pattern.row] * scale[pattern.col]

    return adjacency.normalised(edge_values, ("gcn", dtype), make)


class GINLayer(Layer):
    r"""Xu et al., ICLR 2019, with a one-layer perceptron and a trainable ε.

    .. math:: \Big((1 + ε) x_i + \sum_j m_{ij} g_{ij} x_j\Big) W + b

    """

    def __init__(self, inputs: int, outputs: int, *, residual: bool = False) -> None:
        super().__init__(inputs, outputs, residual=residual)
        self.eps = nn.Parameter(torch.zeros(()))

    def forward(self, x: Features | SharedFeatures, block: Block, edge_values: Tensor | None) -> Tensor:
        diagonal = block.adjacency.loops.to(self.eps.dtype) + 1 + self.eps
        values, own = block.values(edge_values, diagonal, self.weight.dtype), self.own_part(x, block)
        return self.total(propagate(block, values, x, self.weight), own)


class GATLayer(Layer):
    r"""Veličković et al., ICLR 2018, with the gate inside the softmax.

    .. math:: α_{ij} = \frac{m_{ij} g_{ij} \exp e_{ij}}{\sum_k m_{ik} g_{ik} \exp e_{ik}}, \quad
        e_{ij} = \mathrm{LeakyReLU}(a_t·W x_i + a_s·W x_j)

    The self-loop takes part with value 1; a self-loop that the data carries is the same one, as in PyG.
    """

    def __init__(self, inputs: int, outputs: int, heads: int, *, residual: bool = False) -> None:
        super().__init__(inputs, heads * outputs, residual=residual)
        self.heads = heads
        self.attend_source = glorot(heads, outputs)
        self.attend_target = glorot(heads, outputs)

    def forward(self, x: Features | SharedFeatures, block: Block, edge_values: Tensor | None) -> Tensor:
        pattern, own = block.pattern, self.own_part(x, block)
        hidden = x.times(self.weight) if isinstance(x, SharedFeatures) else linear(x, self.weight)
        source, target = (self._attend(x, hidden, vector) for vector in (self.attend_source, self.attend_target))
        logits = functional.leaky_relu(
            take(target, block.own)[pattern.row] + take(source, pattern.col), 0.2
        )  # [nnz, heads]

        if edge_values is None and block.adjacency.weight is None:  # all values are 1
            weight = (logits - row_max(pattern, logits)[pattern.row]).exp()
        else:
            values = block.values(edge_values, torch.ones_like(block.adjacency.loops), logits.dtype).unsqueeze(1)
            # the largest logit of what is left: an absent edge must not push the others into underflow
            top = row_max(pattern, logits.masked_fill(values == 0, -torch.inf))
            weight = values * (logits - top[pattern.row]).clamp(max=60).exp()
        attention = weight / row_sum(pattern, weight)[pattern.row]
        if isinstance(hidden, Shared):
            parts = [
                shared_spmm(pattern, a, h) for a, h in zip(attention.unbind(1), hidden.split(self.heads), strict=True)
            ]
        else:
            by_head = hidden.view(hidden.shape[0], self.heads, -1).unbind(1)
            parts = [spmm(pattern, a, h) for a, h in zip(attention.unbind(1), by_head, strict=True)]
        return self.total(torch.cat(parts, dim=1), own)

    def _attend(self, x: Features | SharedFeatures, hidden: Tensor | Shared, vector: Tensor) -> Tensor | Shared:
        """a·W x of every node and head."""
        if isinstance(x, SharedFeatures):
            return x.times((self.weight.view(x.shape[1], self.heads, -1) * vector).sum(-1), vector)
        assert isinstance(hidden, Tensor)
        return (hidden.view(hidden.shape[0], self.heads, -1) * vector).sum(-1)


class SAGELayer(Layer):
    r"""Hamilton et al., NeurIPS 2017, with the mean over what is left; edge weights of the data make it a weighted one.

    .. math:: \frac{\sum_j m_{ij} g_{ij} x_j}{\sum_j m_{ij} g_{ij}} W + x_i W_{root} + b

    """

    root: nn.Parameter

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, residual=True)

    def diagonal(self, adjacency: Adjacency) -> Tensor:
        """With what value a node is its own neighbour: only through self-loops that the data carries."""
        return adjacency.loops

    def forward(self, x: Features | SharedFeatures, block: Block, edge_values: Tensor | None) -> Tensor:
        adjacency, dtype = block.adjacency, self.weight.dtype

        def make() -> Tensor:
            return mean_norm(adjacency, adjacency.values(edge_values, self.diagonal(adjacency), dtype))

        values = adjacency.normalised(edge_values, (type(self), dtype), make)
        own = self.own_part(x, block)
        return self.total(propagate(block, block.select(values), x, self.weight), own)


def mean_norm(adjacency: Adjacency, values: Tensor) -> Tensor:
    """Entry values divided by the sum of their row, so that the matrix takes means.

    The sum is never taken for less than half an edge: so a node that has lost all its edges has mean 0, and a gradient
    in each of them.
    """
    return values / row_sum(adjacency.pattern, values).clamp(min=adjacency.lightest / 2)[adjacency.pattern.row]


class ClusterGCNLayer(SAGELayer):
    r"""Chiang et al., KDD 2019, as in PyG: a mean in which every node is its own neighbour.

    .. math:: D̃^{-1} (A ∘ m ∘ g + I) X W + X W_{root} + b

    A self-loop that the data carries is the one from I, as in PyG.
    """

    def diagonal(self, adjacency: Adjacency) -> Tensor:
        return torch.ones_like(adjacency.loops)
