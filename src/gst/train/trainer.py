"""One loop for everything that learns: step, evaluate, keep a copy of the best."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gst.base import distributed
from gst.base.errors import DivergedError
from gst.graph.edgeset import EdgeSet
from gst.nn.features import Features
from gst.nn.layerwise import layerwise_logits
from gst.nn.masker import Masker
from gst.nn.network import NativeNetwork, Network
from gst.storage.checkpoint import BaseCheckpoint
from gst.train.batches import Batch, Batches
from gst.train.task import Task


@dataclass(frozen=True)
class Progress:
    """One epoch, as reported to a :data:`Watcher`.

    >>> Progress("anchor", epoch=3, epochs=200, val=71.2, best=72.0, sparsity=0.0).phase
    'anchor'
    """

    phase: str  # "anchor", "sparse", "prune", "greedy", "turn", "dense", "retrain"
    epoch: int
    epochs: int
    val: float
    best: float
    sparsity: float  # share of edges removed at this moment
    left: float | None = None  # seconds that the phase still takes, where it can be estimated


Watcher = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """A watcher that reports nothing."""


@contextmanager
def in_epoch(phase: str, epoch: int) -> Iterator[None]:
    """Adds the epoch to the error of a training that diverged."""
    try:
        yield
    except DivergedError as error:
        raise DivergedError(f"epoch {epoch} of the {phase} phase: {error}") from None


@dataclass(frozen=True)
class Teacher:
    """Answers to learn from besides the labels, of nodes outside validation and test."""

    nodes: Tensor  # sorted ids, the training nodes among them
    logits: Tensor  # of these nodes

    @classmethod
    def of(cls, task: Task, logits: Tensor) -> "Teacher":
        pupil = torch.ones(logits.shape[0], dtype=torch.bool, device=logits.device)
        pupil[torch.cat([task.val, task.test])] = False
        pupil[task.train] = True
        return cls(pupil.nonzero().flatten(), logits[pupil])


class Trainer:
    """Trains a network, and a masker if there is one, on any set of edges."""

    def __init__(
        self,
        network: Network,
        task: Task,
        *,
        lr: float,
        weight_decay: float,
        masker: Masker | None = None,
        x: Features | None = None,
        batches: Batches | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        self.network = network
        self.task = task
        self.masker = masker
        self.x = x
        self.batches = batches
        self.teacher = teacher
        self._modules: dict[str, nn.Module] = {"model": network.module} | ({} if masker is None else {"masker": masker})
        self._parameters = [p for module in self._modules.values() for p in module.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(self._parameters, lr=lr, weight_decay=weight_decay)

    @property
    def layerwise(self) -> bool:
        """Whether the whole graph is passed one layer at a time: mini-batches are for graphs too large for more."""
        return self.batches is not None and isinstance(self.network, NativeNetwork)

    def mask(self, edges: EdgeSet) -> Tensor | None:
        """m_g of these edges; None without a masker."""
        if self.masker is None or edges.num_edges == 0:
            return None
        assert self.x is not None
        return self.masker.everywhere(self.x, edges) if self.layerwise else self.masker(self.x, edges)

    def step(self, edges: EdgeSet) -> None:
        """One epoch of training with the task loss: one full batch, or many small ones."""
        if self.batches is not None:
            distributed.share_random_seed()
            for batch in self.batches.epoch(edges):
                self._update(batch)
            return
        self.network.module.train()
        self.optimizer.zero_grad()
        self._loss(edges).backward()
        self.optimizer.step()

    def _loss(self, edges: EdgeSet) -> Tensor:
        """Cross-entropy on the training nodes; with a teacher, also the divergence from its answers."""
        if self.teacher is None:
            return self.task.loss(self.network.logits(edges, self.mask(edges), self.task.train))
        logits = self.network.logits(edges, self.mask(edges), self.teacher.nodes)
        labelled = torch.searchsorted(self.teacher.nodes, self.task.train)
        return self.task.loss(logits[labelled]) + self.task.divergence(self.teacher.logits, logits)

    def _update(self, batch: Batch) -> None:
        """One step with the mean loss over the targets of all workers."""
        count = batch.targets.numel()
        total = int(distributed.sum_(torch.tensor(count)))
        if total == 0:
            return
        self.network.module.train()
        self.optimizer.zero_grad()
        if count:
            logits = batch.logits(self.network, self.masker, self.x)
            (self.task.cross_entropy(logits, self.task.y[batch.targets]) * (count / total)).backward()
        distributed.sum_gradients(self._parameters)
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, edges: EdgeSet, split: str = "val") -> float:
        """Score of the network on these edges, in evaluation mode and without the masker."""
        return distributed.broadcast(self.task.score(self.logits(edges, None, getattr(self.task, split)), split))

    @torch.no_grad()
    def logits(self, edges: EdgeSet, mask: Tensor | None = None, nodes: Tensor | None = None) -> Tensor:
        """Evaluation-mode logits of some nodes or all."""
        self.network.module.eval()
        if self.batches is not None and isinstance(self.network, NativeNetwork):
            return layerwise_logits(self.network.module, self.network.x, edges, mask, nodes)
        return self.network.logits(edges, mask, nodes)

    def parts(self) -> dict[str, Any]:
        """All that a checkpoint must hold to resume from here."""
        return {**self._modules, "optimizer": self.optimizer}

    def state(self) -> dict[str, Any]:
        """Copies, not references, of everything that learns."""
        return {name: deepcopy(module.state_dict()) for name, module in self._modules.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Puts such copies back."""
        for name, module in self._modules.items():
            module.load_state_dict(state[name])


@dataclass
class Best:
    """The state at the epoch of the highest validation score; of equal scores the first."""

    val: float = -1.0
    epoch: int = 0
    kept: dict[str, Any] = field(default_factory=dict)

    def offer(self, val: float, epoch: int, make: Callable[[], dict[str, Any]]) -> None:
        if val > self.val:
            self.val, self.epoch, self.kept = val, epoch, make()


@dataclass
class Plain:
    """What plain training carries from epoch to epoch."""

    trainer: Trainer
    best: Best = field(default_factory=Best)


def train(
    trainer: Trainer,
    edges: EdgeSet,
    epochs: int,
    phase: str,
    sparsity: float,
    watch: Watcher,
    checkpoint: BaseCheckpoint,
    judge: EdgeSet | None = None,
) -> Best:
    """Plain training on fixed edges, judged on them or others; leaves the network as it was at its best epoch."""
    state = Plain(trainer)
    for epoch in checkpoint.loop(phase, epochs, state, edges):
        with in_epoch(phase, epoch):
            trainer.step(edges)
            val = trainer.evaluate(judge or edges)
        state.best.offer(val, epoch, trainer.state)
        watch(Progress(phase, epoch, epochs, val, state.best.val, sparsity))
    trainer.restore(state.best.kept)
    return state.best
