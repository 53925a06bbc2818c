"""GCN: Kipf & Welling, Semi-supervised classification with graph convolutional networks, ICLR 2017."""

import torch
from torch import Tensor

from gst.nn.backbones.base import BACKBONES, Backbone
from gst.nn.layers import Layer


class GCNLayer(Layer):
    r"""A graph convolution whose normalisation is computed from the gated values.

    .. math:: D̃^{-1/2} (A ∘ m ∘ g + I) D̃^{-1/2} X W + b

    A self-loop of the data replaces the one from I, as in PyG.
    """

    norm = "symmetric"
    fixed_diagonal = True

    def diagonal(self, loops: Tensor) -> Tensor:
        return torch.where(loops > 0, loops, 1.0)


@BACKBONES.register("gcn")
class GCN(Backbone):
    """Graph convolutional network."""

    layer_class = GCNLayer
