"""The methods, one short file each. Adding one is such a file and one line here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gst.sparsifiers.base import LearnedSparsifier, TopologySparsifier
from gst.sparsifiers.gst import GST
from gst.sparsifiers.random import Random


@dataclass(frozen=True)
class Method:
    """A row of ``gst methods``."""

    make: Callable[..., Any]
    kind: str  # "topology": a TopologySparsifier, scores the graph alone; "learned": a LearnedSparsifier, trains
    needs_labels: bool
    needs_model: bool
    complexity: str
    reference: str


METHODS = {
    "gst": Method(GST, "learned", True, True, "O((E+D)·(|E|·h + N·F·h))", "Zhang et al., ICML 2024"),
    "random": Method(Random, "topology", False, False, "O(|E|)", "baseline"),
}

__all__ = ["GST", "METHODS", "LearnedSparsifier", "Method", "Random", "TopologySparsifier"]
