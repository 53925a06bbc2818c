"""Exact logits of a large graph, and their exact gradient in every edge, layer after layer and in runs of rows.

A receptive field grows with every layer until it is the whole graph; a layer at a time, the work is that of a full
batch and the memory O(N·H + one run). Under ``torch.distributed`` the runs are dealt to the workers.
"""

from collections.abc import Callable, Iterator
from typing import cast

import torch
from torch import Tensor

from gst import distributed
from gst.graph import EdgeSet
from gst.nn.backbones import Backbone
from gst.nn.features import Features, rows
from gst.nn.neighbours import LocalBlock

RUN = 1 << 21  # arcs read at once


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
    degree = edges.neighbours.degree(values, values.dtype)
    inputs = _forward(module, x, edges, values, None)
    logits = inputs.pop().requires_grad_()
    slope = torch.autograd.grad(loss(logits), logits)[0]
    del logits
    to_values, to_degree = torch.zeros_like(values), torch.zeros_like(degree)
    for number in reversed(range(len(module.layers))):
        given: Features = inputs.pop() if number else x
        to_given = torch.zeros_like(given) if number else None  # type: ignore[arg-type]
        for run, block in _runs(edges, None):
            leaves = [values[block.edge].requires_grad_(), degree[block.nodes].requires_grad_()]
            here = rows(given, block.nodes)
            if to_given is not None:
                assert isinstance(here, Tensor)
                here = (here if here is not given else here.clone()).requires_grad_()
                leaves.append(here)
            fed = here if to_given is None else module.activation(here)  # type: ignore[arg-type]
            out = module.layers[number](fed, block.with_degree(leaves[1]), leaves[0])
            found = torch.autograd.grad(out, leaves, slope[run], allow_unused=True)
            to_values.index_add_(0, block.edge, found[0])
            if found[1] is not None:
                to_degree.index_add_(0, block.nodes, found[1])
            if to_given is not None:
                to_given.index_add_(0, block.nodes, found[2])
        if to_given is not None:
            slope = distributed.sum_(to_given)
    return distributed.sum_(to_values).add_(_through_degrees(edges, distributed.sum_(to_degree)))


@torch.no_grad()
def _forward(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor | None, nodes: Tensor | None
) -> list[Tensor]:
    """What every layer gives, before its activation; rows that no output reads stay zero."""
    dtype = next(module.parameters()).dtype
    degree = edges.neighbours.degree(values, dtype)
    wanted: list[Tensor | None] = [nodes]
    for _ in module.layers[1:]:
        wanted.insert(0, None if wanted[0] is None else edges.neighbours.reached(wanted[0]))
    outputs: list[Tensor] = []
    for layer, asked in zip(module.layers, wanted, strict=True):
        given: Features = module.activation(outputs[-1]) if outputs else x
        out: Tensor | None = None
        for run, block in _runs(edges, asked):
            value = None if values is None else values[block.edge]
            found = layer(rows(given, block.nodes), block.with_degree(degree[block.nodes]), value)
            if out is None:
                out = found.new_zeros(edges.num_nodes, found.shape[1])
            out[run] = found
        if out is None:  # there are more workers than runs
            out = degree.new_zeros(edges.num_nodes, cast(Tensor, layer.bias).numel())
        outputs.append(distributed.sum_(out))
    return outputs


def _runs(edges: EdgeSet, nodes: Tensor | None) -> Iterator[tuple[Tensor, LocalBlock]]:
    """This worker's runs of rows, each with what it reads."""
    if nodes is None:
        nodes = torch.arange(edges.num_nodes, device=edges.loops.device)
    runs = edges.neighbours.chunks(nodes, RUN, distributed.size())
    for run in runs[distributed.rank() :: distributed.size()]:
        yield run, edges.neighbours.block(run)


def _through_degrees(edges: EdgeSet, to_degree: Tensor) -> Tensor:
    """What a slope in the degrees is in the values: an arc adds its weight to the degree of its target."""
    u, v = edges.pairs
    forward = to_degree[v] if edges.weights is None else to_degree[v] * edges.weights[0].to(to_degree.dtype)
    if edges.directed:
        return forward
    backward = to_degree[u] if edges.weights is None else to_degree[u] * edges.weights[1].to(to_degree.dtype)
    return forward.add_(backward)
