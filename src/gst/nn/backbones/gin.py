"""GIN: Xu et al., How powerful are graph neural networks?, ICLR 2019."""

import torch
from torch import Tensor, nn

from gst.nn.backbones.base import BACKBONES, Backbone
from gst.nn.layers import Layer


class GINLayer(Layer):
    r"""A sum with a trainable ε and a one-layer perceptron.

    .. math:: \Big((1 + ε) x_i + \sum_j m_{ij} g_{ij} x_j\Big) W + b

    """

    norm = "sum"

    def __init__(self, inputs: int, outputs: int, *, residual: bool = False) -> None:
        super().__init__(inputs, outputs, residual=residual)
        self.eps = nn.Parameter(torch.zeros(()))

    def diagonal(self, loops: Tensor) -> Tensor:
        return loops + 1 + self.eps.to(loops.device)


@BACKBONES.register("gin")
class GIN(Backbone):
    """Graph isomorphism network."""

    layer_class = GINLayer
