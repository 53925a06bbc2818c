"""What an engine knows: the arrays that its kernels read, and how single nodes of them are read and changed."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch_geometric.data import Data

from gst.graph.edgeset import EdgeSet
from gst.inference.serving.arrays import Features, Graph, Network, Rows
from gst.inference.serving.describe import describe, node_values, own_values
from gst.inference.serving.kernel import sparse_product
from gst.inference.serving.rows import ChangingRows, fixed
from gst.nn.backbones import Backbone


@dataclass
class State:
    """The arrays of a native engine.

    Attributes:
        graph: what the kernels read.
        num_nodes: of them; arrays may have room for more.
        new_own: [L] the value of a new node in its own sum.
        floor: the least divisor of a mean.
        version: how many changes have been made.
    """

    graph: Graph
    num_nodes: int
    new_own: np.ndarray
    floor: float
    version: int = 0
    arcs: ChangingRows = field(init=False)
    sparse_x: ChangingRows | None = field(init=False)

    def __post_init__(self) -> None:
        self.arcs = ChangingRows(self.graph.arcs)
        self.sparse_x = ChangingRows(self.graph.features.rows) if self.graph.features.sparse else None

    @classmethod
    def assembled(
        cls, network: Network, arcs: Rows, own: np.ndarray, features: Features, new_own: np.ndarray, floor: float
    ) -> "State":
        """From the parts of a graph, with one row of ``arcs`` per node."""
        nodes = node_values(network, arcs, own, arcs.size.size, floor)
        return cls(Graph(network, arcs, nodes, features), arcs.size.size, new_own, floor)

    @classmethod
    def of(cls, model: Backbone, graph: Data, features: Features) -> "State":
        """Of a native backbone and a graph."""
        edges = EdgeSet.from_edge_index(graph.edge_index.cpu(), int(graph.num_nodes), graph.get("edge_weight"))
        return cls.of_edges(model, edges, features)

    @classmethod
    def of_edges(cls, model: Backbone, edges: EdgeSet, features: Features) -> "State":
        neighbours = edges.neighbours
        arcs = fixed(neighbours.start, neighbours.source, _weights(neighbours.weight))
        new_own = own_values(model, torch.zeros(1))[:, 0].copy()
        own = own_values(model, edges.loops)
        return cls.assembled(describe(model), arcs, own, features, new_own, neighbours.min_weight / 2)

    @property
    def inputs(self) -> int:
        return int(self.graph.network.width[0])

    @property
    def weighted(self) -> bool:
        """Whether arcs have weights of their own."""
        return self.graph.arcs.value.size > 0

    def layer_weight(self, start: int) -> np.ndarray:
        """A weight matrix of the first layer."""
        inputs, outputs = self.graph.network.width[:2]
        return self.graph.network.numbers[start : start + inputs * outputs].reshape(inputs, outputs)

    def dense_rows(self, nodes: np.ndarray) -> np.ndarray:
        """Dense features of these nodes."""
        features = self.graph.features
        rows, split = features.at[nodes], features.dense.shape[0]
        x = np.empty((nodes.size, self.inputs), np.float32)
        x[rows < split] = features.dense[rows[rows < split]]
        x[rows >= split] = features.more[rows[rows >= split] - split]
        return x

    def products(self, nodes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """X·W of these nodes."""
        features = self.graph.features
        return sparse_product(features.rows, nodes, weight) if features.sparse else self.dense_rows(nodes) @ weight

    def tabulate(self) -> None:
        """Precomputes X·W of the first layer for all nodes: an answer then reads one short row per node."""
        network, capacity = self.graph.network, self.graph.arcs.start.size
        outputs, tables = int(network.width[1]), []
        for start in (int(network.weight_at[0]), int(network.root_at[0])):
            table = np.zeros((capacity if start >= 0 else 0, outputs), np.float32)
            if start >= 0:
                table[: self.num_nodes] = self.products(np.arange(self.num_nodes), self.layer_weight(start))
            tables.append(table)
        features = self.graph.features._replace(products=tables[0], roots=tables[1])
        self.graph = self.graph._replace(features=features)


def _weights(weight: np.ndarray | None) -> np.ndarray | None:
    """Weights of arcs; of a weighted graph without arcs one number, so that it stays a weighted one."""
    return weight if weight is None or weight.size else np.ones(1, np.float32)
