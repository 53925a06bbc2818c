"""Exact logits of a large graph, and their exact gradient in every edge, layer after layer and in runs of rows.

A receptive field grows with every layer until it is the whole graph; a layer at a time, the work is that of a full
batch and the memory O(N·H + one run). Under ``torch.distributed`` the runs are dealt to the workers.
"""

from collections.abc import Callable, Iterator
from typing import cast

import torch
from torch import Tensor

from gst.base import distributed
from gst.graph.edgeset import EdgeSet
from gst.nn.backbones import Backbone
from gst.nn.features import Features, SharedFeatures
from gst.sparse.neighbours import LocalBlock
from gst.sparse.shared_grad import Shared, room, token

RUN = 1 << 18  # arcs read at once: what is held of each stays in the caches


def layerwise_logits(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor | None = None, nodes: Tensor | None = None
) -> Tensor:
    """Evaluation-mode logits on these edges, each with its value (None: 1), of some nodes (sorted ids) or all."""
    module.eval()
    logits = _forward(module, x, edges, values, nodes)[-1]
    return logits if nodes is None else logits[nodes]


def edge_gradient(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor, loss: Callable[[Tensor], Tensor]
) -> Tensor:
    """∂ loss(logits of all nodes) / ∂ values, in evaluation mode, of every edge: also of those whose value is 0."""
    module.eval()
    degree = Shared.of(edges.neighbours.degree(values, values.dtype), token(True))
    inputs = _forward(module, x, edges, values, None)
    logits = inputs.pop().requires_grad_()
    slope = torch.autograd.grad(loss(logits), logits)[0]
    del logits
    to_values = torch.zeros_like(values)
    for number in reversed(range(len(module.layers))):
        before = inputs.pop() if number else None
        fed = x if before is None else _read(module, number, before)
        given = SharedFeatures(fed, slope=number > 0, known=True)
        for run, block in _runs(edges, None):
            leaves = [values[block.edge].requires_grad_(), degree.token, given.token]
            out = module.layers[number](given, block.with_degree(degree), leaves[0])
            wanted = [leaf for leaf in leaves if leaf.requires_grad]
            to_values.index_add_(0, block.edge, torch.autograd.grad(out, wanted, slope[run], allow_unused=True)[0])
        if before is not None:
            slope = _through(module, number, before, distributed.sum_(given.slope()))
    assert degree.slope is not None
    return distributed.sum_(to_values).add_(_through_degrees(edges, distributed.sum_(degree.slope)))


@torch.no_grad()
def _forward(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor | None, nodes: Tensor | None
) -> list[Tensor]:
    """What every layer gives, activated where nothing is normalised before; rows that no output reads are void."""
    dtype = next(module.parameters()).dtype
    degree = Shared.of(edges.neighbours.degree(values, dtype), token(False))
    wanted: list[Tensor | None] = [nodes]
    for _ in module.layers[1:]:
        wanted.insert(0, None if wanted[0] is None else edges.neighbours.reached(wanted[0]))
    outputs: list[Tensor] = []
    for number, (layer, asked) in enumerate(zip(module.layers, wanted, strict=True)):
        given = SharedFeatures(_read(module, number, outputs[-1]) if outputs else x)
        final = bool(module.norms) or layer is module.layers[-1]
        out = room(degree.value, edges.num_nodes, cast(Tensor, layer.bias).numel())
        for run, block in _runs(edges, asked):
            value = None if values is None else values[block.edge]
            found = layer(given, block.with_degree(degree), value)
            out[run] = found if final else module.activation(found)
        outputs.append(distributed.sum_(out))
    return outputs


@torch.no_grad()
def _read(module: Backbone, number: int, before: Tensor) -> Tensor:
    """What a layer reads of what the one before it gave."""
    return module.between(number - 1, before) if module.norms else before


def _through(module: Backbone, number: int, before: Tensor, slope: Tensor) -> Tensor:
    """The slope in what the layer before gave, from the one in what this layer read; both are used up."""
    if not module.norms:
        return module.through_activation(slope, before)
    before.requires_grad_()
    return torch.autograd.grad(module.between(number - 1, before), before, slope)[0]


def _runs(edges: EdgeSet, nodes: Tensor | None) -> Iterator[tuple[Tensor, LocalBlock]]:
    """This worker's runs of rows, each with what it reads."""
    if nodes is None:
        nodes = torch.arange(edges.num_nodes, device=edges.loops.device)
    runs = edges.neighbours.chunks(nodes, RUN, distributed.size())
    for run in runs[distributed.rank() :: distributed.size()]:
        yield run, edges.neighbours.run(run)


def _through_degrees(edges: EdgeSet, to_degree: Tensor) -> Tensor:
    """What a slope in the degrees is in the values: an arc adds its weight to the degree of its target."""
    u, v = edges.pairs
    forward = to_degree[v] if edges.weights is None else to_degree[v] * edges.weights[0].to(to_degree.dtype)
    if edges.directed:
        return forward
    backward = to_degree[u] if edges.weights is None else to_degree[u] * edges.weights[1].to(to_degree.dtype)
    return forward.add_(backward)
