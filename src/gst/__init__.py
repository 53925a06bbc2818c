"""Graph Sparse Training: fewer edges, same answers."""

from gst.data import datasets, from_files, load
from gst.errors import GSTError, InputError
from gst.graph import EdgeSet
from gst.protocol import sparsify
from gst.result import Result
from gst.settings import Settings
from gst.sparsifiers import (
    GST,
    SCAN,
    DSpar,
    EffectiveResistance,
    ImportanceScores,
    LocalSimilarity,
    Random,
    SpectralRadius,
)
from gst.version import __version__

__all__ = [
    "GST",
    "SCAN",
    "DSpar",
    "EdgeSet",
    "EffectiveResistance",
    "GSTError",
    "ImportanceScores",
    "InputError",
    "LocalSimilarity",
    "Random",
    "Result",
    "Settings",
    "SpectralRadius",
    "__version__",
    "datasets",
    "from_files",
    "load",
    "sparsify",
]
