"""Graph Sparse Training (Zhang et al., ICML 2024)."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.anchor import Anchor, train_anchor
from gst.artifact import flatten, unflatten
from gst.cache import Cache, Content, NoCache, anchor_settings, fingerprint
from gst.criteria.equilibria import combine
from gst.criteria.semantic import semantic_scores
from gst.criteria.topology import topology_scores
from gst.errors import InputError
from gst.graph import EdgeSet
from gst.models import build_network, find_device
from gst.nn.features import as_features
from gst.nn.masker import Masker
from gst.schedule import inverse_power, num_updates, swap_count
from gst.select import budget, exchange, top_k
from gst.settings import Settings, make_settings
from gst.task import Task
from gst.training import Best, Progress, Trainer, Watcher, seeded, silent


class GST:
    r"""Trains a network and its sparse graph together.

    1. *Anchor*: network and masker train on the full graph m_g ⊙ A; the best validation epoch becomes the anchor.
    2. *One-shot*: the edges of highest m_g^A stay, exactly as many as the budget says.
    3. *Sparse phase*: training goes on; every ΔT epochs the kept edges of lowest importance are exchanged for the
       pruned ones of highest, φ = β_s φ_sema + β_t φ_topo.

    Args:
        model: any ``nn.Module`` of PyG ``MessagePassing`` layers, trained as a copy; instead of ``backbone``.
        backbone: ``"gcn"``, ``"gin"`` or ``"gat"``.
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.
        cache: whether anchors are kept on disk (never those of an own ``model``), or the :class:`~gst.cache.Cache`.
        watch: called with a :class:`~gst.training.Progress` after every epoch.
        settings: any field of :class:`~gst.settings.Settings`; the rest is the paper's choice for ``data.name``.

    ``fit`` sets ``mask_`` and ``scores_`` (one per column of ``edge_index``), ``model_``, ``anchor_``, ``history_``,
    ``settings_``, ``edges_``, ``keep_`` (one per edge), ``logits_``, ``val_`` and ``seconds_``.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = GST(sparsity=0.5, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> int(est.keep_.sum()) == est.edges_.num_edges - round(0.5 * est.edges_.num_edges)
    True
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        *,
        backbone: str = "gcn",
        sparsity: float | None = None,
        keep: int | None = None,
        cache: bool | Cache = True,
        watch: Watcher = silent,
        **settings: Any,
    ) -> None:
        budget(1, sparsity, None if keep is None else min(keep, 1))  # a bad budget is refused before any work
        make_settings(None, backbone, settings)
        self.model, self.backbone, self.sparsity, self.keep = model, backbone, sparsity, keep
        self.cache, self.watch, self.settings = cache, watch, settings

    def fit(self, data: Data, anchor: Anchor | None = None) -> "GST":
        """Finds the sparse graph; ``anchor`` reuses the ``anchor_`` of an earlier fit on the same data."""
        settings = make_settings(data.get("name"), self.backbone, self.settings)
        edges, task = EdgeSet.from_data(data), Task.from_data(data)
        kept = budget(edges.num_edges, self.sparsity, self.keep)
        device = find_device(settings.device)
        x, edges, task = as_features(data.x.to(device)), edges.to(device), task.to(device)

        with seeded(settings.seed):
            network = build_network(self.model, self.backbone, data, task.num_classes, settings)
            masker = Masker(data.x.shape[1], settings.masker_hidden, settings.mask_deviation).to(device)

        def new_trainer() -> Trainer:
            optimiser = {"lr": settings.lr, "weight_decay": settings.weight_decay}
            return Trainer(network, task, masker=masker, x=x, **optimiser)

        store = self._store()
        depends = {"data": fingerprint(data), "backbone": self.backbone, **anchor_settings(settings)}
        if anchor is None:
            with seeded(settings.seed + 1):  # each phase has its own numbers: a cached anchor changes nothing after it
                make = partial(_pack, new_trainer, edges, settings.anchor_epochs, self.watch)
                anchor = _unpack(store.get("anchor", depends, make), device)

        topology, topology_seconds = None, 0.0
        if settings.topology and settings.tune and kept < edges.num_edges:
            topology, topology_seconds = self._topology(store, depends, edges, anchor, settings)

        start = time.perf_counter()
        with seeded(settings.seed + 2):
            trainer = new_trainer()
            trainer.restore({"model": anchor.model, "masker": anchor.masker})
            best, self.history_ = sparse_phase(trainer, anchor, edges, topology, kept, settings, self.watch)
        trainer.restore(best.kept)
        keep = best.kept["keep"]
        importance = edge_importance(trainer, anchor, edges, topology, keep, settings)
        seconds = time.perf_counter() - start

        self.keep_ = keep.cpu()
        self.logits_ = trainer.logits(edges.subset(keep)).cpu()
        self.settings_, self.anchor_, self.model_, self.val_ = settings, anchor, network.module, best.val
        self.edges_ = edges.to(torch.device("cpu"))
        self.mask_ = self.edges_.to_columns(self.keep_, True)
        self.scores_ = self.edges_.to_columns(importance.cpu(), torch.inf)
        self.seconds_ = {"anchor": anchor.seconds, "topology": topology_seconds, "sparse": seconds}
        return self

    def transform(self, data: Data) -> Data:
        """The sparse graph: ``data`` with only the kept columns of ``edge_index`` and of every edge-level attribute."""
        if not hasattr(self, "mask_"):
            raise InputError("this GST has not been fitted: call fit(data) first")
        if data.edge_index.shape[1] != self.mask_.numel():
            raise InputError(
                f"data has {data.edge_index.shape[1]} columns, the fitted graph {self.mask_.numel()}: "
                "transform takes the graph that fit has seen"
            )
        return self.edges_.sparse_graph(data, self.keep_)

    def fit_transform(self, data: Data) -> Data:
        return self.fit(data).transform(data)

    def _store(self) -> Cache:
        if isinstance(self.cache, Cache):
            return self.cache
        # the code of an own model is no part of the key, so its anchor could be found by a model it is not of
        return Cache() if self.cache and self.model is None else NoCache()

    def _topology(
        self, store: Cache, depends: dict[str, Any], edges: EdgeSet, anchor: Anchor, settings: Settings
    ) -> tuple[Tensor, float]:
        """φ_topo, computed once an anchor."""
        chosen: dict[str, Any] = {"matrix": settings.matrix, "eigenpairs": settings.eigenpairs, "seed": settings.seed}

        def make() -> Content:
            start = time.perf_counter()
            scores = topology_scores(edges, anchor.mask, **chosen)
            return {"scores": scores}, {"seconds": time.perf_counter() - start}

        tensors, meta = store.get("topology", {**depends, **chosen}, make)
        return tensors["scores"].to(anchor.mask.device), meta["seconds"]


def sparse_phase(
    trainer: Trainer,
    anchor: Anchor,
    edges: EdgeSet,
    topology: Tensor | None,
    kept: int,
    settings: Settings,
    watch: Watcher,
) -> tuple[Best, list[dict[str, Any]]]:
    """Trains on m_g ⊙ M_g ⊙ A from the anchor on, refining M_g; the best validation epoch and the history."""
    keep = top_k(anchor.mask, kept)  # one-shot
    sparse = edges.subset(keep)
    updates = num_updates(settings.sparse_epochs, settings.interval)
    best, history = Best(), []
    for epoch in range(1, settings.sparse_epochs + 1):
        trainer.step(sparse)
        val = trainer.evaluate(sparse)
        best.offer(val, epoch, lambda keep=keep: {**trainer.state(), "keep": keep})  # type: ignore[misc]
        swapped = 0
        if settings.tune and epoch % settings.interval == 0:
            share = inverse_power(epoch // settings.interval, updates, settings.swap_ratio, settings.decay)
            swapped = swap_count(share, kept, edges.num_edges - kept)
        if swapped:
            scores = edge_importance(trainer, anchor, edges, topology, keep, settings)
            keep = exchange(keep, scores, swapped)
            sparse = edges.subset(keep)
        history.append({"epoch": epoch, "val": val, "swapped": swapped})
        watch(Progress("sparse", epoch, settings.sparse_epochs, val, best.val, 1 - kept / edges.num_edges))
    return best, history


def edge_importance(
    trainer: Trainer, anchor: Anchor, edges: EdgeSet, topology: Tensor | None, keep: Tensor, settings: Settings
) -> Tensor:
    """φ of every edge at the present network, masker and graph."""
    semantic = None
    if settings.semantic or topology is None:
        with torch.no_grad():
            mask = trainer.mask(edges)
        assert mask is not None
        semantic = semantic_scores(trainer.network, trainer.task, anchor.logits, edges, keep, mask)
    return combine(semantic, topology, settings.semantic_weight, settings.topology_weight)


def _pack(new_trainer: Callable[[], Trainer], edges: EdgeSet, epochs: int, watch: Watcher) -> Content:
    """Trains an anchor into the form that is stored."""
    start = time.perf_counter()
    found = train_anchor(new_trainer(), edges, epochs, watch)
    tensors = {"mask": found["mask"], "logits": found["logits"]}
    tensors |= flatten("model", found["model"]) | flatten("masker", found["masker"])
    meta = {"val": found["val"], "epoch": found["epoch"], "seconds": time.perf_counter() - start}
    return tensors, meta


def _unpack(content: Content, device: torch.device) -> Anchor:
    tensors, meta = content
    tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    return Anchor(tensors["mask"], tensors["logits"], unflatten("model", tensors), unflatten("masker", tensors), **meta)
