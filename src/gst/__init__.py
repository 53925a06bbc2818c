"""Graph Sparse Training: fewer edges, same answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gst.base.processor import portable
from gst.base.version import __version__

if TYPE_CHECKING:
    from gst.after.search import search
    from gst.api.result import Result
    from gst.api.sparsify import sparsify
    from gst.base.errors import GSTError, InputError
    from gst.data import datasets, from_files, load
    from gst.graph.edgeset import EdgeSet
    from gst.inference.compiled import load_compiled
    from gst.methods import (
        GST,
        MEST,
        SCAN,
        SET,
        SNFS,
        SNIP,
        UGS,
        WDGLT,
        DSpar,
        EffectiveResistance,
        ImportanceScores,
        LocalSimilarity,
        MGSpar,
        Random,
        RigL,
        SpectralRadius,
    )
    from gst.storage.checkpoint import Checkpoint
    from gst.train.settings import Settings

__all__ = [
    "GST",
    "MEST",
    "SCAN",
    "SET",
    "SNFS",
    "SNIP",
    "UGS",
    "WDGLT",
    "Checkpoint",
    "DSpar",
    "EdgeSet",
    "EffectiveResistance",
    "GSTError",
    "ImportanceScores",
    "InputError",
    "LocalSimilarity",
    "MGSpar",
    "Random",
    "Result",
    "RigL",
    "Settings",
    "SpectralRadius",
    "__version__",
    "datasets",
    "from_files",
    "load",
    "load_compiled",
    "portable",
    "search",
    "sparsify",
]

_HOME = {
    "Checkpoint": "storage.checkpoint",
    "load_compiled": "inference.compiled",
    **dict.fromkeys(("datasets", "from_files", "load"), "data"),
    **dict.fromkeys(("GSTError", "InputError"), "base.errors"),
    "search": "after.search",
    "EdgeSet": "graph.edgeset",
    "sparsify": "api.sparsify",
    "Result": "api.result",
    "Settings": "train.settings",
}


def __getattr__(name: str) -> Any:
    """Public names and modules are loaded when they are first used: torch must not be before :func:`portable`."""
    if name in __all__:
        value = getattr(import_module(f"gst.{_HOME.get(name, 'methods')}"), name)
        globals()[name] = value
        return value
    try:
        return import_module(f"gst.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"gst.{name}":  # a module of ours that lacks one of somebody else's
            raise
        raise AttributeError(f"module 'gst' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return __all__
