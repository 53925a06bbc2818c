r"""What a forward pass costs, counted: multiply–accumulates (MACs) of its matrix products.

A sparse graph saves the products with A and nothing else:

.. math:: \underbrace{N·F·H}_{\text{dense part, stays}} + \underbrace{\mathrm{nnz}(A)·H}_{\text{sparse part, shrinks}}

with nnz the arcs and the whole diagonal, features that are mostly zeros at their non-zeros, and A·X·W in the order that
:func:`gst.nn.layers.propagate` takes. Scaling by degrees, softmax, bias, normalisation and activation
are no products.
"""

from dataclasses import dataclass

from torch import Tensor

from gst.nn.backbones import Backbone
from gst.nn.features import Features, SparseFeatures
from gst.nn.layers import GATLayer, Layer, sums_first


@dataclass(frozen=True)
class Macs:
    """Multiply–accumulates of one forward pass over all nodes."""

    dense: int  # products with weights
    sparse: int  # products with A

    @property
    def total(self) -> int:
        return self.dense + self.sparse


def count_macs(model: Backbone, x: Features, nnz: int) -> Macs:
    """``x``: the features in the layout that is multiplied; ``nnz``: entries of A, the diagonal among them."""
    nodes, dense, sparse = x.shape[0], 0, 0
    for i, layer in enumerate(_layers(model)):
        inputs, outputs = layer.weight.shape
        thin = i == 0 and isinstance(x, SparseFeatures)
        product = _nonzeros(x) * outputs if thin else nodes * inputs * outputs
        dense += product if layer.root is None else 2 * product  # W_root
        if isinstance(layer, GATLayer):
            dense += 2 * nodes * outputs  # a_s·h and a_t·h of every node
            sparse += nnz * outputs
            continue
        sparse += nnz * (inputs if not thin and sums_first(nodes, nodes, nnz, inputs, outputs) else outputs)
    return Macs(dense, sparse)


def paper_macs(model: Backbone, nodes: int, sparsity: float = 0.0) -> int:
    """The paper's convention: products with weights alone, as if they too shrank by 1 − s.

    N·F·H + N·H·C of its tables; it overstates what is saved wherever the dense part is the larger one.
    """
    return round((1 - sparsity) * sum(nodes * layer.weight.numel() for layer in _layers(model)))


def amdahl_limit(share: float, kept: float) -> float:
    r"""The largest speed-up: only a share p of the time shrinks, and no further than to the share r that is kept.

    .. math:: \frac{1}{(1 − p) + p·r}

    >>> amdahl_limit(1.0, 0.25), amdahl_limit(0.5, 0.0), amdahl_limit(0.0, 0.1)
    (4.0, 2.0, 1.0)
    """
    return 1 / ((1 - share) + share * kept)


def _nonzeros(x: Features) -> int:
    return x.numel() if isinstance(x, Tensor) else x.pattern.nnz


def _layers(model: Backbone) -> list[Layer]:
    return list(model.layers)  # type: ignore[arg-type]
