"""What a run decided about the edges that it saw, in the form that later changes need."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.inference.serving.arrays import Graph, Network, Nodes
from gst.inference.serving.describe import row_scale
from gst.inference.serving.features import pack_dense
from gst.inference.serving.kernel import answer
from gst.inference.serving.rows import fixed

SHIFT = np.int64(32)
SHARPNESS = 0.3  # temperature of the answers whose agreement ranks new edges


@dataclass(frozen=True)
class Base:
    """The edges of a run in the order in which it wanted them, and its answers.

    Attributes:
        keys: [E] u·2³² + v of each edge, ascending; u < v where an edge is a pair.
        rank: [E] the place of each edge: first those that the run kept, by falling score, then those it removed.
        num_kept: how many it kept.
        sparsity: the share that it removed.
        pairs: whether an edge is a pair, with two arcs.
        symmetric: whether the graph is undirected: who adds u → v also adds v → u.
        weights: [1 or 2, E] of the arcs u → v and v → u; None: all 1.
        probabilities: [N, C] the run's answers about its nodes.
        multilabel: whether the C answers are independent labels.
    """

    keys: np.ndarray
    rank: np.ndarray
    num_kept: int
    sparsity: float
    pairs: bool
    symmetric: bool
    weights: np.ndarray | None
    probabilities: np.ndarray
    multilabel: bool

    @classmethod
    def of(
        cls, edges: EdgeSet, keep_mask: np.ndarray, scores: np.ndarray, logits: np.ndarray, multilabel: bool
    ) -> "Base":
        if edges.num_nodes >= 2**31:
            raise InputError(f"{edges.num_nodes} nodes: a graph that changes may have at most 2³¹")
        u, v = edges.pairs.numpy()
        order = np.lexsort((np.arange(u.size), -np.nan_to_num(scores, nan=-np.inf), ~keep_mask))
        rank = np.empty(u.size, np.int64)
        rank[order] = np.arange(u.size)
        num_kept = int(keep_mask.sum())
        return cls(
            keys=edge_keys(u, v),
            rank=rank,
            num_kept=num_kept,
            sparsity=1 - num_kept / u.size,
            pairs=not edges.directed,
            symmetric=not edges.directed or edges.symmetric,
            weights=None if edges.weights is None else edges.weights.float().numpy(),
            probabilities=probabilities(logits, multilabel),
            multilabel=multilabel,
        )

    def budget(self, num_edges: int) -> int:
        """E − round(s·E)."""
        return num_edges - round(self.sparsity * num_edges)

    def find(self, key: int) -> int:
        """The number of an edge; −1 if the run has not seen it."""
        position = int(np.searchsorted(self.keys, key))
        return position if position < self.keys.size and self.keys[position] == key else -1

    def ordered(self, ends: np.ndarray) -> list[int]:
        """The keys of the edges that these pairs of ends name, each once."""
        u, v = ends[:, 0], ends[:, 1]
        if self.pairs:
            keys = edge_keys(np.minimum(u, v), np.maximum(u, v))
        else:
            keys = np.concatenate([edge_keys(u, v), edge_keys(v, u)]) if self.symmetric else edge_keys(u, v)
        return keys.tolist()


def edge_keys(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (u.astype(np.int64) << SHIFT) | v.astype(np.int64)


def ends_of(key: int) -> tuple[int, int]:
    return key >> 32, key & 0xFFFFFFFF


def probabilities(logits: np.ndarray, multilabel: bool) -> np.ndarray:
    """softmax(Z / 0.3), or σ(Z / 0.3) for several labels, in float32."""
    scaled = logits.astype(np.float64) / SHARPNESS
    return (expit(scaled) if multilabel else softmax(scaled, axis=-1)).astype(np.float32)


def agreement(p: np.ndarray, q: np.ndarray, multilabel: bool) -> np.ndarray:
    """How probable it is that two nodes have the same answer: what a new edge between them is worth."""
    return (p * q + (1 - p) * (1 - q)).mean(-1) if multilabel else (p * q).sum(-1)


def answer_alone(network: Network, new_own: np.ndarray, floor: float, x: np.ndarray, weighted: bool) -> np.ndarray:
    """[1, C] what the network says of a new node by its features alone, without any edge."""
    own = new_own[:, None].copy()
    scale = np.stack([row_scale(int(norm), own[layer], floor) for layer, norm in enumerate(network.norm)])
    value = np.ones(1, np.float32) if weighted else None
    arcs = fixed(np.zeros(2, np.int64), np.empty(0, np.int32), value)
    graph = Graph(network, arcs, Nodes(own, scale), pack_dense(x[None]))
    return answer(np.zeros(1, np.int64), np.empty((0, 0), np.float32), graph, 1, np.full(1, -1, np.int32))[0]
