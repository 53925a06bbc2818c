"""Cluster-GCN: Chiang et al., KDD 2019, with the layer of PyG's ``ClusterGCNConv``."""

import torch
from torch import Tensor

from gst.nn.backbones.base import BACKBONES, Backbone
from gst.nn.backbones.sage import SAGELayer


class ClusterGCNLayer(SAGELayer):
    r"""A mean in which every node is its own neighbour, with value 1 whether the data has a self-loop or not.

    .. math:: D̃^{-1} (A ∘ m ∘ g + I) X W + X W_{root} + b

    """

    def diagonal(self, loops: Tensor) -> Tensor:
        return torch.ones_like(loops)


@BACKBONES.register("cluster-gcn")
class ClusterGCN(Backbone):
    """The network of Cluster-GCN."""

    layer_class = ClusterGCNLayer
    always_residual = True
