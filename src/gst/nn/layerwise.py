"""Exact logits of a large graph, and their exact gradient in every edge, layer by layer and in runs of rows.

A receptive field grows with every layer until it is the whole graph. Layer by layer, the work is that of a full batch
and the memory O(N·H + one run). Under ``torch.distributed`` the workers share the runs.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from gst.base import distributed
from gst.graph.edgeset import EdgeSet
from gst.nn.backbones import Backbone
from gst.nn.features import Features, SharedFeatures
from gst.sparse.neighbours import LocalBlock
from gst.sparse.shared_grad import Shared, room, token

RUN = 1 << 18  # arcs read at once: the values held for each fit into the caches

# by activation: the gradient in its input from the gradient in its output and the output, both overwritten
_BACKWARD: dict[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor]] = {
    torch.relu: lambda grad, output: grad.mul_(output.sign_()),
    functional.elu: lambda grad, output: grad.mul_(output.clamp_(max=0).add_(1)),
}


def layerwise_logits(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor | None = None, nodes: Tensor | None = None
) -> Tensor:
    """Evaluation-mode logits on these edges, each with its value (None: 1), of some nodes (sorted ids) or all."""
    module.eval()
    if module.sequential:
        logits = _forward(module, x, edges, values, nodes)[-1]
    else:
        with torch.no_grad():
            logits = module.run(x, edges.adjacency.blocks(len(module.layers)), values)
    return logits if nodes is None else logits[nodes]


def edge_gradient(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor, loss: Callable[[Tensor], Tensor]
) -> Tensor:
    """∂ loss(logits of all nodes) / ∂ values, in evaluation mode, of every edge, also of those with value 0."""
    module.eval()
    if not module.sequential:
        values = values.detach().requires_grad_()
        logits = module.run(x, edges.adjacency.blocks(len(module.layers)), values)
        return torch.autograd.grad(loss(logits), values)[0]
    degree = Shared.of(edges.neighbours.degree(values, values.dtype), token(True))
    outputs = _forward(module, x, edges, values, None)
    logits = outputs.pop().requires_grad_()
    grad = torch.autograd.grad(loss(logits), logits)[0]
    del logits
    to_values = torch.zeros_like(values)
    for number, layer in reversed(list(enumerate(module.stack))):
        before = outputs.pop() if number else None
        inputs = x if before is None else _input(module, number, before)
        # described layers are linear in their sums, so the gradient does not need these again
        features = SharedFeatures(inputs, slope=number > 0, backward_only=layer.described)
        for run, block in _runs(edges, None):
            leaves = [values[block.edge].requires_grad_(), degree.token, features.token]
            out = layer(features, block.with_degree(degree), leaves[0])
            leaves = [leaf for leaf in leaves if leaf.requires_grad]
            to_values.index_add_(0, block.edge, torch.autograd.grad(out, leaves, grad[run], allow_unused=True)[0])
        if before is not None:
            grad = _backward(module, number, before, distributed.sum_(features.slope()))
    assert degree.slope is not None
    return distributed.sum_(to_values).add_(_through_degrees(edges, distributed.sum_(degree.slope)))


@torch.no_grad()
def _forward(
    module: Backbone, x: Features, edges: EdgeSet, values: Tensor | None, nodes: Tensor | None
) -> list[Tensor]:
    """The outputs of all layers, activated where :func:`_stores_activated`; rows that no logit depends on are 0."""
    dtype = next(module.parameters()).dtype
    degree = Shared.of(edges.neighbours.degree(values, dtype), token(False))
    needed: list[Tensor | None] = [nodes]  # rows of each layer
    for _ in module.layers[1:]:
        needed.insert(0, None if needed[0] is None else edges.neighbours.reached(needed[0]))
    outputs: list[Tensor] = []
    for number, (layer, rows) in enumerate(zip(module.stack, needed, strict=True)):
        features = SharedFeatures(_input(module, number, outputs[-1]) if outputs else x)
        activate = _stores_activated(module) and number < len(module.layers) - 1
        out = room(degree.value, edges.num_nodes, layer.bias.numel())
        for run, block in _runs(edges, rows):
            part = layer(features, block.with_degree(degree), None if values is None else values[block.edge])
            out[run] = module.activation(part) if activate else part
        outputs.append(distributed.sum_(out))
    return outputs


def _stores_activated(module: Backbone) -> bool:
    """Whether outputs are stored activated: without norms between, and if the activation has a backward pass here."""
    return not module.norms and module.activation in _BACKWARD


@torch.no_grad()
def _input(module: Backbone, number: int, before: Tensor) -> Tensor:
    """What a layer reads, from the stored output of the layer before."""
    return before if _stores_activated(module) else module.between(number - 1, before)


def _backward(module: Backbone, number: int, before: Tensor, grad: Tensor) -> Tensor:
    """The gradient in the output of the layer before, from the one in what this layer reads; overwrites both."""
    if _stores_activated(module):
        return _BACKWARD[module.activation](grad, before)
    before.requires_grad_()
    return torch.autograd.grad(module.between(number - 1, before), before, grad)[0]


def _runs(edges: EdgeSet, nodes: Tensor | None) -> Iterator[tuple[Tensor, LocalBlock]]:
    """This worker's runs of rows, each with the block that it reads."""
    if nodes is None:
        nodes = torch.arange(edges.num_nodes, device=edges.loops.device)
    runs = edges.neighbours.chunks(nodes, RUN, distributed.size())
    for run in runs[distributed.rank() :: distributed.size()]:
        yield run, edges.neighbours.run(run)


def _through_degrees(edges: EdgeSet, to_degree: Tensor) -> Tensor:
    """The gradient in the values from the one in the degrees: an arc adds its weight to the degree of its target."""
    u, v = edges.pairs
    forward = to_degree[v] if edges.weights is None else to_degree[v] * edges.weights[0].to(to_degree.dtype)
    if edges.directed:
        return forward
    backward = to_degree[u] if edges.weights is None else to_degree[u] * edges.weights[1].to(to_degree.dtype)
    return forward.add_(backward)
