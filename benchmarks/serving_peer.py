"""PyG's usual way to answer about one node: ``k_hop_subgraph``, then the model."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import k_hop_subgraph

from gst.inference.serving import Reads
from gst.sparse.layouts import rows_of


class Peer:
    """A stack of ``GCNConv`` with the weights of a GCN of gst, called on the nodes within reach.

    Args:
        model: a GCN.
        graph: with its features.
        more: hops beyond the layers. The degrees of the outermost nodes need one: without it, outputs differ.
    """

    def __init__(self, model: Any, graph: Data, more: int) -> None:
        self.layers: list[Any] = []
        for layer in model.stack:
            conv: Any = GCNConv(*layer.weight.shape)
            with torch.no_grad():
                conv.lin.weight.copy_(layer.weight.t())
                conv.bias.copy_(layer.bias)
            self.layers.append(conv)
        self.x, self.edge_index, self.nodes = graph.x.float(), graph.edge_index, int(graph.num_nodes)
        self.hops = len(self.layers) + more

    def subgraph(self, node: int) -> tuple[Tensor, Tensor, Tensor]:
        nodes, edges, position, _ = k_hop_subgraph(
            int(node), self.hops, self.edge_index, relabel_nodes=True, num_nodes=self.nodes
        )
        return nodes, edges, position

    @torch.inference_mode()
    def __call__(self, node: int) -> Tensor:
        nodes, edges, position = self.subgraph(node)
        hidden = rows_of(self.x, nodes)  # sparse features stay sparse
        for i, layer in enumerate(self.layers):
            hidden = layer(hidden if i == 0 else hidden.relu(), edges)
        return hidden[position]

    def reads(self, node: int) -> Reads:
        nodes, edges, _ = self.subgraph(node)
        return Reads(nodes.numel(), edges.shape[1], 0)
