"""GraphSAGE: Hamilton et al., Inductive representation learning on large graphs, NeurIPS 2017."""

from gst.nn.backbones.base import BACKBONES, Backbone
from gst.nn.layers import Layer


class SAGELayer(Layer):
    r"""The mean over the remaining neighbours, weighted if the data has edge weights, beside the node itself.

    .. math:: \frac{\sum_j m_{ij} g_{ij} x_j}{\sum_j m_{ij} g_{ij}} W + x_i W_{root} + b

    """

    norm = "mean"
    fixed_diagonal = True

    def __init__(self, inputs: int, outputs: int, *, residual: bool = True) -> None:
        super().__init__(inputs, outputs, residual=residual)


@BACKBONES.register("sage")
class SAGE(Backbone):
    """GraphSAGE with the mean."""

    layer_class = SAGELayer
    always_residual = True
