"""MGSpar, the meta-gradient sparsifier (Wan, ICDE 2021)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gst.base.arguments import check_options
from gst.base.errors import InputError
from gst.base.memory import check_memory
from gst.base.randomness import generator, seeded
from gst.graph.edgeset import EdgeSet
from gst.methods.iterative import IterativeSparsifier, fresh_network, logits_with
from gst.methods.registry import register
from gst.nn.network import Network
from gst.storage.cache import Content
from gst.train.models import reset_own_model
from gst.train.run import Run
from gst.train.settings import MOST_EPOCHS
from gst.train.trainer import Progress, in_epoch, train

OUTER = ("self", "train", "val")
DAMPING = 1e-5  # of Adam, inside the root: next to a gradient of 0 the usual 1e-8 is a step, which has no slope
Loss = Callable[[Sequence[Tensor], Tensor], Tensor]  # of weights and edge gates


@register("mgspar")
@dataclass(kw_only=True, eq=False, repr=False)
class MGSpar(IterativeSparsifier):
    r"""Removes the edges without which a freshly trained network would be better: the graph as a hyper-parameter.

    .. math:: \min_g \mathcal L_{outer}\big(Θ_T(g), g\big), \qquad
        Θ_{t+1}(g) = \mathrm{Adam}\big(Θ_t(g), \nabla_Θ \mathcal L_{train}(Θ_t(g), g)\big)

    The gate :math:`g_e` is 1 on every edge left. Its meta-gradient :math:`d\mathcal L_{outer}/dg_e` goes through all T
    steps of training and is summed over several networks with weights of their own. A gate that falls from 1 to 0
    changes the loss by about minus that, so the edges of highest meta-gradient go first, ``prune_ratio`` of those left
    a stage. One gate for both arcs of a pair makes it symmetric.

    Args:
        prune_ratio: share of the remaining edges that a stage removes.
        inner_steps: T, steps of the inner training, which has no dropout: the loss is a plain function of the gates.
        meta_epochs: networks trained and differentiated a stage.
        outer: whose labels judge. ``"self"``: the training nodes' own and, for all other nodes, those that a network
            trained on the full graph predicts (self-training); ``"train"``: the training nodes' alone; ``"val"``: those
            of training and validation nodes. Never a test label.

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`. The path is stored and serves every
    sparsity.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.MGSpar(sparsity=0.2, inner_steps=3, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> int(est.found_.keep_mask.sum()) == est.edges_.num_edges - round(0.2 * est.edges_.num_edges)
    True
    """

    prune_ratio: float = 0.1
    inner_steps: int = 40
    meta_epochs: int = 3
    outer: str = "self"

    complexity: ClassVar[str] = "stages · T epochs"
    takes_typed: ClassVar[bool] = False
    reference: ClassVar[str] = "Wan, ICDE 2021"

    def check(self) -> None:
        super().check()
        check_options(
            type(self).__name__,
            inner_steps=(self.inner_steps, int, lambda v: 0 <= v <= MOST_EPOCHS, f"a number from 0 to {MOST_EPOCHS}"),
            meta_epochs=(self.meta_epochs, int, lambda v: 1 <= v <= MOST_EPOCHS, f"a number from 1 to {MOST_EPOCHS}"),
        )
        if self.outer not in OUTER:
            raise InputError(f"{type(self).__name__}: outer = {self.outer!r}: choose from {', '.join(OUTER)}")

    def stage(self, run: Run, edges: EdgeSet, number: int, extra: Mapping[str, Tensor]) -> Content:
        labels = extra["labels"] if extra else outer_labels(run, self.outer)
        network, task = run.network(), run.task
        network.module.eval()
        visited = 12 * self.inner_steps * sum(weight.numel() for weight in network.module.parameters())
        check_memory(visited, f"a training of {self.inner_steps} steps to look back on", "fewer inner_steps would help")
        judged = (labels >= 0).view(len(labels), -1).all(1).nonzero().flatten()
        names = [name for name, p in network.module.named_parameters() if p.requires_grad]

        def loss(nodes: Tensor, targets: Tensor) -> Loss:
            def value(weights: Sequence[Tensor], gate: Tensor) -> Tensor:
                named = dict(zip(names, weights, strict=True))
                return task.cross_entropy(logits_with(network, named, edges, gate, nodes), targets)

            return value

        rates = {"lr": run.training.lr, "weight_decay": run.training.weight_decay}
        inner, outer = loss(task.train, task.y[task.train]), loss(judged, labels[judged])
        gate = edges.loops.new_ones(edges.num_edges)
        total = Sum(edges.loops.new_zeros(edges.num_edges))
        for epoch in run.checkpoint.loop("prune", self.meta_epochs, total, edges):
            start = initial_weights(run, network, names, int(torch.randint(2**31, (), generator=generator())))
            weights, slope = meta_gradient(inner, outer, start, gate, steps=self.inner_steps, **rates)
            total.gradient += slope
            with torch.no_grad(), in_epoch("prune", epoch):
                named = dict(zip(names, weights, strict=True))
                total.vals.append(task.score(logits_with(network, named, edges, gate, task.val), "val"))
            sparsity = 1 - edges.num_edges / run.edges.num_edges
            run.watch(Progress("prune", epoch, self.meta_epochs, total.vals[-1], max(total.vals), sparsity))
        return {"scores": -total.gradient, "labels": labels}, {"val": sum(total.vals) / len(total.vals)}


@dataclass
class Sum:
    """What a stage carries from one network to the next."""

    gradient: Tensor  # of the meta-gradients
    vals: list[float] = field(default_factory=list)


def meta_gradient(
    inner: Loss, outer: Loss, start: Sequence[Tensor], gate: Tensor, *, steps: int, lr: float, weight_decay: float
) -> tuple[list[Tensor], Tensor]:
    """Weights after training from ``start``, and d outer / d gate through that whole training.

    Exact, as if all steps were one graph, but the graph of a step is built when the way back comes to it: memory is
    that of one step, and of weights and moments at each.
    """
    gate = gate.detach().requires_grad_()

    def step(state: Sequence[Tensor], number: int, *, create_graph: bool) -> list[Tensor]:
        weights = state[: len(start)]
        slopes = torch.autograd.grad(inner(weights, gate), weights, create_graph=create_graph, materialize_grads=True)
        decayed = [slope + weight_decay * weight for slope, weight in zip(slopes, weights, strict=True)]
        return adam(state, decayed, number, lr)

    state = [weight.detach() for weight in start] + [torch.zeros_like(w) for _ in range(2) for w in start]
    visited = []
    for number in range(1, steps + 1):
        visited.append(state)
        state = [part.detach() for part in step(_leaves(state), number, create_graph=False)]

    weights = _leaves(state[: len(start)])
    *to_weights, to_gate = torch.autograd.grad(outer(weights, gate), [*weights, gate], materialize_grads=True)
    to_state = to_weights + [torch.zeros_like(part) for part in state[len(start) :]]
    for number in range(steps, 0, -1):
        before = _leaves(visited.pop())
        after = step(before, number, create_graph=True)
        *to_state, more = torch.autograd.grad(after, [*before, gate], to_state, materialize_grads=True)
        to_gate = to_gate + more
    return [weight.detach() for weight in weights], to_gate


def adam(state: Sequence[Tensor], slopes: Sequence[Tensor], number: int, lr: float) -> list[Tensor]:
    """Weights, first and second moments after one step of Adam, all of it differentiable."""
    count = len(slopes)
    weights, first, second = state[:count], state[count : 2 * count], state[2 * count :]
    first = [0.9 * m + 0.1 * slope for m, slope in zip(first, slopes, strict=True)]
    second = [0.999 * v + 0.001 * slope.square() for v, slope in zip(second, slopes, strict=True)]
    rate = lr / (1 - 0.9**number)
    damped = [(v / (1 - 0.999**number) + DAMPING**2).sqrt() for v in second]
    weights = [w - rate * m / d for w, m, d in zip(weights, first, damped, strict=True)]
    return [*weights, *first, *second]


def _leaves(parts: Sequence[Tensor]) -> list[Tensor]:
    return [part.detach().requires_grad_() for part in parts]


def initial_weights(run: Run, network: Network, names: Sequence[str], seed: int) -> list[Tensor]:
    """Weights of another network of the same kind; of a trained backbone given as the model, its own."""
    module = network.module
    if run.model is None:
        module = run.network(seed).module
    else:
        with seeded(seed):
            reset_own_model(network)
    parameters = dict(module.named_parameters())
    return [parameters[name].detach().clone().to(run.device) for name in names]


def outer_labels(run: Run, outer: str) -> Tensor:
    """The label of every node that the outer loss looks at, −1 for the others."""
    task = run.task
    labels = torch.full_like(task.y, -1)
    if outer == "self":
        network = fresh_network(run)
        trainer = run.trainer(network)
        epochs = run.training.anchor_epochs
        train(trainer, run.edges, epochs, "anchor", 0.0, run.watch, run.checkpoint)
        labels = task.predict(trainer.logits(run.edges))
        if task.seen is not None:
            unseen = torch.ones(len(labels), dtype=torch.bool, device=labels.device)
            unseen[task.seen] = False
            labels[unseen] = -1
    if outer == "val":
        labels[task.val] = task.y[task.val]
    labels[task.train] = task.y[task.train]
    return labels
