"""Graph Sparse Training: fewer edges, same answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gst.base.processor import portable
from gst.base.version import __version__

if TYPE_CHECKING:
    from gst.after.search import search
    from gst.api.sparsify import sparsify
    from gst.base.errors import (
        AgreementWarning,
        CostWarning,
        DamagedError,
        DataWarning,
        DivergedError,
        GSTError,
        InputError,
        InterruptedRunError,
    )
    from gst.data import datasets, from_files, link_split, load
    from gst.graph.edgeset import EdgeSet
    from gst.inference.compiled import load_compiled
    from gst.inference.serving import load_engine
    from gst.methods import (
        GST,
        MEST,
        SCAN,
        SET,
        SNFS,
        SNIP,
        UGS,
        WDGLT,
        Attribution,
        Deploy,
        DSpar,
        EffectiveResistance,
        ImportanceScores,
        KNeighbor,
        LearnedSparsifier,
        LocalSimilarity,
        MGSpar,
        NeuralSparse,
        Random,
        Result,
        Retrain,
        RigL,
        Sparsifier,
        SpectralRadius,
        TopologySparsifier,
        register,
    )
    from gst.storage.checkpoint import Checkpoint
    from gst.storage.signals import graceful
    from gst.train.callbacks import Callback
    from gst.train.trackers import MLflow, TensorBoard, WandB
    from gst.train.trainer import Progress

__all__ = [
    "GST",
    "MEST",
    "SCAN",
    "SET",
    "SNFS",
    "SNIP",
    "UGS",
    "WDGLT",
    "AgreementWarning",
    "Attribution",
    "Callback",
    "Checkpoint",
    "CostWarning",
    "DSpar",
    "DamagedError",
    "DataWarning",
    "Deploy",
    "DivergedError",
    "EdgeSet",
    "EffectiveResistance",
    "GSTError",
    "ImportanceScores",
    "InputError",
    "InterruptedRunError",
    "KNeighbor",
    "LearnedSparsifier",
    "LocalSimilarity",
    "MGSpar",
    "MLflow",
    "NeuralSparse",
    "Progress",
    "Random",
    "Result",
    "Retrain",
    "RigL",
    "Sparsifier",
    "SpectralRadius",
    "TensorBoard",
    "TopologySparsifier",
    "WandB",
    "__version__",
    "datasets",
    "from_files",
    "graceful",
    "link_split",
    "load",
    "load_compiled",
    "load_engine",
    "portable",
    "register",
    "search",
    "sparsify",
]

_HOME = {  # the module of every public name; all others are methods
    "Callback": "train.callbacks",
    "Checkpoint": "storage.checkpoint",
    "EdgeSet": "graph.edgeset",
    "Progress": "train.trainer",
    "graceful": "storage.signals",
    "load_compiled": "inference.compiled",
    "load_engine": "inference.serving",
    "search": "after.search",
    "sparsify": "api.sparsify",
    **dict.fromkeys(("MLflow", "TensorBoard", "WandB"), "train.trackers"),
    **dict.fromkeys(("datasets", "from_files", "link_split", "load"), "data"),
    **dict.fromkeys(
        (
            "AgreementWarning",
            "CostWarning",
            "DamagedError",
            "DataWarning",
            "DivergedError",
            "GSTError",
            "InputError",
            "InterruptedRunError",
        ),
        "base.errors",
    ),
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
