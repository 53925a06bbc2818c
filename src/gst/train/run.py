"""A graph, its task and the kind of model to train on it: all that a learned method and the protocol need."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base import distributed
from gst.base.errors import InputError
from gst.base.memory import check_memory
from gst.base.modes import usable
from gst.base.names import resolve_name
from gst.base.randomness import seeded
from gst.base.versions import of_method, training
from gst.data.registry import published_name
from gst.graph.edgeset import EdgeSet, check_graph
from gst.graph.partition import partition
from gst.nn import pyg_loaders
from gst.nn.backbones import BACKBONES
from gst.nn.features import as_features
from gst.nn.masker import Masker
from gst.nn.network import Network, OwnNetwork
from gst.sparse.layouts import is_sparse, stored_values
from gst.storage.cache import Cache, Content, NoCache, fingerprint
from gst.storage.checkpoint import Checkpoint, NoCheckpoint
from gst.storage.files import flatten, unflatten
from gst.storage.state_tree import capture, hash_of
from gst.train.batches import Batches, make_batches
from gst.train.footprint import training_memory
from gst.train.models import build_network, check_model, find_device, reset_parameters
from gst.train.settings import anchor_settings, make_settings
from gst.train.task import Task
from gst.train.trainer import Teacher, Trainer, Watcher, silent, train


@dataclass(frozen=True)
class Dense:
    """A network trained plainly on all edges, E + D epochs, at its best."""

    model: dict[str, Tensor]
    logits: Tensor  # in evaluation mode, [N, classes]
    meta: dict[str, float]  # dense_val, dense_test, and the seconds it took


class Problem:
    """Validated once, then the same for every method and every baseline."""

    def __init__(
        self,
        data: Data,
        *,
        backbone: str = "gcn",
        model: nn.Module | None = None,
        cache: bool | Cache = True,
        watch: Watcher = silent,
        checkpoint: NoCheckpoint | None = None,
        **settings: Any,
    ) -> None:
        check_graph(data)
        check_model(model)
        if not callable(watch):
            raise InputError(f"watch is a {type(watch).__name__}: a function that is told of every epoch is needed")
        data = usable(data)
        self.data, self.model, self.watch = data, model, watch
        self.checkpoint = checkpoint or NoCheckpoint()
        self.backbone = resolve_name("backbone", backbone, BACKBONES)
        self.settings = make_settings(published_name(data), self.backbone, settings)
        if model is not None and self.settings.batch == "neighbors":
            raise InputError(
                "batch neighbors is for the backbones of gst: for a model of your own take clusters or full"
            )
        if self.settings.loader == "pyg" and not pyg_loaders.installed():
            raise InputError("setting loader = 'pyg': PyG's loaders need pyg-lib, which is not installed; take gst")
        if distributed.size() > 1 and self.settings.batch == "full":
            raise InputError(f"{distributed.size()} processes share no full batch: take --batch clusters or neighbors")
        task = Task.from_data(data)
        if model is None:  # nobody knows what an own model takes
            sizes = (int(data.num_nodes), data.edge_index.shape[1], data.x.shape[1], task.num_classes)
            stored = stored_values(data.x).numel() if is_sparse(data.x) else None
            smaller = "batch clusters" if self.settings.batch == "full" else "fewer layers"
            remedy = f"a smaller hidden, {smaller} or a machine with more would help"
            needed = training_memory(*sizes, self.backbone, self.settings, stored)
            check_memory(needed, "training on this graph", remedy)
        edges = EdgeSet.from_data(data)
        self.device = find_device(self.settings.device)
        self.edges, self.task = edges.to(self.device), task.to(self.device)
        self.x = as_features(data.x.to(self.device))
        # the code of an own model is no part of a key, so its anchor could be found by a model that it is not of
        stores = cache if isinstance(cache, Cache) else Cache() if cache else NoCache()
        self.store = self.checkpoint.store if model is not None or isinstance(stores, NoCache) else stores

    @cached_property
    def seen(self) -> Tensor | None:
        """[E] which edges training sees: not those of validation and test nodes, if the setting is inductive."""
        return self._among(self.task.val, self.task.test)

    @cached_property
    def judged(self) -> Tensor | None:
        """[E] which edges validation sees: not those of test nodes, if the setting is inductive."""
        return self._among(self.task.test)

    def _among(self, *hidden: Tensor) -> Tensor | None:
        if self.settings.setting == "transductive":
            return None
        there = torch.ones(self.edges.num_nodes, dtype=torch.bool, device=self.device)
        there[torch.cat(hidden)] = False
        seen = there[self.edges.pairs].all(0)
        if not bool(seen.any()):
            raise InputError("setting inductive: no edge joins two nodes that training may see")
        return seen

    @cached_property
    def view(self) -> EdgeSet:
        """The edges that training sees."""
        return self.edges if self.seen is None else self.edges.subset(self.seen)

    def of_view(self, values: Tensor) -> Tensor:
        """One value per edge of the view from one per edge."""
        return values if self.seen is None else values[self.seen]

    def shown(self, edges: EdgeSet, keep: Tensor | None) -> tuple[EdgeSet, EdgeSet]:
        """What training and what validation see of ``edges``, which are those kept (None: all)."""
        if self.seen is None or self.judged is None:
            return edges, edges
        kept = torch.ones_like(self.seen) if keep is None else keep.to(self.device)
        return self.edges.subset(kept & self.seen), self.edges.subset(kept & self.judged)

    def on(self, data: Data) -> "Problem":
        """The same problem on another graph."""
        shared: dict[str, Any] = {"cache": self.store, "watch": self.watch, "checkpoint": self.checkpoint}
        return Problem(data, backbone=self.backbone, model=self.model, **shared, **self.settings.model_dump())

    @cached_property
    def _print(self) -> str:
        return fingerprint(self.data)

    @property
    def depends(self) -> dict[str, Any]:
        """What training on the full graph depends on: the key of everything cached."""
        return {"data": self._print, "training": self._training, **anchor_settings(self.settings)}

    @property
    def _training(self) -> str:
        return training("own" if self.model is not None else self.backbone, self.settings.batch)

    def begin(self, method: str, **chosen: Any) -> None:
        """Tells the checkpoint, if there is one, what is about to run, down to the last value that matters."""
        if isinstance(self.checkpoint, Checkpoint):
            own = {} if self.model is None else {"model": f"{type(self.model).__name__} {hash_of(capture(self.model))}"}
            data = {"data": self._print, "backbone": self.backbone, "training": self._training}
            algorithm = self.settings.recipe if method.lower() == "gst" else method.lower()
            chosen |= {"method": method, "search": of_method(algorithm)}
            self.checkpoint.begin({**chosen, **own, **data, **self.settings.model_dump()})

    def network(self, seed: int | None = None) -> Network:
        """A new network: a backbone with weights of a seed (None: the run's), or a copy of the user's model."""
        with seeded(self.settings.seed if seed is None else seed):
            words = (self.model, self.backbone, self.data, self.task.num_classes, self.settings)
            return build_network(*words, x=self.x)

    def trainer(self, network: Network, masker: Masker | None = None, teacher: Teacher | None = None) -> Trainer:
        """A new optimiser for it."""
        words: dict[str, Any] = {"masker": masker, "x": self.x, "batches": self._batches, "teacher": teacher}
        return Trainer(network, self.task, lr=self.settings.lr, weight_decay=self.settings.weight_decay, **words)

    @cached_property
    def _batches(self) -> Batches | None:
        def find(number: int) -> Tensor:
            def make() -> Content:
                own = self.settings.loader == "gst"
                part = (
                    partition(self.view, number, self.settings.seed) if own else pyg_loaders.clusters(self.view, number)
                )
                return {"part": part}, {}

            return self.store.get("clusters", {**self.depends, "clusters": number}, make)[0]["part"].to(self.device)

        return make_batches(self.settings, find, self.task)

    def train_fresh(
        self, keep: Tensor | None, phase: str, teacher: Teacher | None = None
    ) -> tuple[Network, dict[str, float]]:
        """A model from scratch on these edges (None: all), E + D epochs; its ``{phase}_val`` and ``{phase}_test``."""
        network = self.network()
        edges = self.edges if keep is None else self.edges.subset(keep.to(self.device))
        epochs = self.settings.anchor_epochs + self.settings.sparse_epochs
        with seeded(self.settings.seed + 1):
            if isinstance(network, OwnNetwork):
                reset_parameters(network.module)
            trainer = self.trainer(network, teacher=teacher)
            sparsity = 1 - edges.num_edges / self.edges.num_edges
            seen, judged = self.shown(edges, keep)
            best = train(trainer, seen, epochs, phase, sparsity, self.watch, self.checkpoint, judged)
        return network, {f"{phase}_val": best.val, f"{phase}_test": trainer.evaluate(edges, "test")}

    @cached_property
    def dense(self) -> Dense:
        """Plain training on all edges, done once and kept."""

        def make() -> Content:
            start = self.checkpoint.clock()
            network, scores = self.train_fresh(None, "dense")
            with torch.no_grad():
                tensors = {"logits": network.logits(self.edges), **flatten("model", network.module.state_dict())}
            return tensors, {**scores, "seconds": self.checkpoint.clock() - start}

        depends = {**self.depends, "sparse_epochs": self.settings.sparse_epochs}
        tensors, meta = self.store.get("dense-model", depends, make)
        tensors = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        return Dense(unflatten("model", tensors), tensors["logits"], meta)

    def answers(self, network: Network, keep: Tensor | None) -> Tensor:
        """Evaluation-mode logits of a network on these edges (None: all)."""
        edges = self.edges if keep is None else self.edges.subset(keep.to(self.device))
        return self.trainer(network).logits(edges)

    def agreement(self, logits: Tensor) -> float:
        """Share of all nodes that a model with these logits answers as the dense one does on all edges."""
        return self.task.agreement(logits.to(self.device), self.dense.logits)

    def distilled_scores(self, keep: Tensor) -> dict[str, float]:
        """Scores of fresh models that also learn from the dense one's answers: on these edges, and on none at all.

        The second, ``edgeless_…``, is the control: what it reaches, no edge is needed for.
        """
        if self.settings.batch != "full" or self.settings.setting != "transductive":
            raise InputError("distill is for the full batch and the transductive setting: give both")
        teacher = Teacher.of(self.task, self.dense.logits)
        with_edges = self.train_fresh(keep, "distilled", teacher)[1]
        return with_edges | self.train_fresh(torch.zeros_like(keep), "edgeless", teacher)[1]

    def dense_scores(self) -> dict[str, float]:
        """``dense_val`` and ``dense_test``."""
        return {name: self.dense.meta[name] for name in ("dense_val", "dense_test")}
