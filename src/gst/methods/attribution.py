"""Edges by what explainers attribute to them: the rivals of Deploy that look at the same trained model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from gst.base.errors import InputError
from gst.base.randomness import generator, seeded
from gst.graph.select import top_k
from gst.methods.base import LearnedSparsifier
from gst.methods.found import Found
from gst.methods.registry import register
from gst.nn.backbones.gat import GATLayer
from gst.nn.features import linear
from gst.nn.network import NativeNetwork, Network
from gst.sparse.adjacency import Block
from gst.train.run import Run
from gst.train.settings import Batching, Config, Training


class Explaining(Config):
    """What explains the model."""

    explainer: Literal["saliency", "integrated-gradients", "shapley", "attention"] = Field(
        default="integrated-gradients", description="what attributes the model's answers to edges"
    )
    steps: int = Field(default=32, ge=1, le=100_000, description="points of the explainer's integral, or samples")


@register("attribution")
@dataclass(kw_only=True, eq=False, repr=False)
class Attribution(LearnedSparsifier):
    r"""Keeps the edges to which an explainer attributes most of a trained model's answers; the model is not touched.

    What is explained is the mean log-probability of the answers that the model gives on all edges,

    .. math:: F(g) = \frac1N \sum_v \log p_v(ŷ_v; g), \qquad ŷ_v = \arg\max p_v(1)

    in the gates g of the edges, 1 on all of them and 0 on none:

    - ``"saliency"``: :math:`|∂F/∂g_e|` on all edges;
    - ``"integrated-gradients"``: :math:`\int_0^1 ∂F/∂g_e(α, …, α) \, dα` (Sundararajan et al., ICML 2017);
    - ``"shapley"``: :math:`\int_0^1 \mathrm{E}\, ∂F/∂g_e(S_q) \, dq`, S_q keeping each edge with probability q: the
      Shapley value by Owen's multilinear extension (1972), with a slope in place of every difference;
    - ``"attention"``: the largest attention over heads, layers and both arcs, of GAT.

    ``Attribution(model)`` takes your trained model with the weights it has; ``Attribution(backbone=…)`` first trains
    one on all edges, E + D epochs.

    Args:
        explainer: one of the four ["integrated-gradients"].
        steps: points of the integral, or samples [32].

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> short = {"hidden": 8, "anchor_epochs": 5, "sparse_epochs": 5, "cache": False}
    >>> est = gst.Attribution(explainer="saliency", sparsity=0.8, **short).fit(data)
    >>> int(est.found_.keep_mask.sum()) == est.edges_.num_edges - round(0.8 * est.edges_.num_edges)
    True
    """

    explainer: str | None = None
    steps: int | None = None

    configs: ClassVar[tuple[type[Config], ...]] = (Training, Batching, Explaining)
    complexity: ClassVar[str] = "E + D epochs, one pass a step"
    reference: ClassVar[str] = "Sundararajan et al., ICML 2017"
    takes_trained_model: ClassVar[bool] = True

    def search(self, run: Run, num_kept: int) -> Found:
        network = run.network()
        network.module.load_state_dict(run.dense.model)
        network.module.eval()
        clock = run.checkpoint.clock
        start = clock()
        with seeded(run.training.seed):
            scores = self.scores(run, network).double()
        keep_mask = top_k(scores, num_kept)
        seconds = {"anchor": run.dense.seconds, "topology": 0.0, "sparse": clock() - start}
        with torch.no_grad():
            logits = network.logits(run.edges.subset(keep_mask))
        val = run.task.score(logits[run.task.val], "val")
        return Found(keep_mask, scores, network.module, logits, val, seconds, agreement=run.agreement(logits))

    def scores(self, run: Run, network: Network) -> Tensor:
        """One attribution per edge."""
        everything = run.edges.loops.new_ones(run.edges.num_edges)
        explaining: Explaining = self.config(Explaining)
        if explaining.explainer == "attention":
            return attention_weights(run, network)
        slope = slope_of_answers(run, network)
        if explaining.explainer == "saliency":
            return slope(everything).abs()
        total = torch.zeros_like(everything, dtype=torch.float64)
        for step in range(explaining.steps):
            share = (step + 0.5) / explaining.steps  # midpoints: the ends, where an edge is alone, are not on the path
            if explaining.explainer == "shapley":
                drawn = torch.rand(everything.shape, generator=generator()).to(everything.device)
                total += slope((drawn < share).to(everything.dtype))
            else:
                total += slope(share * everything)
        return total / explaining.steps


def slope_of_answers(run: Run, network: Network) -> Callable[[Tensor], Tensor]:
    """∂F/∂g as a function of g: one backward pass for all edges."""
    wanted = run.task.predict(run.dense.logits)

    def log_probability(logits: Tensor) -> Tensor:
        if run.task.multilabel:
            return -functional.binary_cross_entropy_with_logits(logits, wanted.to(logits.dtype), reduction="sum")
        return -functional.cross_entropy(logits, wanted, reduction="sum")

    def slope(gates: Tensor) -> Tensor:
        gates = gates.detach().clone().requires_grad_()
        value = log_probability(network.logits(run.edges, gates)) / run.edges.num_nodes
        return torch.autograd.grad(value, gates)[0]

    return slope


@torch.no_grad()
def attention_weights(run: Run, network: Network) -> Tensor:
    """The largest attention of every edge."""
    layers = network.module.modules() if isinstance(network, NativeNetwork) else ()
    attentive = [layer for layer in layers if isinstance(layer, GATLayer)]
    if not attentive:
        raise InputError("explainer = 'attention' is for gst's GAT: take backbone gat or another explainer")
    scores = torch.zeros(run.edges.num_edges, device=run.device)

    def read(layer: GATLayer, arguments: tuple[Any, ...], output: Tensor) -> None:
        x, block, values = arguments
        assert isinstance(block, Block)
        highest = layer.shares(x, linear(x, layer.weight), block, values).amax(1)
        source = block.adjacency.source if block.entries is None else block.adjacency.source[block.entries]
        on_edges = source < scores.numel()  # the others are self-loops
        scores.scatter_reduce_(0, source[on_edges], highest[on_edges], "amax")

    hooks = [layer.register_forward_hook(read) for layer in attentive]
    try:
        network.logits(run.edges)
    finally:
        for hook in hooks:
            hook.remove()
    return scores
