"""The methods by name. Each registers itself in its own file; those of other packages come by entry point."""

from typing import Any

from gst.base.registry import Registry

METHODS: Registry[Any] = Registry("method", "gst.methods")  # subclasses of gst.methods.base.Sparsifier


def register(name: str) -> Any:
    """Class decorator: the sparsifier below it is called ``name`` from now on, on the command line too."""

    def add(method: Any) -> Any:
        method.name = name
        return METHODS.register(name)(method)

    return add
