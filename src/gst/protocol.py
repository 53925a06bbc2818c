"""One protocol for every method: the same training budget, chosen by validation, reported on test."""

import time
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gst.cache import Cache
from gst.graph import EdgeSet
from gst.problem import Problem
from gst.resolve import resolve_name
from gst.result import Result
from gst.sparsifiers import METHODS
from gst.training import Watcher, silent


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
        backbone: a name of :data:`~gst.nn.backbones.BACKBONES`; or ``model``, your own module of PyG layers.
        sparsity: share of edges to remove; or ``keep``, the number of edges to keep.
        dense: also train on the full graph for as many epochs, for ``metrics["dense_test"]``.
        retrain: also train a fresh model on the sparse graph, for ``metrics["retrain_test"]``.
        cache: keep anchors and dense baselines on disk.
        watch: called with a :class:`~gst.training.Progress` after every epoch.
        settings: fields of :class:`~gst.settings.Settings`, the seed among them, and the method's own arguments.
    """
    start = time.perf_counter()
    method = resolve_name("method", method, METHODS)
    make = METHODS[method].make
    own = {name: settings.pop(name) for name in METHODS[method].options if name in settings}

    def problem_of(graph: Data) -> Problem:
        return Problem(graph, backbone=backbone, model=model, cache=cache, watch=watch, **settings)

    problem, weighted = problem_of(data), None
    chosen, task = problem.settings, problem.task
    if METHODS[method].kind == "learned":
        fitted = make(model, backbone=backbone, sparsity=sparsity, keep=keep, **own).fit_problem(problem)
        kept, scores, module, seconds = fitted.keep_, fitted.scores_, fitted.model_, fitted.seconds_
        test = task.score(fitted.logits_.to(problem.device)[task.test], "test")
        metrics = {"val": fitted.val_, "test": test}
        metrics |= problem.train_fresh(kept, "retrain")[1] if retrain else {}
    else:
        edges = EdgeSet.from_data(data)
        transform = make(sparsity=sparsity, keep=keep, seed=chosen.seed, **own)
        kept, edge_scores = transform.select(edges)
        scores = edges.to_columns(edge_scores, float("inf"))
        if own.get("weights") and bool(kept.any()):
            weighted = transform(data)
        scored = time.perf_counter()
        on, which = (problem, kept) if weighted is None else (problem_of(weighted), None)
        network, found = on.train_fresh(which, "retrain")
        seconds = {"anchor": 0.0, "topology": scored - start, "sparse": time.perf_counter() - scored}
        metrics = {"val": found["retrain_val"], "test": found["retrain_test"]} | (found if retrain else {})
        module = network.module
    metrics |= problem.dense_scores() if dense else {}
    edges, edges_kept = problem.edges.to(torch.device("cpu")), int(kept.sum())
    return Result(
        graph=edges.sparse_graph(data, kept) if weighted is None else weighted,
        edge_mask=edges.to_columns(kept, True),
        scores=scores,
        model=module,
        metrics={
            "dataset": data.get("name") or "own data",
            "method": method,
            "options": own,
            "backbone": problem.backbone if model is None else type(model).__name__,
            "seed": chosen.seed,
            "sparsity": 1 - edges_kept / edges.num_edges,
            "edges_total": edges.num_edges,
            "edges_kept": edges_kept,
            "directed": edges.directed,
            "metric": task.metric,
            **metrics,
            "seconds": {**seconds, "total": time.perf_counter() - start},
        },
        settings=chosen,
        own_model=model is not None,
    )
