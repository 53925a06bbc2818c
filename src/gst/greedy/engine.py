"""Which edges does a trained network need? Greedy on the divergence from the answers it gives on all of them."""

import numpy as np
import torch
from torch import Tensor

from gst.graph import EdgeSet
from gst.greedy.native import as_lists, as_model, is_linear
from gst.greedy.search import fill, walk
from gst.greedy.trials import Trials
from gst.nn.network import NativeNetwork, Network

SHARPNESS = 0.05  # T in units of the margin
TOLERANCE = 0.003  # how far answers may move before the edges around are looked at again


def deploy(network: Network, edges: EdgeSet, logits: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    r"""The ``kept`` edges with which a trained network best keeps its answers, and a score for every edge.

    .. math:: M ← M + \arg\min_e \, KL_T(M + e), \quad
        KL_T(M) = \sum_i KL(\mathrm{softmax}(Z^A_i / T) ‖ \mathrm{softmax}(f_Θ(M)_i / T))

    from M = ∅ on, in evaluation mode, with degrees, means and attention of the kept edges alone. The edge added first
    has the highest score and edges never added have 0, so the best k of the scores are the answer for any k ≤ ``kept``:
    one run serves all larger sparsities.

    Args:
        network: a trained network; its weights are not touched.
        edges: all edges of the graph.
        logits: Z^A, what the network says on all edges in evaluation mode.
        kept: number of edges to keep.
    """
    temperature = find_temperature(logits)
    training = network.module.training
    network.module.eval()
    try:
        if is_linear(network):
            assert isinstance(network, NativeNetwork)
            order, _ = Search([network], edges, [logits], temperature).add(kept)
        else:
            order, _ = Trials(network, edges, logits, temperature).add(kept)
    finally:
        network.module.train(training)
    scores = torch.zeros(edges.num_edges, dtype=torch.float64)
    scores[order] = torch.arange(edges.num_edges, edges.num_edges - kept, -1, dtype=torch.float64)
    return (scores > 0).to(edges.pairs.device), scores.to(edges.pairs.device)


def find_temperature(logits: Tensor) -> float:
    """T = 0.05 of the median margin between the two highest logits of a node.

    So small that right answers count, not how sure they are; in units of the margin because the logits of one backbone
    are ten times as large as those of another.
    """
    best = logits.topk(2, dim=-1).values
    return max(SHARPNESS * float((best[:, 0] - best[:, 1]).median()), 1e-6)


class Search:
    """Edges added to and dropped from a graph by the mean divergence of one or more native networks.

    Args:
        networks: trained networks of layers that :mod:`gst.greedy.native` knows.
        edges: all edges.
        wanted: the logits that each network should give.
        temperature: T.
        prior: what each edge is worth besides, in units of the divergence.
        keep: the edges to start from; None: no edge.
    """

    def __init__(
        self,
        networks: list[NativeNetwork],
        edges: EdgeSet,
        wanted: list[Tensor],
        temperature: float,
        prior: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> None:
        self.lists, self.incidence = as_lists(edges)
        self.models = tuple(as_model(n, edges, w, temperature) for n, w in zip(networks, wanted, strict=True))
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep = np.zeros(edges.num_edges, bool)
        if keep is not None:
            self.keep[:] = keep.cpu().numpy()
            fill(np.flatnonzero(self.keep), self.lists, self.models)

    def add(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Adds the edges of least δ = ΔKL − prior, one by one; which, in this order, and their δ."""
        return self._walk(count, 1.0, tolerance)

    def drop(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Drops the edges of least δ = ΔKL + prior, likewise."""
        return self._walk(count, -1.0, tolerance)

    def divergence(self) -> float:
        """KL_T of the edges now kept, mean over the networks."""
        return float(np.mean([state.loss.sum() for _, state, _ in self.models]))

    def _walk(self, count: int, sign: float, tolerance: float) -> tuple[Tensor, Tensor]:
        candidates = ~self.keep if sign > 0 else self.keep.copy()
        order, paid = walk(count, sign, candidates, self.prior, tolerance, self.lists, self.incidence, self.models)
        self.keep[order] = sign > 0
        return torch.from_numpy(order), torch.from_numpy(paid)
