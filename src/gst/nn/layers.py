r"""What all graph convolutions share: weights, gated edges, normalisation and the order of the products.

Every layer takes the features of a block's columns and one value per edge of the whole graph (mask times gate, m·g).
A value of 0 deletes the edge, up to rounding: degrees, softmax and sums see only the remaining edges. Yet such an edge
has a gradient, so that training can bring it back.
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from gst.base.randomness import generator
from gst.nn.features import Features, SharedFeatures, linear, rows
from gst.sparse.adjacency import Adjacency, Block
from gst.sparse.csr import row_sum, spmm
from gst.sparse.shared_grad import shared_linear, shared_spmm, take

CACHE = 2**21  # numbers that fit into a processor's cache
_FORWARD = {"forward", "entry_values", "skip", "total"}  # methods of Layer that compute its output


def glorot(inputs: int, outputs: int) -> nn.Parameter:
    weight = torch.empty(inputs, outputs)
    nn.init.xavier_uniform_(weight, generator=generator(weight.device))
    return nn.Parameter(weight)


class Layer(nn.Module):
    r"""A graph convolution with gated edges:

    .. math:: Â X W + X W_{root} + b

    Â holds the gated edges and a diagonal, scaled by ``norm``. The skip connection :math:`X W_{root}` is there with
    ``residual`` only; as in PyG's ``GATConv(residual=True)`` it is linear and has no bias.

    A subclass either states ``norm`` and :meth:`diagonal`, which compiled models and the kernels of the greedy search
    read as well, or has a ``forward`` of its own. Such a forward must accept sparse and shared features, as
    :func:`propagate` and :meth:`skip` do. It is trained and evaluated like any other, but compiled and searched like a
    user's own model.

    Attributes:
        norm: how the rows of Â are scaled: not at all ("sum"), to mean values ("mean"), or by :math:`D̃^{-1/2}` on both
            sides ("symmetric", with the diagonal of GCN).
        fixed_diagonal: whether :meth:`diagonal` depends on nothing but its argument. Unless edges are gated, Â is then
            computed once per graph and shared by all layers of the class.
        described: whether these attributes say all about the output; a class that overrides ``forward`` must say so.
    """

    norm: ClassVar[Literal["sum", "mean", "symmetric"]] = "sum"
    fixed_diagonal: ClassVar[bool] = False
    described: ClassVar[bool] = True

    root: nn.Parameter | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "described" not in vars(cls) and not _FORWARD.isdisjoint(vars(cls)):
            cls.described = False

    def __init__(self, inputs: int, outputs: int, *, residual: bool = False) -> None:
        super().__init__()
        self.weight = glorot(inputs, outputs)
        self.register_parameter("root", glorot(inputs, outputs) if residual else None)
        self.bias = nn.Parameter(torch.zeros(outputs))

    @property
    def attention(self) -> tuple[Tensor, Tensor] | None:
        """a_s and a_t, [heads, d] each, if Â is the attention of :class:`~gst.nn.backbones.gat.GATLayer`; else None."""
        return None

    def diagonal(self, loops: Tensor) -> Tensor:
        """[N] the value of each node in its own sum, given the weights of the data's self-loops (0: none)."""
        return loops

    def forward(self, x: Features | SharedFeatures, block: Block, edge_values: Tensor | None) -> Tensor:
        values = self.entry_values(block, edge_values)
        skip = self.skip(x, block)
        return self.total(propagate(block, values, x, self.weight), skip)

    def entry_values(self, block: Block, edge_values: Tensor | None) -> Tensor:
        """The entries of Â in a block, from one value per edge (None: 1)."""
        adjacency, dtype = block.adjacency, self.weight.dtype
        if self.norm == "sum":
            return block.values(edge_values, self.diagonal(adjacency.loops.to(dtype)), dtype)

        def scaled() -> Tensor:
            values = adjacency.values(edge_values, self.diagonal(adjacency.loops.to(dtype)), dtype)
            return (
                mean_norm(adjacency, values) if self.norm == "mean" else gcn_norm(adjacency, values, block.row_columns)
            )

        if self.fixed_diagonal:
            return block.select(adjacency.normalised(edge_values, (type(self), dtype), scaled))
        return block.select(scaled())

    def skip(self, x: Features | SharedFeatures, block: Block) -> Tensor | None:
        """The skip connection of a block's rows; to be called before :func:`propagate`.

        Gradients flow back in reverse order, and the last bits of sums that are accumulated in place depend on it.
        """
        if self.root is None:
            return None
        if isinstance(x, SharedFeatures):
            dense = isinstance(x.x, Tensor)
            return (
                shared_linear(x.itself, block.row_columns, self.root)
                if dense
                else linear(rows(x, block.row_columns), self.root)
            )
        if block.entries is None:  # in a block with its own adjacency, most columns are not rows
            return linear(x if block.pattern.shape[0] == x.shape[0] else rows(x, block.row_columns), self.root)
        return linear(x, self.root)[block.row_columns]

    def total(self, sums: Tensor, skip: Tensor | None) -> Tensor:
        return sums + self.bias if skip is None else sums + skip + self.bias

    def macs(self, nodes: int, nnz: int, stored: int | None = None) -> tuple[int, int]:
        """Multiply–accumulates of the products with weights, and of those with Â, in one pass over all nodes.

        ``nnz``: entries of Â; ``stored``: non-zero features, if they are sparse.
        """
        inputs, outputs = self.weight.shape
        product = nodes * inputs * outputs if stored is None else stored * outputs
        first = stored is None and sums_first(nodes, nodes, nnz, inputs, outputs)
        return product if self.root is None else 2 * product, nnz * (inputs if first else outputs)


def gcn_norm(adjacency: Adjacency, values: Tensor, row_columns: Tensor) -> Tensor:
    """Entries of D̃^-½ (A∘m∘g + I) D̃^-½ from those of A∘m∘g + I; D̃ sums each row, that is, what flows into a node.

    ``row_columns``: the column of each row's own node, for an adjacency that stores D̃ because its entries do not
    show it.
    """
    pattern = adjacency.pattern
    if adjacency.degree is not None:
        scale = take(adjacency.degree, row_columns).rsqrt()
        return values * scale[pattern.row] * take(adjacency.degree, pattern.col).rsqrt()
    scale = row_sum(pattern, values).rsqrt()
    return values * scale[pattern.row] * scale[pattern.col]


def mean_norm(adjacency: Adjacency, values: Tensor) -> Tensor:
    """Entries divided by the sum of their row, so that the matrix takes means.

    The divisor is at least half the weight of the lightest edge: a node that has lost all its edges has mean 0, and
    a gradient in each of them.
    """
    return values / row_sum(adjacency.pattern, values).clamp(min=adjacency.min_weight / 2)[adjacency.pattern.row]


def propagate(block: Block, values: Tensor, x: Features | SharedFeatures, weight: Tensor) -> Tensor:
    """Â·X·W in the faster order; sparse features are multiplied by W first and so stay sparse."""
    if isinstance(x, SharedFeatures):  # a product of all nodes is taken once for all blocks: only the widths matter
        if isinstance(x.x, Tensor) and weight.shape[0] <= weight.shape[1]:
            return shared_spmm(block.pattern, values, x.itself, weight)
        return shared_spmm(block.pattern, values, x.times(weight))
    if isinstance(x, Tensor) and sums_first(*block.pattern.shape, block.pattern.nnz, *weight.shape):
        return spmm(block.pattern, values, x) @ weight
    return spmm(block.pattern, values, linear(x, weight))


def sums_first(rows: int, columns: int, nnz: int, inputs: int, outputs: int) -> bool:
    """Whether (A·X)·W is faster than A·(X·W), by the number of multiplications of a dense product."""
    before = _spmm_cost(columns, nnz, inputs) + rows * inputs * outputs
    return before < columns * inputs * outputs + _spmm_cost(columns, nnz, outputs)


def _spmm_cost(columns: int, nnz: int, width: int) -> int:
    """Of a sparse product; one that reads its rows from memory instead of the cache is about 8 times as slow."""
    return nnz * width * (8 if columns * width > CACHE else 1)
