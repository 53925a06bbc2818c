"""The methods by name. Each registers itself in its own file; those of other packages come by entry point."""

from typing import Any

from gst.base.registry import Registry

METHODS: Registry[Any] = Registry("method", "gst.methods")  # subclasses of gst.methods.base.Sparsifier


def register(name: str) -> Any:
    """Class decorator: the sparsifier below it is called ``name`` from now on, on the command line too.

    >>> import gst
    >>> @gst.register("newest")
    ... class Newest(gst.TopologySparsifier):
    ...     def edge_scores(self, edges):
    ...         return edges.pairs.amax(0).double()
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=1, sparse_epochs=1, cache=False)
    >>> gst.sparsify(data, "newest", keep=50, **few).metrics["method"]
    'newest'
    >>> del METHODS._entries["newest"]  # only here: all examples share a process
    """

    def add(method: Any) -> Any:
        method.name = name
        return METHODS.register(name)(method)

    return add
