"""What the table of data sets tells about each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetInfo:
    """One line of ``gst datasets``; sizes are the published ones, of synthetic graphs those of the defaults."""

    name: str
    nodes: int
    edges: int  # undirected pairs, or arcs of a directed graph; self-loops do not count
    features: int
    classes: int  # or labels, where a node has several
    metric: str  # "accuracy" or "rocauc"
    directed: bool
    split: str  # the default split, in words
    source: str
