"""Co-purchase and co-author graphs (Shchur et al., 2018), through PyG's ``Amazon`` and ``Coauthor``."""

from functools import partial

from torch_geometric.data import InMemoryDataset
from torch_geometric.datasets import Amazon, Coauthor

from gst.data.pyg import Source, fetch
from gst.data.registry import DATASETS, Dataset, DatasetInfo

_SPLIT = "random: 20 train and 30 val per class, rest test"


def _register(cls: type[InMemoryDataset], name: str, file: str, sizes: tuple[int, int, int, int]) -> None:
    source = Source(lambda root: cls(root, name), f"{name}/raw", (file,))
    info = DatasetInfo(name, *sizes, "accuracy", False, _SPLIT, f"PyG {cls.__name__}")
    DATASETS.register(name)(Dataset(info, partial(fetch, source, info)))


_register(Amazon, "Computers", "amazon_electronics_computers.npz", (13_752, 245_861, 767, 10))
_register(Amazon, "Photo", "amazon_electronics_photo.npz", (7650, 119_081, 745, 8))
_register(Coauthor, "CS", "ms_academic_cs.npz", (18_333, 81_894, 6805, 15))
_register(Coauthor, "Physics", "ms_academic_phy.npz", (34_493, 247_962, 8415, 5))
