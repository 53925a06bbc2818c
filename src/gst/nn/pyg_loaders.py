"""PyG's ``ClusterData`` and ``NeighborLoader`` in place of our own draws (``loader="pyg"``); they need pyg-lib.

They choose what a step sees, nothing more: gates, degrees and what a drawn neighbour stands for are ours in any case.
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
    """Whether PyG has what its loaders need; torch-sparse does as well."""
    return bool(torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE)


def clusters(edges: EdgeSet, parts: int) -> Tensor:
    """The part of every node, as ``ClusterData`` cuts the graph."""
    graph = Data(edge_index=edges.arcs.cpu(), num_nodes=edges.num_nodes)
    found = ClusterData(graph, parts, log=False).partition
    part = torch.empty(edges.num_nodes, dtype=torch.long)
    part[found.node_perm] = torch.repeat_interleave(torch.arange(parts), found.partptr.diff())
    return part


class LoaderDraws:
    """Draws of ``NeighborLoader``, in the place of :func:`gst.sparse.sampler.draw_entries`."""

    def __init__(self, neighbours: Neighbours, fanout: int) -> None:
        target = np.repeat(np.arange(neighbours.num_nodes), np.diff(neighbours.start))
        index = torch.from_numpy(np.stack([neighbours.source.astype(np.int64), target]))
        graph = Data(edge_index=index, num_nodes=neighbours.num_nodes)
        self.loader = NeighborLoader(graph, [fanout], is_sorted=True)  # sorted by target: an edge id is an entry

    def __call__(self, start: np.ndarray, rows: np.ndarray, fanout: int, seed: int) -> np.ndarray:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.loader(torch.from_numpy(rows)).e_id.sort().values.numpy()
