"""A graph, its task and the kind of model to train on it: all that a learned method and the protocol need."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.artifact import flatten, unflatten
from gst.cache import Cache, Content, NoCache, anchor_settings, fingerprint
from gst.checkpoint import Checkpoint, NoCheckpoint
from gst.graph import EdgeSet, check_graph
from gst.limits import check_memory, training_memory
from gst.models import build_network, find_device, reset_parameters
from gst.nn.backbones import BACKBONES
from gst.nn.features import as_features
from gst.nn.masker import Masker
from gst.nn.network import Network, OwnNetwork
from gst.resolve import resolve_name
from gst.settings import make_settings
from gst.state import capture, hash_of
from gst.task import Task
from gst.training import Trainer, Watcher, seeded, silent, train


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
        self.data, self.model, self.watch = data, model, watch
        self.checkpoint = checkpoint or NoCheckpoint()
        self.backbone = resolve_name("backbone", backbone, BACKBONES)
        self.settings = make_settings(data.get("name"), self.backbone, settings)
        check_graph(data)
        task = Task.from_data(data)
        if model is None:  # nobody knows what an own model takes
            sizes = (int(data.num_nodes), data.edge_index.shape[1], data.x.shape[1], task.num_classes)
            remedy = "a smaller hidden, fewer layers or a machine with more would help"
            check_memory(training_memory(*sizes, self.backbone, self.settings), "training on this graph", remedy)
        edges = EdgeSet.from_data(data)
        self.device = find_device(self.settings.device)
        self.edges, self.task = edges.to(self.device), task.to(self.device)
        self.x = as_features(data.x.to(self.device))
        # the code of an own model is no part of a key, so its anchor could be found by a model that it is not of
        stores = cache if isinstance(cache, Cache) else Cache() if cache else NoCache()
        self.store = self.checkpoint.store if model is not None or isinstance(stores, NoCache) else stores

    def on(self, data: Data) -> "Problem":
        """The same problem on another graph."""
        shared: dict[str, Any] = {"cache": self.store, "watch": self.watch, "checkpoint": self.checkpoint}
        return Problem(data, backbone=self.backbone, model=self.model, **shared, **self.settings.model_dump())

    @property
    def depends(self) -> dict[str, Any]:
        """What training on the full graph depends on: the key of everything cached."""
        return {"data": fingerprint(self.data), "backbone": self.backbone, **anchor_settings(self.settings)}

    def begin(self, **chosen: Any) -> None:
        """Tells the checkpoint, if there is one, what is about to run, down to the last value that matters."""
        if isinstance(self.checkpoint, Checkpoint):
            own = {} if self.model is None else {"model": f"{type(self.model).__name__} {hash_of(capture(self.model))}"}
            data = {"data": fingerprint(self.data), "backbone": self.backbone}
            self.checkpoint.begin({**chosen, **own, **data, **self.settings.model_dump()})

    def network(self, seed: int | None = None) -> Network:
        """A new network: a backbone with weights of a seed (None: the run's), or a copy of the user's model."""
        with seeded(self.settings.seed if seed is None else seed):
            return build_network(self.model, self.backbone, self.data, self.task.num_classes, self.settings)

    def trainer(self, network: Network, masker: Masker | None = None) -> Trainer:
        """A new optimiser for it."""
        rates = {"lr": self.settings.lr, "weight_decay": self.settings.weight_decay}
        return Trainer(network, self.task, masker=masker, x=self.x, **rates)

    def train_fresh(self, keep: Tensor | None, phase: str) -> tuple[Network, dict[str, float]]:
        """A model from scratch on these edges (None: all), E + D epochs; its ``{phase}_val`` and ``{phase}_test``."""
        network = self.network()
        edges = self.edges if keep is None else self.edges.subset(keep.to(self.device))
        epochs = self.settings.anchor_epochs + self.settings.sparse_epochs
        with seeded(self.settings.seed + 1):
            if isinstance(network, OwnNetwork):
                reset_parameters(network.module)
            trainer = self.trainer(network)
            sparsity = 1 - edges.num_edges / self.edges.num_edges
            best = train(trainer, edges, epochs, phase, sparsity, self.watch, self.checkpoint)
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

    def dense_scores(self) -> dict[str, float]:
        """``dense_val`` and ``dense_test``."""
        return {name: self.dense.meta[name] for name in ("dense_val", "dense_test")}
