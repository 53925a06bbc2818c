"""Graph Sparse Training: fewer edges, same answers."""

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
from gst.version import __version__

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
    "search",
    "sparsify",
]
