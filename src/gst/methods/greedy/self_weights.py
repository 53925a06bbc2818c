"""Weights of nodes' own messages that make up for sums over neighbours that are missing.

A network that sums over neighbours gives other answers where few arcs stay, because the sums are too small. Neighbours
resemble the node itself: a self-loop of weight c·d_i, with d_i the in-degree on all edges, stands for those that are
not read, and costs no read. c is chosen node by node without any edge, where the answer of a node depends on nothing
but itself and its weight.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.nn.network import NativeNetwork, Network

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)  # c
USUAL = 0.5  # preferred among equals
TIE = 1e-3  # of the divergence, per unit of distance from the usual share


def sums(network: Network) -> bool:
    """Whether the network is one of gst's own that sum over neighbours."""
    return isinstance(network, NativeNetwork) and all(
        getattr(layer, "norm", "") == "sum" and layer.attention is None for layer in network.module.stack
    )


@torch.no_grad()
def self_weights(network: Network, edges: EdgeSet, wanted: Tensor, target: Target) -> Tensor:
    """[N] the weight of a self-loop for each node: c·d, with the c that brings its answer without edges nearest."""
    source, reader = edges.arcs
    weight = torch.ones_like(source, dtype=edges.loops.dtype) if edges.arc_weight is None else edges.arc_weight
    degree = torch.zeros_like(edges.loops).index_add_(0, reader, weight)
    bare = edges.subset(torch.zeros(edges.num_edges, dtype=torch.bool, device=reader.device))
    losses = []
    for share in SHARES:
        logits = network.logits(replace(bare, loops=edges.loops + share * degree))
        losses.append(target.loss(wanted, logits) + TIE * abs(share - USUAL))
    return degree.new_tensor(SHARES)[torch.stack(losses).argmin(0)] * degree


def with_self_loops(graph: Data, weight: Tensor) -> Data:
    """The graph with a self-loop of this ``edge_weight`` wherever it is positive, after all other columns."""
    nodes = (weight > 0).nonzero().flatten()
    before = graph.get("edge_weight")
    before = weight.new_ones(graph.edge_index.shape[1]) if before is None else before
    grown = graph.clone()
    for name in graph.edge_attrs():
        value = graph[name]
        if name not in ("edge_index", "edge_weight") and isinstance(value, Tensor):
            grown[name] = torch.cat([value, value.new_zeros(nodes.numel(), *value.shape[1:])])
    grown.edge_index = torch.cat([graph.edge_index, nodes.expand(2, -1).to(graph.edge_index)], dim=1)
    grown.edge_weight = torch.cat([before, weight[nodes].to(before)])
    return grown
