"""A backbone of described layers as the arrays of an engine."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gst.inference.serving.arrays import ELU, LINEAR, MEAN, RELU, SUM, SYMMETRIC, Network, Nodes, Rows
from gst.inference.serving.rows import ChangingRows
from gst.nn.backbones import Backbone

NORMS = {"sum": SUM, "mean": MEAN, "symmetric": SYMMETRIC}


def is_native(model: nn.Module) -> bool:
    """Whether the kernels cover a model: a backbone of described layers in float32, with ReLU or ELU between them."""
    return (
        isinstance(model, Backbone)
        and model.described
        and all(parameter.dtype == torch.float32 for parameter in model.parameters())
        and _activation(model) is not None
    )


def _activation(model: Backbone) -> int | None:
    for kind, functions in ((RELU, (torch.relu, functional.relu)), (ELU, (functional.elu,))):
        if model.activation in functions:
            return kind
    return None


class _Numbers:
    """Parameters one after another in one array."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []
        self.used = 0

    def add(self, *tensors: Tensor | None) -> int:
        """Where these start; −1 if there are none."""
        given = [tensor for tensor in tensors if tensor is not None]
        if not given:
            return -1
        start = self.used
        for tensor in given:
            self.parts.append(tensor.detach().cpu().float().numpy().ravel())
            self.used += self.parts[-1].size
        return start


def describe(model: Backbone) -> Network:
    """The layers, norms and activations of a native backbone."""
    stack, numbers = model.stack, _Numbers()
    last, activation = len(stack) - 1, _activation(model)
    norms: list[nn.LayerNorm | None] = [*model.norms, *[None] * len(stack)][: len(stack)]  # type: ignore[list-item]
    described = []
    for i, (layer, norm) in enumerate(zip(stack, norms, strict=True)):
        attention = layer.attention
        described.append(
            (
                NORMS[layer.norm],
                0 if attention is None else attention[0].shape[0],
                LINEAR if i == last or activation is None else activation,
                numbers.add(layer.weight),
                numbers.add(layer.bias),
                numbers.add(layer.root),
                -1 if attention is None else numbers.add(*attention),
                -1 if norm is None else numbers.add(norm.weight, norm.bias),
            )
        )
    fields = [np.array(column, np.int64) for column in zip(*described, strict=True)]
    width = np.array([stack[0].weight.shape[0], *(layer.weight.shape[1] for layer in stack)], np.int64)
    epsilon = np.array([1e-5 if norm is None else norm.eps for norm in norms], np.float32)
    return Network._make([width, *fields, epsilon, np.concatenate(numbers.parts)])


@torch.no_grad()
def own_values(model: Backbone, loops: Tensor) -> np.ndarray:
    """[L, nodes] the value of each node in its own sum, given the weights of the data's self-loops."""
    return np.stack([layer.diagonal(loops.cpu()).float().numpy() for layer in model.stack])


def node_values(network: Network, arcs: Rows, own: np.ndarray, num_nodes: int, floor: float) -> Nodes:
    """What all layers know of all nodes; ``floor``: the least divisor of a mean."""
    nodes = Nodes(own, np.ones_like(own))
    start, _, value = ChangingRows(arcs).packed(num_nodes)
    ids = np.repeat(np.arange(num_nodes), np.diff(start))
    sums = np.bincount(ids, value if value.size else None, num_nodes).astype(np.float64)
    for layer, norm in enumerate(network.norm):
        nodes.scale[layer, :num_nodes] = row_scale(int(norm), sums + own[layer, :num_nodes], floor)
    return nodes


def row_scale(norm: int, sums: np.ndarray, floor: float) -> np.ndarray:
    """1 / Σ for means and 1 / √Σ for the symmetric norm, from the sums of rows; 0 where nothing is summed."""
    if norm == SUM:
        return np.ones(sums.shape, np.float32)
    if norm == MEAN:
        return (1 / np.maximum(sums, floor)).astype(np.float32)
    return np.where(sums > 0, 1 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0).astype(np.float32)
