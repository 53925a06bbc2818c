"""The methods, one short file each, which register themselves; to import one here is to have it in ``gst methods``."""

from gst.methods.attribution import Attribution
from gst.methods.base import LearnedSparsifier, Sparsifier, TopologySparsifier
from gst.methods.deploy import Deploy
from gst.methods.dspar import DSpar
from gst.methods.dynamic import DynamicSparsifier
from gst.methods.effective_resistance import EffectiveResistance
from gst.methods.found import Found
from gst.methods.gst import GST
from gst.methods.importance import ImportanceScores
from gst.methods.k_neighbor import KNeighbor
from gst.methods.local_similarity import LocalSimilarity
from gst.methods.mest import MEST
from gst.methods.mgspar import MGSpar
from gst.methods.neural_sparse import NeuralSparse
from gst.methods.random import Random
from gst.methods.registry import METHODS, register
from gst.methods.result import Result
from gst.methods.retrain import Retrain
from gst.methods.rigl import RigL
from gst.methods.scan import SCAN
from gst.methods.set import SET
from gst.methods.snfs import SNFS
from gst.methods.snip import SNIP
from gst.methods.spectral_radius import SpectralRadius
from gst.methods.ugs import UGS
from gst.methods.wdglt import WDGLT

__all__ = [
    "GST",
    "MEST",
    "METHODS",
    "SCAN",
    "SET",
    "SNFS",
    "SNIP",
    "UGS",
    "WDGLT",
    "Attribution",
    "DSpar",
    "Deploy",
    "DynamicSparsifier",
    "EffectiveResistance",
    "Found",
    "ImportanceScores",
    "KNeighbor",
    "LearnedSparsifier",
    "LocalSimilarity",
    "MGSpar",
    "NeuralSparse",
    "Random",
    "Result",
    "Retrain",
    "RigL",
    "Sparsifier",
    "SpectralRadius",
    "TopologySparsifier",
    "register",
]
