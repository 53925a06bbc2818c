"""Three models for every sparse graph but the returned one: frozen, warm and fresh; each graph is trained on once."""

import hashlib
from collections.abc import Callable

from torch import Tensor

from gst.base.randomness import seeded
from gst.storage.cache import Content
from gst.storage.files import flatten, unflatten
from gst.train.run import Run
from gst.train.trainer import train


def once_per_graph(run: Run, keep_mask: Tensor, kind: str, make: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The output of ``make``, cached by the kept edges: several methods often end with the same ones."""
    edges = hashlib.blake2b(keep_mask.numpy().tobytes(), digest_size=16).hexdigest()
    return run.store.get(kind, {**run.depends_on_all, "kept": edges}, lambda: ({}, make()))[1]


def fresh_scores(run: Run, keep_mask: Tensor) -> dict[str, float]:
    """``retrain_val`` and ``retrain_test``: a new model, E + D epochs on the sparse graph."""
    return once_per_graph(run, keep_mask, "fresh-scores", lambda: run.train_fresh(keep_mask, "retrain")[1])


def warm_scores(run: Run, keep_mask: Tensor) -> dict[str, float]:
    """``warm_val`` and ``warm_test``: E epochs on the full graph, then D on the sparse one, for every method alike."""
    return once_per_graph(run, keep_mask, "warm-start-scores", lambda: _warm_start(run, keep_mask))


def _warm_start(run: Run, keep_mask: Tensor) -> dict[str, float]:
    network, training = run.network(), run.training

    def make() -> Content:
        with seeded(training.seed + 1):
            trainer = run.trainer(network)
            seen, judged = run.shown(run.edges, None)
            best = train(trainer, seen, training.anchor_epochs, "dense", 0.0, run.watch, run.checkpoint, judged)
        return flatten("model", best.kept["model"]), {"val": best.val}

    tensors, _ = run.store.get("warm-start", run.depends, make)
    network.module.load_state_dict(unflatten("model", tensors))
    edges = run.subset(keep_mask)
    with seeded(training.seed + 2):
        trainer = run.trainer(network)
        seen, judged = run.shown(edges, keep_mask)
        best = train(trainer, seen, training.sparse_epochs, "sparse", 0.0, run.watch, run.checkpoint, judged)
    return {"warm_val": best.val, "warm_test": trainer.evaluate(edges, "test")}
