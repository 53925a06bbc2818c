"""NeuralSparse (Zheng et al., ICML 2020): a network that learns which k edges a node keeps."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from gst.base.errors import InputError
from gst.base.randomness import generator, seeded
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods.base import LearnedSparsifier
from gst.methods.found import Found
from gst.methods.registry import register
from gst.nn.features import Features
from gst.nn.masker import Masker
from gst.sparse.csr import Pattern, row_max, row_sum
from gst.train.run import Run
from gst.train.settings import Batching, Config, Training
from gst.train.trainer import Best, Plain, Progress, Trainer, in_epoch


class Sampling(Config):
    """How NeuralSparse draws edges while it trains."""

    masker_hidden: int = Field(default=64, ge=1, le=2**20, description="width of the sparsification network")
    hottest: float = Field(default=1.0, gt=0, le=1e3, description="temperature of the draws in the first epoch")
    coldest: float = Field(default=0.1, gt=0, le=1e3, description="temperature of the draws in the last epoch")


@register("neural-sparse")
@dataclass(kw_only=True, eq=False, repr=False)
class NeuralSparse(LearnedSparsifier):
    r"""Learns, along with the network, which k edges every node keeps.

    A network scores each edge from the features of its ends, z_e. Every node u chooses among its edges with the
    probabilities :math:`π_u(e) = \mathrm{softmax}_{e ∋ u} z_e`, k of them without replacement; training draws relaxed
    choices,

    .. math:: x_u = \sum_{j=1}^{k} \mathrm{softmax}\Big(\frac{\log π_u + G + \log(1 - x_u^{(<j)})}{T}\Big), \quad
        G \sim \mathrm{Gumbel}

    at a temperature T that falls from epoch to epoch, and an edge counts as much as either end chooses it:
    x_u + x_v − x_u x_v. At the end every node takes its edges of highest z. k matches the budget: it is the largest
    number a node with which not too many edges stay, and the next best of all nodes fill up to the budget exactly.

    The published method cannot be given a budget, only k. It draws again at every evaluation; here the graph is fixed.

    Args:
        masker_hidden: width of the sparsification network's hidden layer [64].
        hottest: T in the first epoch [1].
        coldest: T in the last [0.1].

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`. All E + D epochs train both networks.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.NeuralSparse(sparsity=0.5, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> int(est.found_.keep_mask.sum()) == est.edges_.num_edges - round(0.5 * est.edges_.num_edges)
    True
    """

    masker_hidden: int | None = None
    hottest: float | None = None
    coldest: float | None = None

    configs: ClassVar[tuple[type[Config], ...]] = (Training, Batching, Sampling)
    complexity: ClassVar[str] = "E + D epochs, k draws each"
    reference: ClassVar[str] = "Zheng et al., ICML 2020"

    def search(self, run: Run, num_kept: int) -> Found:
        if run.batching.batch != "full" or run.training.inductive:
            raise InputError("NeuralSparse draws among all edges of a node: take batch full and no inductive")
        sampling: Sampling = self.config(Sampling, run.data)
        start, training = run.checkpoint.clock(), run.training
        with seeded(training.seed + 1):
            chooser = Chooser(run.x.shape[1], sampling.masker_hidden).to(run.device)
            trainer = run.trainer(run.network(), chooser)
            best = self._train(run, trainer, chooser, num_kept, sampling)
        trainer.restore(best.kept)
        keep_mask, scores = best.kept["keep"], best.kept["scores"]
        logits = trainer.logits(run.edges.subset(keep_mask))
        seconds = {"anchor": 0.0, "topology": 0.0, "sparse": run.checkpoint.clock() - start}
        return Found(keep_mask, scores, trainer.network.module, logits, best.val, seconds)

    def _train(self, run: Run, trainer: Trainer, chooser: "Chooser", num_kept: int, sampling: Sampling) -> Best:
        """All epochs; the best on the graph that its epoch would keep."""
        epochs, sparsity = run.training.anchor_epochs + run.training.sparse_epochs, 1 - num_kept / run.edges.num_edges
        state = Plain(trainer)
        for epoch in run.checkpoint.loop("sparse", epochs, state, run.edges):
            with in_epoch("sparse", epoch):
                chooser.temperature = sampling.hottest * (sampling.coldest / sampling.hottest) ** (epoch / epochs)
                chooser.edges_a_node = chooser.matching(run.x, run.edges, num_kept)
                trainer.step(run.edges)
                scores = chooser.ranked(run.x, run.edges)
                keep_mask = top_k(scores, num_kept)
                val = trainer.evaluate(run.edges.subset(keep_mask))
            kept = {"keep": keep_mask, "scores": scores}
            state.best.offer(val, epoch, lambda kept=kept: {**trainer.state(), **kept})  # type: ignore[misc]
            run.watch(Progress("sparse", epoch, epochs, val, state.best.val, sparsity))
        return state.best


class Chooser(Masker):
    """The sparsification network: as a mask of the edges, how much their ends choose them in one relaxed draw."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden, deviation=1.0)
        self.temperature = 1.0
        self.edges_a_node = 1

    def forward(self, x: Features, edges: EdgeSet) -> Tensor:
        logits = super().forward(x, edges)[edges.arc_edge]
        noise = torch.rand(logits.shape, generator=generator()).to(logits.device).clamp(1e-10, 1 - 1e-7)
        left = logits - (-noise.log()).log()
        chosen = torch.zeros_like(logits)
        for _ in range(self.edges_a_node):
            share = row_softmax(edges.arc_pattern, left / self.temperature)
            chosen = chosen + share
            left = left + torch.log1p(-share.clamp(max=1 - 1e-6))
        return either_end(edges, chosen.clamp(max=1))

    @torch.no_grad()
    def ranked(self, x: Features, edges: EdgeSet) -> Tensor:
        """The order in which edges stay, float64: by their better rank at a node that chooses, then by score."""
        return rank_scores(edges, super().forward(x, edges))

    def matching(self, x: Features, edges: EdgeSet, num_kept: int) -> int:
        """k: the most edges a node with which at most ``num_kept`` edges stay, at least one."""
        ranks = (-self.ranked(x, edges)).ceil().long()
        return max(1, int((torch.bincount(ranks).cumsum(0) <= num_kept).sum()) - 1)


def row_softmax(pattern: Pattern, logits: Tensor) -> Tensor:
    """Softmax over the entries of each row, ``[nnz] -> [nnz]``."""
    weights = (logits - row_max(pattern, logits.detach().unsqueeze(1)).squeeze(1)[pattern.row]).exp()
    return weights / row_sum(pattern, weights)[pattern.row]


def either_end(edges: EdgeSet, chosen: Tensor) -> Tensor:
    """From one share per arc, of its target's choice, to one per edge: 1 − Π (1 − x) over its arcs."""
    if edges.directed:
        return chosen.new_zeros(edges.num_edges).index_copy(0, edges.arc_edge, chosen)
    order = torch.sort(edges.arc_edge, stable=True).indices
    one, other = chosen[order].view(-1, 2).unbind(1)
    return one + other - one * other


def rank_scores(edges: EdgeSet, scores: Tensor) -> Tensor:
    """Minus the better rank at its targets (1: the highest score) plus a share below one by the score itself.

    >>> edges = EdgeSet.from_edge_index(torch.tensor([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]]), num_nodes=4)
    >>> rank_scores(edges, torch.tensor([3.0, 1.0, 2.0])).neg().ceil().tolist()  # a star: each leaf has one edge
    [1.0, 1.0, 1.0]
    """
    row, of_arc = edges.arcs[1], scores.double()[edges.arc_edge]
    order = torch.sort(of_arc, descending=True, stable=True).indices
    order = order[torch.sort(row[order], stable=True).indices]
    first = edges.arc_pattern.crow[row[order]]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device) - first + 1
    best = rank.new_full((edges.num_edges,), order.numel() + 1).scatter_reduce(0, edges.arc_edge, rank, "amin")
    return scores.double().sigmoid() - best
