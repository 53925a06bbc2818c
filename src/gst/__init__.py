"""Graph Sparse Training: fewer edges, same answers."""

from gst.checkpoint import Checkpoint
from gst.compiled import load_compiled
from gst.data import datasets, from_files, load
from gst.errors import GSTError, InputError
from gst.graph import EdgeSet
from gst.protocol import sparsify
from gst.result import Result
from gst.settings import Settings
from gst.sparsifiers import (
    GST,
    SCAN,
    UGS,
    WDGLT,
    DSpar,
    EffectiveResistance,
    ImportanceScores,
    LocalSimilarity,
    MGSpar,
    Random,
    SpectralRadius,
)
from gst.version import __version__

__all__ = [
    "GST",
    "SCAN",
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
    "Settings",
    "SpectralRadius",
    "__version__",
    "datasets",
    "from_files",
    "load",
    "load_compiled",
    "sparsify",
]
