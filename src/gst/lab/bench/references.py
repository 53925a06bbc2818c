"""Rows beside those of the methods: what is reached with no edge, with an ensemble, and with DropEdge, on all edges."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gst.base.randomness import generator, seeded
from gst.lab.bench.cells import Cell
from gst.lab.bench.models import fresh_scores, warm_scores
from gst.methods.retrain import ensemble_logits
from gst.storage.cache import Content
from gst.train.run import Run
from gst.train.trainer import Best, Plain, Progress, in_epoch


def edge_free(run: Run, cell: Cell) -> dict[str, Any]:
    """No edge at all: the dense model's answers from each node's own features, a warm-started MLP and a fresh one."""
    nothing = torch.zeros(run.edges.num_edges, dtype=torch.bool)
    measured: dict[str, Any] = {"edges_kept": 0, **run.frozen_scores(nothing)}
    if "fresh" in cell.models:
        measured |= fresh_scores(run, nothing)
    if "warm" in cell.models:
        measured |= warm_scores(run, nothing)
    return measured


def ensemble(run: Run, cell: Cell) -> dict[str, Any]:
    """Five dense models, their log-probabilities averaged: what Retrain leans on. No edge is removed."""
    logits, task = ensemble_logits(run), run.task
    scores = {split: task.score(logits[getattr(task, split)], split) for split in ("val", "test")}
    return {"edges_kept": run.edges.num_edges, **scores, "agreement": run.agreement(logits)}


def drop_edge(run: Run, cell: Cell) -> dict[str, Any]:
    """DropEdge (Rong et al., ICLR 2020): every epoch trains without a random share of the edges, here the sparsity.

    A regulariser: the model answers on all edges, and no sparse graph comes of it.
    """

    def make() -> Content:
        return {}, _train_dropping(run, cell.sparsity)

    scores = run.store.get("drop-edge", {**run.depends_on_all, "share": cell.sparsity}, make)[1]
    return {"edges_kept": run.edges.num_edges, **scores}


def _train_dropping(run: Run, share: float) -> dict[str, float]:
    epochs, edges = run.training.anchor_epochs + run.training.sparse_epochs, run.edges
    with seeded(run.training.seed + 1):
        trainer = run.trainer(run.network())
        state = Plain(trainer, Best())
        for epoch in run.checkpoint.loop("dense", epochs, state, edges):
            kept = _random_mask(run.view.num_edges, share)
            with in_epoch("dense", epoch):
                trainer.step(run.view.subset(kept))
                val = trainer.evaluate(run.shown(edges, None)[1])
            state.best.offer(val, epoch, trainer.state)
            run.watch(Progress("dense", epoch, epochs, val, state.best.val, 0.0))
    trainer.restore(state.best.kept)
    return {"val": state.best.val, "test": trainer.evaluate(edges, "test")}


def _random_mask(edges: int, share: float) -> Tensor:
    """Keeps exactly E − round(share·E) of the edges."""
    keep, gone = torch.ones(edges, dtype=torch.bool), round(share * edges)
    if gone:
        keep[torch.randperm(edges, generator=generator())[:gone]] = False
    return keep


REFERENCES: dict[str, Callable[[Run, Cell], dict[str, Any]]] = {
    "edge-free": edge_free,
    "ensemble": ensemble,
    "drop-edge": drop_edge,
}
