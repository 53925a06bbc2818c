"""A graph, its task and the kind of network to train on it: what every method works on."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAE

from gst.base import distributed
from gst.base.errors import InputError
from gst.base.memory import check_memory
from gst.base.modes import without_inference_tensors
from gst.base.randomness import seeded
from gst.base.versions import training as training_version
from gst.graph.cap import Cap
from gst.graph.edgeset import By, EdgeSet, check_graph
from gst.graph.partition import partition
from gst.nn import pyg_loaders
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.features import as_features
from gst.nn.masker import Masker
from gst.nn.network import NativeNetwork, Network
from gst.nn.trained import TrainedNetwork
from gst.sparse.layouts import is_sparse, stored_values
from gst.storage.cache import BaseCache, Content, as_cache, fingerprint
from gst.storage.checkpoint import BaseCheckpoint, NoCheckpoint
from gst.storage.files import flatten, unflatten
from gst.storage.state_tree import capture, hash_of
from gst.train.batches import Batches, make_batches
from gst.train.footprint import training_memory
from gst.train.models import build_network, check_model, find_device, reset_parameters
from gst.train.settings import Batching, Training
from gst.train.task import Task, task_of
from gst.train.trainer import Teacher, Trainer, Watcher, silent, train


@dataclass(frozen=True)
class Dense:
    """The network that answers on all edges."""

    model: dict[str, Tensor]
    logits: Tensor  # in evaluation mode, [N, classes]
    val: float
    test: float
    seconds: float  # its training


class Run:
    """Validated once, then the same for every method and every baseline; nothing in it is changed from outside.

    Args:
        data: a PyG ``Data`` with x, y, edge_index and the three split masks.
        backbone: the network to train, by name.
        model: the user's own network instead.
        trained: take ``model`` as it is for the dense network, instead of training a copy of it; then no labels are
            needed.
        head: what the outputs of a trained model mean, see :func:`~gst.train.task.task_of`.
        output: which part of what a trained model returns holds its answers.
        training: how to train.
        batching: what a training step sees.
        by: what counts as an edge of an undirected graph, a pair or an arc; it changes no training on all edges.
        max_degree: the most neighbours that a node may read in the sparse graph (None: any number); by arcs alone.
        cache: whether what can be reused is kept on disk (never of an own ``model``), or the cache to keep it in.
        watch: called with a :class:`~gst.train.trainer.Progress` after every epoch.
        checkpoint: where the state of the work is kept.
    """

    def __init__(
        self,
        data: Data,
        *,
        backbone: str = "gcn",
        model: nn.Module | None = None,
        trained: bool = False,
        head: str = "auto",
        output: int | str | None = None,
        training: Training | None = None,
        batching: Batching | None = None,
        by: By = "pairs",
        max_degree: int | None = None,
        cache: bool | BaseCache = True,
        watch: Watcher = silent,
        checkpoint: BaseCheckpoint | None = None,
    ) -> None:
        self.check_graph(data)
        check_model(model)
        self.data = without_inference_tensors(data)
        self.model = model
        self.trained = trained
        self.max_degree = max_degree
        self.compensated = False  # whether nodes have self-loops that the data do not have
        self.watch = watch
        self.checkpoint = checkpoint or NoCheckpoint()
        self.backbone = self.resolve(backbone)
        self.training = training or Training()
        self.batching = batching or Batching()
        self._check_batching()
        self.head, self.output = head, output
        self.device = find_device(self.training.device)
        task = self.make_task()
        self._num_classes = task.num_classes
        self.check_memory()
        self.edges = self.make_edges(by).to(self.device)
        self.task = task.to(self.device)
        self.x: Any = self.make_features()
        # keys do not hold the code of an own model, so another model could be given its anchor
        shared = as_cache(cache)
        self.store = shared if shared and model is None else self.checkpoint.store

    # ---- what a run on another kind of graph does in its own way

    def check_graph(self, data: Any) -> None:
        """Refuses an invalid graph."""
        check_graph(data)

    def resolve(self, backbone: str) -> str:
        """The canonical name of a backbone."""
        return BACKBONES.resolve(backbone)

    def make_task(self) -> Task:
        return self._trained_task() if self.trained else Task.from_data(self.data)

    def make_edges(self, by: By) -> EdgeSet:
        return EdgeSet.from_data(self.data, by)

    def make_features(self) -> Any:
        """The features as networks and the masker take them."""
        x = self.data.get("x")  # a trained model may do without
        return torch.zeros(self.edges.num_nodes, 0) if x is None else as_features(x.to(self.device))

    def new_masker(self, hidden: int, deviation: float) -> Masker:
        """A freshly initialised Ψ; the caller seeds."""
        return Masker(self.x.shape[1], hidden, deviation).to(self.device)

    def make_network(self) -> Network:
        """A new network; the caller seeds."""
        if self.trained and self.model is not None:
            return self._as_it_is()
        return build_network(self.model, self.backbone, self.data, self.task.num_classes, self.training, x=self.x)

    # ---- the same for all

    def _trained_task(self) -> Task:
        """The task of the model at hand, by its outputs."""
        assert self.model is not None
        network = self._as_it_is()
        outputs = network.outputs if isinstance(network, TrainedNetwork) else network.module.outputs
        encodes = isinstance(getattr(self.model, "_orig_mod", self.model), GAE)
        return task_of(self.data, self.head, int(outputs), type(self.model).__name__, encodes=encodes)  # type: ignore[arg-type]

    def _as_it_is(self) -> "TrainedNetwork | NativeNetwork":
        """A copy of the user's trained model on the graph."""
        assert self.model is not None
        if isinstance(self.model, Backbone):
            network = build_network(self.model, self.backbone, self.data, None, self.training)
            assert isinstance(network, NativeNetwork)
            return network
        return TrainedNetwork(self.model, self.data, self.output, self.device)

    def _check_batching(self) -> None:
        batch = self.batching.batch
        if self.model is not None and batch == "neighbors":
            raise InputError(
                "batch neighbors is for the backbones of gst: for a model of your own take clusters or full"
            )
        if self.batching.loader == "pyg" and not pyg_loaders.installed():
            raise InputError("loader = 'pyg': PyG's loaders need pyg-lib, which is not installed; take gst")
        if distributed.size() > 1 and batch == "full":
            raise InputError(f"{distributed.size()} processes share no full batch: take --batch clusters or neighbors")

    def check_memory(self, **masker: int) -> None:
        """Refuses a training that would not fit, with a masker of this width (``masker_hidden``) if it is given."""
        if self.model is not None:  # what an own model needs is unknown
            return
        x = self.data.x
        sizes = (int(self.data.num_nodes), self.data.edge_index.shape[1], x.shape[1], self._num_classes)
        stored = stored_values(x).numel() if is_sparse(x) else None
        needed = training_memory(*sizes, self.backbone, self.training, self.batching.batch, stored, **masker)
        smaller = "batch clusters" if self.batching.batch == "full" else "fewer layers"
        check_memory(needed, "training on this graph", f"a smaller hidden, {smaller} or a machine with more would help")

    @cached_property
    def seen(self) -> Tensor | None:
        """[E] which edges training sees: if inductive, not those of validation and test nodes; None: all."""
        return self._edges_without(self.task.val, self.task.test)

    @cached_property
    def judged(self) -> Tensor | None:
        """[E] which edges validation sees: if inductive, not those of test nodes; None: all."""
        return self._edges_without(self.task.test)

    def _edges_without(self, *hidden: Tensor) -> Tensor | None:
        if not self.training.inductive:
            return None
        visible = torch.ones(self.edges.num_nodes, dtype=torch.bool, device=self.device)
        visible[torch.cat(hidden)] = False
        seen = visible[self.edges.pairs].all(0)
        if not bool(seen.any()):
            raise InputError("inductive: no edge joins two nodes that training may see")
        return seen

    @cached_property
    def view(self) -> EdgeSet:
        """The edges that training sees."""
        return self.edges if self.seen is None else self.edges.subset(self.seen)

    def of_view(self, values: Tensor) -> Tensor:
        """One value per edge of the view from one value per edge."""
        return values if self.seen is None else values[self.seen]

    def shown(self, edges: EdgeSet, keep_mask: Tensor | None) -> tuple[EdgeSet, EdgeSet]:
        """What training and what validation see of ``edges``, those that ``keep_mask`` keeps (None: all)."""
        if self.seen is None or self.judged is None:
            return edges, edges
        kept = torch.ones_like(self.seen) if keep_mask is None else keep_mask.to(self.device)
        return self.edges.subset(kept & self.seen), self.edges.subset(kept & self.judged)

    @cached_property
    def cap(self) -> Cap | None:
        """Room for kept arcs at every node; None: no limit."""
        return None if self.max_degree is None else Cap.of(self.edges, self.max_degree)

    def top_k(self, scores: Tensor, num_kept: int) -> Tensor:
        """[E] the edges of highest score, as many as are to stay."""
        return self.edges.choose(scores, num_kept) if self.cap is None else self.cap.top_k(scores, num_kept)

    def subset(self, keep_mask: Tensor | None) -> EdgeSet:
        """The kept edges (None: all)."""
        return self.edges if keep_mask is None else self.edges.subset(keep_mask.to(self.device))

    def compensated_by(self, weights: Tensor) -> "Run":
        """The same run, its dense network included, with self-loops of these weights at the nodes."""
        assert self.dense is not None  # of the run without them
        other = copy(self)
        for name in ("seen", "judged", "view", "cap", "_batches"):
            other.__dict__.pop(name, None)
        other.edges, other.compensated = replace(self.edges, loops=self.edges.loops + weights), True
        return other

    def on(self, data: Data) -> "Run":
        """The same run on another graph."""
        return type(self)(
            data,
            backbone=self.backbone,
            model=self.model,
            training=self.training,
            batching=self.batching,
            by=self.edges.by,
            max_degree=self.max_degree,
            cache=self.store,
            watch=self.watch,
            checkpoint=self.checkpoint,
        )

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.data)

    @property
    def model_name(self) -> str:
        """Of the backbone, or of the class of the user's own model."""
        return self.backbone if self.model is None else type(self.model).__name__

    @property
    def version(self) -> str:
        """The version of the code that trains."""
        return training_version("own" if self.model is not None else self.backbone, self.batching.batch)

    @property
    def _depends_on_training(self) -> dict[str, Any]:
        """What a training on all edges for E epochs depends on."""
        settings = self.training.model_dump(exclude={"sparse_epochs"})
        return {"data": self._fingerprint, "training": self.version, **settings, **self.batching.model_dump()}

    @property
    def depends(self) -> dict[str, Any]:
        """The same, and what counts as an edge: the key of whatever is cached that has a value for each of them."""
        counted: dict[str, Any] = {"by": "arcs"} if self.edges.directed else {}
        return {**self._depends_on_training, **counted, **({"compensated": True} if self.compensated else {})}

    @property
    def depends_on_all(self) -> dict[str, Any]:
        """The same for a training of E + D epochs."""
        return {**self.depends, "sparse_epochs": self.training.sparse_epochs}

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Tells the checkpoint what is about to run, down to the last value that matters."""
        model = {} if self.model is None else {"model": f"{type(self.model).__name__} {hash_of(capture(self.model))}"}
        self.checkpoint.begin({**identity, **model, "backbone": self.backbone, **self.depends_on_all})

    def network(self, seed: int | None = None) -> Network:
        """A new network: a backbone with weights of a seed (None: the run's), or a copy of the user's model."""
        with seeded(self.training.seed if seed is None else seed):
            return self.make_network()

    def trainer(self, network: Network, masker: Masker | None = None, teacher: Teacher | None = None) -> Trainer:
        """A new optimiser for it."""
        return Trainer(
            network,
            self.task,
            lr=self.training.lr,
            weight_decay=self.training.weight_decay,
            masker=masker,
            x=self.x,
            batches=self._batches,
            teacher=teacher,
        )

    @cached_property
    def _batches(self) -> Batches | None:
        def clusters(number: int) -> Tensor:
            def make() -> Content:
                if self.batching.loader == "gst":
                    return {"part": partition(self.view, number, self.training.seed)}, {}
                return {"part": pyg_loaders.clusters(self.view, number)}, {}

            return self.store.get("clusters", {**self._depends_on_training, "clusters": number}, make)[0]["part"].to(
                self.device
            )

        return make_batches(self.batching, clusters, self.task)

    def train_fresh(
        self, keep_mask: Tensor | None, phase: str, teacher: Teacher | None = None
    ) -> tuple[Network, dict[str, float]]:
        """A model from scratch on these edges (None: all), E + D epochs; its ``{phase}_val`` and ``{phase}_test``."""
        if self.task.metric is None:
            raise InputError("data has no labels and split to train with: leave out retrain and distill")
        network = self.network()
        edges = self.subset(keep_mask)
        epochs = self.training.anchor_epochs + self.training.sparse_epochs
        with seeded(self.training.seed + 1):
            if self.model is not None:
                reset_parameters(network.module)
            trainer = self.trainer(network, teacher=teacher)
            sparsity = 1 - edges.num_edges / self.edges.num_edges
            seen, judged = self.shown(edges, keep_mask)
            best = train(trainer, seen, epochs, phase, sparsity, self.watch, self.checkpoint, judged)
        return network, {f"{phase}_val": best.val, f"{phase}_test": trainer.evaluate(edges, "test")}

    @cached_property
    def dense(self) -> Dense:
        """The network on all edges: trained plainly, once, and kept; or the user's, if that is trained already."""
        return self._model_as_it_is() if self.trained else self._trained_dense()

    def _trained_dense(self) -> Dense:
        def make() -> Content:
            start = self.checkpoint.clock()
            network, scores = self.train_fresh(None, "dense")
            with torch.no_grad():
                tensors = {"logits": network.logits(self.edges), **flatten("model", network.module.state_dict())}
            return tensors, {**scores, "seconds": self.checkpoint.clock() - start}

        depends = {**self._depends_on_training, "sparse_epochs": self.training.sparse_epochs}
        tensors, meta = self.store.get("dense-model", depends, make)
        tensors = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        scores = meta["dense_val"], meta["dense_test"], meta["seconds"]
        return Dense(unflatten("model", tensors), tensors["logits"], *scores)

    @torch.no_grad()
    def _model_as_it_is(self) -> Dense:
        network = self.network()
        network.module.eval()
        logits = network.logits(self.edges)
        val, test = (self.task.score(logits[getattr(self.task, split)], split) for split in ("val", "test"))
        return Dense(network.module.state_dict(), logits, val, test, seconds=0.0)

    def frozen_scores(self, keep_mask: Tensor) -> dict[str, float]:
        """``frozen_val`` and ``frozen_test``: the dense model on these edges, its weights as they are."""
        network, edges = self.network(), self.subset(keep_mask)
        network.module.load_state_dict(self.dense.model)
        trainer, (_, judged) = self.trainer(network), self.shown(edges, keep_mask)
        return {"frozen_val": trainer.evaluate(judged), "frozen_test": trainer.evaluate(edges, "test")}

    def answers(self, network: Network, keep_mask: Tensor | None) -> Tensor:
        """Evaluation-mode logits of a network on these edges (None: all)."""
        return self.trainer(network).logits(self.subset(keep_mask))

    def agreement(self, logits: Tensor) -> float:
        """Share of all nodes that a model with these logits answers as the dense one does on all edges."""
        return self.task.agreement(logits.to(self.device), self.dense.logits)

    def distilled_scores(self, keep_mask: Tensor) -> dict[str, float]:
        """Scores of fresh models that also learn from the dense one's answers: on these edges, and on none at all.

        The second, ``edgeless_…``, is the control: what it reaches needs no edge.
        """
        if self.batching.batch != "full" or self.training.inductive:
            raise InputError("distill is for batch full and the transductive setting: give both")
        teacher = Teacher.of(self.task, self.dense.logits)
        with_edges = self.train_fresh(keep_mask, "distilled", teacher)[1]
        return with_edges | self.train_fresh(torch.zeros_like(keep_mask), "edgeless", teacher)[1]
