"""The methods, one short file each. Adding one is such a file and one line here."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gst.methods.base import LearnedSparsifier, TopologySparsifier
from gst.methods.dspar import DSpar
from gst.methods.dst import MEST, SET, SNFS, SNIP, RigL
from gst.methods.effective_resistance import EffectiveResistance
from gst.methods.gst import GST
from gst.methods.importance import ImportanceScores
from gst.methods.local_similarity import LocalSimilarity
from gst.methods.mgspar import MGSpar
from gst.methods.random import Random
from gst.methods.scan import SCAN
from gst.methods.spectral_radius import SpectralRadius
from gst.methods.ugs import UGS
from gst.methods.wdglt import WDGLT


@dataclass(frozen=True)
class Method:
    """A row of ``gst methods``."""

    make: Callable[..., Any]
    kind: str  # "topology": a TopologySparsifier, scores the graph alone; "learned": a LearnedSparsifier, trains
    needs_labels: bool
    needs_model: bool
    complexity: str  # of a learned method in epochs, each O(|E|·h + N·F·h)
    reference: str

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The method's own arguments by name: those that are neither the protocol's nor settings of training."""
        bases = (LearnedSparsifier, TopologySparsifier)
        shared = {name for base in bases for name in inspect.signature(base).parameters}
        given = inspect.signature(self.make).parameters.values()
        return {p.name: p for p in given if p.kind is p.KEYWORD_ONLY and p.name not in shared}


METHODS = {
    "gst": Method(GST, "learned", True, True, "E + D epochs", "Zhang et al., ICML 2024"),
    "random": Method(Random, "topology", False, False, "O(|E|)", "baseline"),
    "scan": Method(SCAN, "topology", False, False, "O(|E|^1.5)", "Xu et al., KDD 2007"),
    "local-similarity": Method(LocalSimilarity, "topology", False, False, "O(|E|^1.5)", "Satuluri et al., SIGMOD 2011"),
    "dspar": Method(DSpar, "topology", False, False, "O(|E|)", "Liu et al., TMLR 2023"),
    "effective-resistance": Method(
        EffectiveResistance, "topology", False, False, "128 solves", "Spielman & Srivastava, STOC 2008"
    ),
    "spectral-radius": Method(SpectralRadius, "topology", False, False, "O(|E|·steps)", "Restrepo et al., PRL 2006"),
    "ugs": Method(UGS, "learned", True, True, "rounds · epochs", "Chen et al., ICML 2021"),
    "wd-glt": Method(WDGLT, "learned", True, True, "rounds · epochs", "Hui et al., ICLR 2023"),
    "mgspar": Method(MGSpar, "learned", True, True, "stages · T epochs", "Wan, ICDE 2021"),
    "snip": Method(SNIP, "learned", True, True, "E + D epochs", "Lee et al., ICLR 2019"),
    "set": Method(SET, "learned", True, True, "E + D epochs", "Mocanu et al., Nat. Commun. 2018"),
    "snfs": Method(SNFS, "learned", True, True, "E + D epochs", "Dettmers & Zettlemoyer, 2019"),
    "rigl": Method(RigL, "learned", True, True, "E + D epochs", "Evci et al., ICML 2020"),
    "mest": Method(MEST, "learned", True, True, "E + D epochs", "Yuan et al., NeurIPS 2021"),
}

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
    "DSpar",
    "EffectiveResistance",
    "ImportanceScores",
    "LearnedSparsifier",
    "LocalSimilarity",
    "MGSpar",
    "Method",
    "Random",
    "RigL",
    "SpectralRadius",
    "TopologySparsifier",
]
