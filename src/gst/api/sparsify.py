"""One protocol for every method: the same training budget, chosen by validation, reported on test."""

import time
from collections.abc import Mapping
from os import PathLike
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gst.api.result import Result
from gst.base.modes import plain_torch
from gst.base.names import resolve_name
from gst.base.versions import of_method
from gst.methods import METHODS
from gst.methods.base import warn_below
from gst.storage.cache import Cache, Content
from gst.storage.checkpoint import NoCheckpoint, opened
from gst.train.run import Problem
from gst.train.trainer import Watcher, silent


@plain_torch()
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
    distill: bool = False,
    cache: bool | Cache = True,
    watch: Watcher = silent,
    checkpoint: NoCheckpoint | str | PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """Finds a sparse graph and a model for it; one call does the job.

    Args:
        data: a PyG ``Data`` with x, y, edge_index and the three split masks.
        method: a name of ``gst methods``.
        backbone: a name of :data:`~gst.nn.backbones.BACKBONES`; or ``model``, your own module of PyG layers.
        sparsity: share of edges to remove; or ``keep``, the number of edges to keep.
        dense: also train on the full graph for as many epochs, for ``metrics["dense_test"]`` and
            ``metrics["agreement"]``: the share of all nodes (of several labels: of nodes and labels) that the returned
            model answers on the sparse graph as the dense model does on all edges. Recipe deploy has it in any case,
            for it returns that dense model. Below 0.98 an :class:`~gst.base.errors.AgreementWarning` says so.
        retrain: also train a fresh model on the sparse graph, for ``metrics["retrain_test"]``.
        distill: also train a fresh model on the sparse graph that learns from the dense model's answers at nodes
            outside validation and test, for ``metrics["distilled_test"]``, and the control without any edge, for
            ``metrics["edgeless_test"]``.
        cache: keep anchors and dense baselines on disk.
        watch: called with a :class:`~gst.train.trainer.Progress` after every epoch.
        checkpoint: folder for the state of the work, which the same call in a later process goes on with.
        settings: fields of :class:`~gst.train.settings.Settings`, the seed among them, and the method's own arguments.
    """
    start = time.perf_counter()
    method = resolve_name("method", method, METHODS)
    own = {name: settings.pop(name) for name in METHODS[method].options if name in settings}
    with opened(checkpoint) as place:
        problem = Problem(data, backbone=backbone, model=model, cache=cache, watch=watch, checkpoint=place, **settings)
        words: dict[str, Any] = {"sparsity": sparsity, "keep": keep, "dense": dense, "retrain": retrain}
        problem.begin(method=method, options=own, **words, **({"distill": True} if distill else {}))
        result = solve(problem, method, own, **words, distill=distill)
    result.metrics["seconds"]["total"] = place.before + time.perf_counter() - start
    warn_of_agreement(result.metrics)
    return result


def warn_of_agreement(metrics: Mapping[str, Any]) -> None:
    """An :class:`~gst.base.errors.AgreementWarning` where a run has changed more answers than it should."""
    name = f"{metrics['method']} ({metrics['recipe']})" if "recipe" in metrics else metrics["method"]
    warn_below(metrics["agreement"], f"{name} at sparsity {metrics['sparsity']:.1%}", stacklevel=5)


def solve(
    problem: Problem,
    method: str,
    own: dict[str, Any],
    *,
    sparsity: float | None = None,
    keep: int | None = None,
    dense: bool = False,
    retrain: bool = False,
    distill: bool = False,
) -> Result:
    """The same for a problem at hand, which may serve many calls; ``own``: the method's own arguments."""
    make, data, model, weighted = METHODS[method].make, problem.data, problem.model, None
    chosen, task = problem.settings, problem.task
    if METHODS[method].kind == "learned":
        fitted = make(model, backbone=problem.backbone, sparsity=sparsity, keep=keep, **own).fit_problem(problem)
        kept, scores, module, seconds = fitted.keep_, fitted.scores_, fitted.model_, fitted.seconds_
        logits, agreement = fitted.logits_.to(problem.device), fitted.agreement_
        if agreement is None and dense:
            agreement = problem.agreement(logits)
        metrics: dict[str, Any] = {"val": fitted.val_, "test": task.score(logits[task.test], "test")}
        metrics |= problem.train_fresh(kept, "retrain")[1] if retrain else {}
    else:
        clock = problem.checkpoint.clock
        transform = make(sparsity=sparsity, keep=keep, seed=chosen.seed, **own)

        def select() -> Content:
            start = clock()
            kept, scores = transform.select(problem.edges.to(torch.device("cpu")))
            return {"kept": kept, "scores": scores}, {"seconds": clock() - start}

        depends = {**problem.depends, "search": of_method(method), "sparsity": sparsity, "keep": keep, **own}
        tensors, meta = problem.checkpoint.store.get("selection", depends, select)
        kept, scored = tensors["kept"], clock()
        scores = problem.edges.to(torch.device("cpu")).to_columns(tensors["scores"], float("inf"))
        if own.get("weights") and bool(kept.any()):
            weighted = transform(data)
        on, which = (problem, kept) if weighted is None else (problem.on(weighted), None)
        network, found = on.train_fresh(which, "retrain")
        seconds = {"anchor": 0.0, "topology": meta["seconds"], "sparse": clock() - scored}
        metrics = {"val": found["retrain_val"], "test": found["retrain_test"]} | (found if retrain else {})
        module, agreement = network.module, problem.agreement(on.answers(network, which)) if dense else None
    metrics |= problem.dense_scores() if dense else {}
    metrics["agreement"] = agreement
    metrics |= problem.distilled_scores(kept.to(problem.device)) if distill else {}
    edges, edges_kept = problem.edges.to(torch.device("cpu")), int(kept.sum())
    return Result(
        graph=edges.sparse_graph(data, kept) if weighted is None else weighted,
        edge_mask=edges.to_columns(kept, True),
        scores=scores,
        model=module,
        metrics={
            "dataset": data.get("name") or "own data",
            "method": method,
            **({"recipe": chosen.recipe} if method == "gst" else {}),
            "options": own,
            "backbone": problem.backbone if model is None else type(model).__name__,
            "seed": chosen.seed,
            "sparsity": 1 - edges_kept / edges.num_edges,
            "edges_total": edges.num_edges,
            "edges_kept": edges_kept,
            "directed": edges.directed,
            "metric": task.metric,
            **metrics,
            "seconds": seconds,
        },
        settings=chosen,
        own_model=model is not None,
    )
