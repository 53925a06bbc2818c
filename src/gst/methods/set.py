"""SET: sparse evolutionary training."""

from dataclasses import dataclass
from typing import ClassVar

from gst.methods.dynamic import DynamicSparsifier
from gst.methods.registry import register


@register("set")
@dataclass(kw_only=True, eq=False, repr=False)
class SET(DynamicSparsifier):
    """Drops the lowest |w|, regrows at random (Mocanu et al., Nature Communications 2018).

    Arguments are those of :class:`~gst.methods.dynamic.DynamicSparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> gst.SET(sparsity=0.5, **few).fit(data).result_.graph.num_edges
    120
    """

    reference: ClassVar[str] = "Mocanu et al., Nat. Commun. 2018"
