"""Graph Sparse Training: fewer edges, same answers."""

from gst.data import datasets, from_files, load
from gst.errors import GSTError, InputError
from gst.graph import EdgeSet
from gst.protocol import sparsify
from gst.result import Result
from gst.settings import Settings
from gst.sparsifiers import GST, Random
from gst.version import __version__

__all__ = [
    "GST",
    "EdgeSet",
    "GSTError",
    "InputError",
    "Random",
    "Result",
    "Settings",
    "__version__",
    "datasets",
    "from_files",
    "load",
    "sparsify",
]
