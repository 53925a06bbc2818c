r"""What a forward pass costs: the multiply–accumulates (MACs) of its matrix products.

A sparse graph saves nothing but products with A:

.. math:: \underbrace{N·F·H}_{\text{dense part, stays}} + \underbrace{\mathrm{nnz}(A)·H}_{\text{sparse part, shrinks}}

nnz counts the arcs and the whole diagonal; sparse features count by their non-zeros; A·X·W is taken in the order that
:func:`gst.nn.layers.propagate` chooses. Scaling by degrees, softmax, bias, normalisation and activation are not
products.
"""

from dataclasses import dataclass

from gst.nn.backbones import Backbone
from gst.nn.features import Features, SparseFeatures


@dataclass(frozen=True)
class Macs:
    """Multiply–accumulates of one forward pass over all nodes."""

    dense: int  # products with weights
    sparse: int  # products with A

    @property
    def total(self) -> int:
        return self.dense + self.sparse


def count_macs(model: Backbone, x: Features, nnz: int) -> Macs:
    """``x``: the features in the layout that is multiplied; ``nnz``: entries of A, including the diagonal."""
    stored = x.pattern.nnz if isinstance(x, SparseFeatures) else None
    counts = [layer.macs(x.shape[0], nnz, None if i else stored) for i, layer in enumerate(model.stack)]
    return Macs(sum(dense for dense, _ in counts), sum(sparse for _, sparse in counts))


def paper_macs(model: Backbone, nodes: int, sparsity: float = 0.0) -> int:
    """The paper's convention: products with weights alone, as if they also shrank by 1 − s.

    N·F·H + N·H·C in its tables; it overstates the savings wherever the dense part is the larger one.
    """
    return round((1 - sparsity) * sum(nodes * layer.weight.numel() for layer in model.stack))


def amdahl_limit(share: float, kept: float) -> float:
    r"""The largest speed-up if a share p of the time shrinks to the share r that is kept.

    .. math:: \frac{1}{(1 − p) + p·r}

    >>> amdahl_limit(1.0, 0.25), amdahl_limit(0.5, 0.0), amdahl_limit(0.0, 0.1)
    (4.0, 2.0, 1.0)
    """
    return 1 / ((1 - share) + share * kept)
