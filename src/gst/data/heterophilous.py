"""Graphs whose neighbours often differ in class (Platonov et al., ICLR 2023), through PyG."""

from functools import partial

from torch_geometric.datasets import HeterophilousGraphDataset

from gst.data.pyg import Source, fetch
from gst.data.registry import DATASETS, Dataset, DatasetInfo

_SPLIT = "shipped: 0 of 10 (50/25/25 %)"


def _register(name: str, nodes: int, edges: int, features: int, classes: int) -> None:
    stem = name.lower().replace("-", "_")
    source = Source(partial(HeterophilousGraphDataset, name=name), f"{stem}/raw", (f"{stem}.npz",))
    metric = "rocauc" if classes == 2 else "accuracy"
    info = DatasetInfo(name, nodes, edges, features, classes, metric, False, _SPLIT, "PyG Heterophilous")
    DATASETS.register(name)(Dataset(info, partial(fetch, source, info)))


_register("Tolokers", 11_758, 519_000, 10, 2)
_register("Minesweeper", 10_000, 39_402, 7, 2)
_register("Questions", 48_921, 153_540, 301, 2)
_register("Roman-empire", 22_662, 32_927, 300, 18)
_register("Amazon-ratings", 24_492, 93_050, 300, 5)
