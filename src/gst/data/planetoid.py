"""Citation graphs with bags of words (Yang et al., ICML 2016), through PyG's ``Planetoid``."""

from functools import partial

from torch_geometric.datasets import Planetoid

from gst.data.pyg import Source, fetch
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.splits import PLANETOID

_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def _register(name: str, nodes: int, edges: int, features: int, classes: int) -> None:
    files = tuple(f"ind.{name.lower()}.{part}" for part in _PARTS)
    source = Source(partial(Planetoid, name=name), f"{name}/raw", files)
    split = f"public: {20 * classes} train, 500 val, 1000 test"
    info = DatasetInfo(name, nodes, edges, features, classes, "accuracy", False, split, "PyG Planetoid")
    DATASETS.register(name)(Dataset(info, partial(fetch, source, info), PLANETOID, normalise_rows=True))


_register("Cora", 2708, 5278, 1433, 7)
_register("CiteSeer", 3327, 4552, 3703, 6)
_register("PubMed", 19_717, 44_324, 500, 3)
