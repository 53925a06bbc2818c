"""A method, a backbone and a data set of another package. gst knows none of them; their entry points tell it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst import EdgeSet, TopologySparsifier, register
from gst.data.registry import Dataset, DatasetInfo
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.backbones.gcn import GCNLayer


@register("shortest")
@dataclass(kw_only=True, eq=False, repr=False)
class Shortest(TopologySparsifier):
    """Keeps the edges between nodes of nearby numbers.

    Args:
        power: of the distance.
    """

    power: float = 1.0

    reference: ClassVar[str] = "an example"

    def edge_scores(self, edges: EdgeSet) -> Tensor:
        return -((edges.pairs[0] - edges.pairs[1]).abs().double() ** self.power)


@BACKBONES.register("plain-gcn")
class PlainGCN(Backbone):
    """GCN under another name."""

    layer_class = GCNLayer


def make_ring(nodes: int = 60) -> Data:
    """A ring of nodes in two classes, which a feature tells apart."""
    ids = torch.arange(nodes)
    ends = torch.stack([ids, (ids + 1) % nodes])
    y = (ids < nodes // 2).long()
    return Data(x=torch.stack([y.float(), torch.ones(nodes)], 1), edge_index=torch.cat([ends, ends.flip(0)], 1), y=y)


ring = Dataset(DatasetInfo("ring", 60, 60, 2, 2, "accuracy", False, "random", "an example"), make=make_ring)
