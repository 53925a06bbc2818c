"""Graph Sparse Training: fewer edges, same answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gst.processor import portable
from gst.version import __version__

if TYPE_CHECKING:
    from gst.checkpoint import Checkpoint
    from gst.compiled import load_compiled
    from gst.data import datasets, from_files, load
    from gst.errors import GSTError, InputError
    from gst.extreme import search
    from gst.graph import EdgeSet
    from gst.protocol import sparsify
    from gst.result import Result
    from gst.settings import Settings
    from gst.sparsifiers import (
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
    "Checkpoint": "checkpoint",
    "load_compiled": "compiled",
    **dict.fromkeys(("datasets", "from_files", "load"), "data"),
    **dict.fromkeys(("GSTError", "InputError"), "errors"),
    "search": "extreme",
    "EdgeSet": "graph",
    "sparsify": "protocol",
    "Result": "result",
    "Settings": "settings",
}


def __getattr__(name: str) -> Any:
    """Public names and modules are loaded when they are first used: torch must not be before :func:`portable`."""
    if name in __all__:
        value = getattr(import_module(f"gst.{_HOME.get(name, 'sparsifiers')}"), name)
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
