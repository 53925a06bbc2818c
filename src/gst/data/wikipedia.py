"""Links between Wikipedia pages (Rozemberczki et al., 2021; Pei et al., ICLR 2020), through PyG."""

from functools import partial
from pathlib import Path

from torch_geometric.data import Data
from torch_geometric.datasets import WikipediaNetwork
from torch_geometric.utils import to_undirected

from gst.data.pyg import Source, fetch
from gst.data.registry import DATASETS, Dataset, DatasetInfo

_SPLIT = "shipped: 0 of 10 (48/32/20 %)"


def _register(name: str, nodes: int, edges: int, features: int, columns: int) -> None:
    stem = name.lower()
    splits = tuple(f"{stem}_split_0.6_0.2_{i}.npz" for i in range(10))
    files = ("out1_node_feature_label.txt", "out1_graph_edges.txt", *splits)
    open_pyg = partial(WikipediaNetwork, name=stem, geom_gcn_preprocess=True)
    source = Source(open_pyg, f"{stem}/geom_gcn/raw", files, columns)
    info = DatasetInfo(name, nodes, edges, features, 5, "accuracy", False, _SPLIT, "PyG Wikipedia")
    DATASETS.register(name)(Dataset(info, partial(_links, source, info)))


def _links(source: Source, info: DatasetInfo, root: Path, directed: int = 0) -> Data:
    """Links in both directions unless ``directed``: the published results of GCN are on the undirected graph."""
    data = fetch(source, info, root)
    if not directed:
        data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)
    return data


_register("Chameleon", 2277, 31_371, 2325, columns=36_101)
_register("Squirrel", 5201, 198_353, 2089, columns=217_073)
