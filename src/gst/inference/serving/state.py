"""What an engine knows: the arrays that its kernels read, and how single nodes of them are read and changed."""

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch
from torch_geometric.data import Data

from gst.graph.edgeset import EdgeSet
from gst.inference.serving.arrays import Features, Graph, Network, Nodes, Rows
from gst.inference.serving.describe import describe, node_values, own_values, row_scale
from gst.inference.serving.features import pack_csr, pack_dense
from gst.inference.serving.kernel import sparse_product
from gst.inference.serving.rows import ChangingRows, fixed, grown
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
        identity: a hash of the graph, the features and the network before the first change.
    """

    graph: Graph
    num_nodes: int
    new_own: np.ndarray
    floor: float
    version: int = 0
    identity: str = ""
    _used: int = 0  # rows of ``features.more``
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

    def identify(self) -> None:
        """Computes ``identity``."""
        features, nodes = self.graph.features, np.arange(self.num_nodes)
        x = self.sparse_x.packed(self.num_nodes) if self.sparse_x is not None else (features.dense,)
        parts = [*self.arcs.packed(nodes.size), *x, *self.graph.network, self.graph.nodes.own]
        total = hashlib.blake2b(digest_size=16)
        for part in parts:
            total.update(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"-")
        self.identity = total.hexdigest()

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

    # ---- changes

    def reserve(self, nodes: int) -> None:
        """Room for this many nodes in all arrays."""
        graph = self.graph
        self.arcs.reserve(nodes)
        own, scale = (grown(part, nodes, fill, axis=1) for part, fill in ((graph.nodes.own, 0), (graph.nodes.scale, 1)))
        features = graph.features
        if self.sparse_x is not None:
            self.sparse_x.reserve(nodes)
        else:
            features = features._replace(at=grown(features.at, nodes, 0))
        tables = {name: getattr(features, name) for name in ("products", "roots")}
        tables = {name: grown(table, nodes, 0) for name, table in tables.items() if table.shape[0]}
        self._replace(nodes=Nodes(own, scale), features=features._replace(**tables))

    def _replace(self, nodes: Nodes | None = None, features: Features | None = None) -> None:
        """Shows the kernels the current arrays."""
        features = self.graph.features if features is None else features
        if self.sparse_x is not None:
            features = features._replace(rows=self.sparse_x.rows)
        nodes = self.graph.nodes if nodes is None else nodes
        self.graph = self.graph._replace(arcs=self.arcs.rows, nodes=nodes, features=features)

    def add_node(self, x: np.ndarray) -> None:
        """A node without edges."""
        node = self.num_nodes
        self.reserve(node + 1)
        self.num_nodes += 1
        self.graph.nodes.own[:, node] = self.new_own
        if self.sparse_x is None:
            self.graph.features.at[node] = -1
        self.set_features(node, x)
        self.set_scale(node)

    def set_features(self, node: int, x: np.ndarray) -> None:
        """Gives a node other features."""
        features = self.graph.features
        if self.sparse_x is not None:
            columns = np.flatnonzero(x)
            self.sparse_x.replace(node, columns.astype(np.int32), x[columns])
            self._replace()
        else:
            split = features.dense.shape[0]
            if features.at[node] < split:  # not among those that have changed before
                features = features._replace(more=grown(features.more, self._used + 1, 0))
                features.at[node] = split + self._used
                self._used += 1
                self._replace(features=features)
            features.more[features.at[node] - split] = x
        network = self.graph.network
        for table, start in (
            (self.graph.features.products, network.weight_at[0]),
            (self.graph.features.roots, network.root_at[0]),
        ):
            if table.shape[0]:
                table[node] = self.products(np.array([node]), self.layer_weight(int(start)))[0]

    def features_of(self, node: int) -> np.ndarray:
        """Features of one node, as a dense row."""
        if self.sparse_x is None:
            return self.dense_rows(np.array([node]))[0]
        columns, values = self.sparse_x.row(node)
        x = np.zeros(self.inputs, np.float32)
        x[columns] = values
        return x

    def set_row(self, node: int, source: np.ndarray, weight: np.ndarray | None) -> None:
        """Gives a node other incoming arcs."""
        self.arcs.replace(node, source, weight)
        self._replace()
        self.set_scale(node)

    def set_scale(self, node: int) -> None:
        """Computes again what the layers know of a node's row."""
        source, weight = self.arcs.row(node)
        total = np.bincount(np.zeros(source.size, np.int64), weight if self.weighted else None, 1)[0]
        nodes = self.graph.nodes
        for layer, norm in enumerate(self.graph.network.norm):
            nodes.scale[layer, node] = row_scale(int(norm), np.array(total + nodes.own[layer, node]), self.floor)

    def rebuilt(self) -> "State":
        """The same nodes and features in new arrays, without arcs."""
        nodes, features = self.num_nodes, self.graph.features
        weight = np.ones(1, np.float32) if self.weighted else None
        arcs = fixed(np.zeros(nodes + 1, np.int64), np.empty(0, np.int32), weight)
        packed = (
            pack_csr(*self.sparse_x.packed(nodes)) if self.sparse_x else pack_dense(self.dense_rows(np.arange(nodes)))
        )
        own = self.graph.nodes.own[:, :nodes].copy()
        state = State.assembled(self.graph.network, arcs, own, packed, self.new_own, self.floor)
        state.version, state.identity = self.version, self.identity
        if features.products.shape[0]:
            state.tabulate()
        return state

    def set_arcs(self, arcs: Rows) -> None:
        """Gives all nodes their incoming arcs."""
        self.arcs = ChangingRows(arcs)
        own = self.graph.nodes.own
        self._replace(nodes=node_values(self.graph.network, arcs, own, self.num_nodes, self.floor))


def _weights(weight: np.ndarray | None) -> np.ndarray | None:
    """Weights of arcs; of a weighted graph without arcs one number, so that it stays a weighted one."""
    return weight if weight is None or weight.size else np.ones(1, np.float32)
