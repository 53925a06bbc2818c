"""One protocol for every method: the same training budget, chosen by validation, reported on test."""

import time
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from gst.cache import Cache, Content, NoCache, anchor_settings, fingerprint
from gst.graph import EdgeSet
from gst.models import build_network, find_device, reset_parameters
from gst.nn.network import Network, OwnNetwork
from gst.resolve import normal, resolve_name
from gst.result import Result
from gst.settings import Settings, make_settings
from gst.sparsifiers import GST, METHODS
from gst.task import Task
from gst.training import Trainer, Watcher, seeded, silent, train


def sparsify(
    data: Data,
    method: str = "gst",
    *,
    backbone: str = "gcn",
    model: nn.Module | None = None,
    sparsity: float | None = None,
    keep: int | None = None,
    dense: bool = False,
    retrain: bool = False,
    cache: bool | Cache = True,
    watch: Watcher = silent,
    **settings: Any,
) -> Result:
    """Finds a sparse graph and a model for it; one call does the job.

    Args:
        data: a PyG ``Data`` with x, y, edge_index and the three split masks.
        method: a name of ``gst methods``.
        backbone: ``"gcn"``, ``"gin"``, ``"gat"``; or ``model``, your own module of PyG layers.
        sparsity: share of edges to remove; or ``keep``, the number of edges to keep.
        dense: also train on the full graph for as many epochs, for ``metrics["dense_test"]``.
        retrain: also train a fresh model on the sparse graph, for ``metrics["retrain_test"]``.
        cache: keep anchors and dense baselines on disk.
        watch: called with a :class:`~gst.training.Progress` after every epoch.
        settings: fields of :class:`~gst.settings.Settings`, the seed among them.
    """
    start = time.perf_counter()
    method = resolve_name("method", method, METHODS)
    chosen = make_settings(data.get("name"), backbone, settings)
    run = _Run(data, backbone, model, chosen, cache, watch)
    make = METHODS[method].make
    if issubclass(make, GST):
        fitted = GST(
            model, backbone=backbone, sparsity=sparsity, keep=keep, cache=cache, watch=watch, **chosen.model_dump()
        ).fit(data)
        kept, scores, module = fitted.keep_, fitted.scores_, fitted.model_
        metrics = {"val": fitted.val_, "test": run.task.score(fitted.logits_[run.task.test], "test")}
        seconds = fitted.seconds_
        metrics |= run.fresh(kept, "retrain") if retrain else {}
    else:
        transform = make(sparsity=sparsity, keep=keep, seed=chosen.seed)
        kept, edge_scores = transform.select(run.edges)
        scores = run.edges.to_columns(edge_scores, float("inf"))
        seconds = {"anchor": 0.0, "topology": time.perf_counter() - start}
        before = time.perf_counter()
        found = run.fresh(kept, "retrain")
        seconds["sparse"] = time.perf_counter() - before
        metrics = {"val": found["retrain_val"], "test": found["retrain_test"]} | (found if retrain else {})
        module = run.last.module
    metrics |= run.fresh(None, "dense") if dense else {}
    edges_kept = int(kept.sum())
    return Result(
        graph=run.edges.sparse_graph(data, kept),
        edge_mask=run.edges.to_columns(kept, True),
        scores=scores.double(),
        model=module,
        metrics={
            "dataset": data.get("name") or "own data",
            "method": method,
            "backbone": type(model).__name__ if model is not None else normal(backbone),
            "seed": chosen.seed,
            "sparsity": 1 - edges_kept / run.edges.num_edges,
            "edges_total": run.edges.num_edges,
            "edges_kept": edges_kept,
            "directed": run.edges.directed,
            "metric": run.task.metric,
            **metrics,
            "seconds": {**seconds, "total": time.perf_counter() - start},
        },
        settings=chosen,
        own_model=model is not None,
    )


class _Run:
    """Fresh models on one graph, all trained alike: E + D epochs, best validation epoch."""

    def __init__(
        self,
        data: Data,
        backbone: str,
        model: nn.Module | None,
        settings: Settings,
        cache: bool | Cache,
        watch: Watcher,
    ) -> None:
        self.data, self.backbone, self.model, self.settings, self.watch = data, backbone, model, settings, watch
        self.edges, self.task = EdgeSet.from_data(data), Task.from_data(data)
        usable = cache if isinstance(cache, Cache) else Cache() if cache else NoCache()
        self.store = usable if model is None else NoCache()

    def fresh(self, keep: Tensor | None, phase: str) -> dict[str, float]:
        """``{phase}_val`` and ``{phase}_test`` of a model trained from scratch on these edges."""
        if keep is not None:
            return self._train(keep, phase)
        depends = {"data": fingerprint(self.data), "backbone": normal(self.backbone), **anchor_settings(self.settings)}
        depends["sparse_epochs"] = self.settings.sparse_epochs

        def make() -> Content:
            return {}, self._train(None, phase)

        return self.store.get(phase, depends, make)[1]

    def _train(self, keep: Tensor | None, phase: str) -> dict[str, float]:
        settings, device = self.settings, find_device(self.settings.device)
        task = self.task.to(device)
        edges = (self.edges if keep is None else self.edges.subset(keep)).to(device)
        with seeded(settings.seed):
            self.last: Network = build_network(self.model, self.backbone, self.data, task.num_classes, settings)
            if isinstance(self.last, OwnNetwork):
                reset_parameters(self.last.module)
            trainer = Trainer(self.last, task, lr=settings.lr, weight_decay=settings.weight_decay)
            sparsity = 1 - edges.num_edges / self.edges.num_edges
            best = train(trainer, edges, settings.anchor_epochs + settings.sparse_epochs, phase, sparsity, self.watch)
        return {f"{phase}_val": best.val, f"{phase}_test": trainer.evaluate(edges, "test")}
