"""Data sets by name: each registers itself in the file that loads it.

Another package adds one by an entry point of the group ``gst.datasets`` that names a :class:`Dataset` and has the name
in its ``info``. For ``RINGS = Dataset(DatasetInfo("rings", …), make=rings)`` in ``my_package/rings.py``::

    [project.entry-points."gst.datasets"]
    rings = "my_package.rings:RINGS"
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gst.base.names import normalise_name
from gst.base.registry import Registry
from gst.data.splits import RANDOM, Sizes


@dataclass(frozen=True)
class DatasetInfo:
    """One line of ``gst datasets``; sizes are the published ones, those of synthetic graphs are of the defaults."""

    name: str
    nodes: int
    edges: int  # undirected pairs, or arcs of a directed graph; self-loops do not count
    features: int
    classes: int  # or labels, where a node has several
    metric: str  # "accuracy", "rocauc" or "f1"
    directed: bool
    split: str  # the default split, for people
    source: str


@dataclass(frozen=True)
class Dataset:
    """What an entry of :data:`DATASETS` is.

    Args:
        info: its row of ``gst datasets``.
        make: returns a ``HeteroData``, or a ``Data`` with ``x``, ``y``, ``edge_index`` and, where the data set ships
            splits, the three masks [N] or [N, S]. A parameter ``root`` receives the data root, a ``Path``; every other
            parameter has a number as its default and is an option that users set (``"rings:nodes=200"``).
        sizes: of its random splits.
        normalise_rows: divide each row of ``x`` by its sum, as the published results on Planetoid do.
    """

    info: DatasetInfo
    make: Callable[..., Any]
    sizes: Sizes = RANDOM
    normalise_rows: bool = False

    @property
    def options(self) -> dict[str, int | float]:
        """Names and defaults of the options of ``make``."""
        return {name: option.default for name, option in signature(self.make).parameters.items() if name != "root"}

    def build(self, root: Path, **options: int | float) -> Any:
        """The graph as ``make`` returns it, rows normalised where that is asked for."""
        needs_root = "root" in signature(self.make).parameters
        data = self.make(**options, root=root) if needs_root else self.make(**options)
        if self.normalise_rows:
            data.x = data.x / data.x.sum(dim=1, keepdim=True).clamp(min=1)
        return data


DATASETS = Registry[Dataset]("data set", "gst.datasets")


def datasets() -> list[DatasetInfo]:
    """Every registered data set, in the order of registration.

    >>> import gst
    >>> {info.name: info.edges for info in gst.datasets()}["Cora"]
    5278
    """
    return [dataset.info for dataset in DATASETS.values()]


def published_name(data: Data) -> str | None:
    """The name that a graph carries; None if it is that of a registered data set with another number of features.

    >>> from torch import zeros
    >>> published_name(Data(name="Physics", x=zeros(3, 8415))), published_name(Data(name="physics", x=zeros(3, 7)))
    ('Physics', None)
    """
    name, x = data.get("name"), data.get("x")
    plain = normalise_name(str(name).partition(":")[0])
    dataset = next((dataset for known, dataset in DATASETS.items() if normalise_name(known) == plain), None)
    if dataset is None or "features" in dataset.options or x is None:
        return name
    return name if x.shape[-1] == dataset.info.features else None
