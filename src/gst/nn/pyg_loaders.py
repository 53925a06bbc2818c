"""PyG's ``ClusterData`` and ``NeighborLoader`` instead of the samplers of gst (``loader="pyg"``); they need pyg-lib.

They only choose what a step sees: gates, degrees and the scaling of sampled neighbours are computed by gst in any case.
"""

import numpy as np
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, NeighborLoader

from gst.graph.edgeset import EdgeSet
from gst.sparse.neighbours import Neighbours


def installed() -> bool:
    """Whether the loaders of PyG can run: they need pyg-lib or torch-sparse."""
    return bool(torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE)


def clusters(edges: EdgeSet, parts: int) -> Tensor:
    """The cluster of every node, by ``ClusterData``."""
    graph = Data(edge_index=edges.arcs.cpu(), num_nodes=edges.num_nodes)
    partition = ClusterData(graph, parts, log=False).partition
    part = torch.empty(edges.num_nodes, dtype=torch.long)
    part[partition.node_perm] = torch.repeat_interleave(torch.arange(parts), partition.partptr.diff())
    return part


class LoaderDraws:
    """Samples neighbours by ``NeighborLoader``; a replacement for :func:`gst.sparse.sampler.draw_entries`."""

    def __init__(self, neighbours: Neighbours, fanout: int) -> None:
        target = np.repeat(np.arange(neighbours.num_nodes), np.diff(neighbours.start))
        index = torch.from_numpy(np.stack([neighbours.source.astype(np.int64), target]))
        graph = Data(edge_index=index, num_nodes=neighbours.num_nodes)
        self.loader = NeighborLoader(graph, [fanout], is_sorted=True)  # sorted by target: an edge id is an entry

    def __call__(self, start: np.ndarray, rows: np.ndarray, fanout: int, seed: int) -> np.ndarray:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.loader(torch.from_numpy(rows)).e_id.sort().values.numpy()
