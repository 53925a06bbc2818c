"""Every data set that has a name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from pathlib import Path

from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import Amazon, Coauthor, HeterophilousGraphDataset, Planetoid, WikipediaNetwork
from torch_geometric.utils import to_undirected

from gst.base.names import normal
from gst.data import ogb
from gst.data.digits import digits
from gst.data.info import DatasetInfo
from gst.data.ogb_twins import twin
from gst.data.published import PUBLISHED, Published
from gst.data.pyg import Source, fetch
from gst.data.splits import PLANETOID, RANDOM, Sizes
from gst.data.synthetic import synthetic


@dataclass(frozen=True)
class Entry:
    """A data set: what is known of it, how to make it and how large its random splits are."""

    info: DatasetInfo
    make: Callable[..., Data]  # the data root first, then the options
    sizes: Sizes
    options: Mapping[str, int | float] = field(default_factory=dict)  # names and defaults
    words: bool = False  # x counts words: rows are divided by their sum, as the published numbers of Planetoid have it


def _published(source: Source, info: DatasetInfo, sizes: Sizes = RANDOM, *, words: bool = False) -> Entry:
    return Entry(info, partial(fetch, source, info), sizes, words=words)


def _planetoid(name: str, nodes: int, edges: int, features: int, classes: int) -> Entry:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name.lower()}.{part}" for part in parts)
    split = f"public: {20 * classes} train, 500 val, 1000 test"
    info = DatasetInfo(name, nodes, edges, features, classes, "accuracy", False, split, "PyG Planetoid")
    return _published(Source(partial(Planetoid, name=name), f"{name}/raw", files), info, PLANETOID, words=True)


def _gnn_benchmark(cls: type[InMemoryDataset], name: str, file: str, size: tuple[int, int, int, int]) -> Entry:
    split = "random: 20 train and 30 val a class, rest test"
    info = DatasetInfo(name, *size, "accuracy", False, split, f"PyG {cls.__name__}")
    return _published(Source(lambda root: cls(root, name), f"{name}/raw", (file,)), info)


def _heterophilous(name: str, nodes: int, edges: int, features: int, classes: int = 2) -> Entry:
    low = name.lower().replace("-", "_")
    split, metric = "shipped: 0 of 10 (50/25/25 %)", "rocauc" if classes == 2 else "accuracy"
    info = DatasetInfo(name, nodes, edges, features, classes, metric, False, split, "PyG Heterophilous")
    source = Source(partial(HeterophilousGraphDataset, name=name), f"{low}/raw", (f"{low}.npz",))
    return _published(source, info)


def _wikipedia(name: str, nodes: int, edges: int, features: int, columns: int) -> Entry:
    low = name.lower()
    splits = tuple(f"{low}_split_0.6_0.2_{i}.npz" for i in range(10))
    files = ("out1_node_feature_label.txt", "out1_graph_edges.txt", *splits)
    opener = partial(WikipediaNetwork, name=low, geom_gcn_preprocess=True)
    split = "shipped: 0 of 10 (48/32/20 %)"
    info = DatasetInfo(name, nodes, edges, features, 5, "accuracy", False, split, "PyG Wikipedia")
    make = partial(_links, Source(opener, f"{low}/geom_gcn/raw", files, columns), info)
    return Entry(info, make, RANDOM, {"directed": 0})


def _links(source: Source, info: DatasetInfo, root: Path, directed: int = 0) -> Data:
    """Links between pages, both ways unless ``directed``: what the published numbers of GCN are measured on."""
    data = fetch(source, info, root)
    if not directed:
        data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)
    return data


def _digits() -> Entry:
    split = "random: 5 train a class, 500 val, rest test"
    info = DatasetInfo("digits", 1797, 12_535, 64, 10, "accuracy", False, split, "embedded")
    return Entry(info, lambda _, **options: digits(**options), Sizes(train=5, val=500), _defaults(digits))


def _synthetic() -> Entry:
    split = "random: 20 train a class, 500 val, rest test"
    info = DatasetInfo("synthetic", 2000, 10_000, 32, 5, "accuracy", False, split, "block model")
    return Entry(info, lambda _, **options: synthetic(**options), Sizes(train=20, val=500), _defaults(synthetic))


def _defaults(make: Callable[..., Data]) -> dict[str, int | float]:
    return {name: option.default for name, option in signature(make).parameters.items()}


def _ogb(of: Published) -> Entry:
    size, split = (
        (of.nodes, of.edges, of.features, of.classes),
        f"official: {of.shares} by {of.split.replace('_', ' ')}",
    )
    info = DatasetInfo(f"ogbn-{of.name}", *size, of.metric, False, split, "OGB")
    return Entry(info, partial(ogb.fetch, of), RANDOM)


def _twin(of: Published) -> Entry:
    size, split = (of.nodes, of.rows, of.features, of.classes), f"drawn with the graph: {of.shares}"
    info = DatasetInfo(f"synthetic-{of.name}", *size, of.metric, False, split, "block model")
    return Entry(info, lambda _, **options: twin(of, **options), RANDOM, {"scale": 1.0, "seed": 0})


ENTRIES: dict[str, Entry] = {
    entry.info.name: entry
    for entry in (
        _digits(),
        _planetoid("Cora", 2708, 5278, 1433, 7),
        _planetoid("CiteSeer", 3327, 4552, 3703, 6),
        _planetoid("PubMed", 19_717, 44_324, 500, 3),
        _gnn_benchmark(Amazon, "Computers", "amazon_electronics_computers.npz", (13_752, 245_861, 767, 10)),
        _gnn_benchmark(Amazon, "Photo", "amazon_electronics_photo.npz", (7650, 119_081, 745, 8)),
        _gnn_benchmark(Coauthor, "CS", "ms_academic_cs.npz", (18_333, 81_894, 6805, 15)),
        _gnn_benchmark(Coauthor, "Physics", "ms_academic_phy.npz", (34_493, 247_962, 8415, 5)),
        _heterophilous("Tolokers", 11_758, 519_000, 10),
        _heterophilous("Minesweeper", 10_000, 39_402, 7),
        _heterophilous("Questions", 48_921, 153_540, 301),
        _heterophilous("Roman-empire", 22_662, 32_927, 300, 18),
        _heterophilous("Amazon-ratings", 24_492, 93_050, 300, 5),
        _wikipedia("Chameleon", 2277, 31_371, 2325, columns=36_101),
        _wikipedia("Squirrel", 5201, 198_353, 2089, columns=217_073),
        *map(_ogb, PUBLISHED),
        _synthetic(),
        *map(_twin, PUBLISHED),
    )
}


def datasets() -> list[DatasetInfo]:
    """Every registered data set, in the order of the table."""
    return [entry.info for entry in ENTRIES.values()]


def published_name(data: Data) -> str | None:
    """The name that a graph carries; None where it is one's own and merely has the name: its features are others.

    >>> from torch import zeros
    >>> published_name(Data(name="Physics", x=zeros(3, 8415))), published_name(Data(name="physics", x=zeros(3, 7)))
    ('Physics', None)
    """
    name, x = data.get("name"), data.get("x")
    plain = normal(str(name).partition(":")[0])
    entry = next((entry for known, entry in ENTRIES.items() if normal(known) == plain), None)
    if entry is None or "features" in entry.options or x is None:
        return name
    return name if x.shape[-1] == entry.info.features else None
