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
    """

    reference: ClassVar[str] = "Mocanu et al., Nat. Commun. 2018"
