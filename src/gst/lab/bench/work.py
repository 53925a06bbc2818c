"""Runs one cell, in whichever process it lands: from its description to a row."""

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.after.robustness import relocate
from gst.after.spectrum import compare_spectra
from gst.after.structure import facts_of
from gst.api.sparsify import make_method
from gst.base.errors import GSTError
from gst.base.randomness import seeded
from gst.data import load
from gst.graph.edgeset import By, EdgeSet
from gst.graph.select import top_k
from gst.inference.cost import count_macs, paper_macs
from gst.inference.latency import inference_times
from gst.lab.bench.cells import Cell
from gst.lab.bench.rows import Row
from gst.methods import GST, UGS, Sparsifier
from gst.methods.iterative import prune_count
from gst.methods.ugs import train_ticket
from gst.nn.backbones import Backbone
from gst.nn.features import Features
from gst.storage.cache import Cache, Content
from gst.storage.files import flatten, unflatten
from gst.storage.paths import data_root
from gst.train.run import Run
from gst.train.settings import Batching, Training
from gst.train.trainer import train

LATENCY_REPEATS = 15  # more would take a fifth of a cell's time on PubMed
_NOT_ARGUMENTS = ("relocated", "rounds")  # variations of the graph and of tickets, not of the method


@lru_cache(maxsize=2)
def load_once(dataset: str, root: Path | None) -> Data:
    """A data set, read once per process."""
    return load(dataset, root=root)


@lru_cache(maxsize=1)
def shared_run(
    dataset: str, root: Path | None, relocated: float, backbone: str, training: Training, batching: Batching, by: By
) -> Run:
    """The cells of a group, which follow one another, share this."""
    data = load_once(dataset, root)
    if relocated:
        data = relocate(data, relocated, training.seed)
    cache = Cache(data_root(root) / "anchors")
    return Run(data, backbone=backbone, training=training, batching=batching, by=by, cache=cache)


def run_cell(cell: Cell, root: Path | None = None) -> Row:
    """The row of a cell; a failed one says why."""
    torch.set_num_threads(1)
    try:
        measured = _measure_ticket(cell, root) if "rounds" in cell.variation else _measure(cell, root)
    except GSTError as error:
        measured = {"status": "failed", "reason": str(error)}
    except Exception as error:  # whatever it is, it must not stop the other cells
        last = traceback.extract_tb(sys.exc_info()[2])[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        measured = {"status": "failed", "reason": f"{type(error).__name__} in {where}: {' '.join(str(error).split())}"}
    return cell.row(**measured)


def _arguments(cell: Cell) -> dict[str, Any]:
    """The arguments of the cell's method, but for its budget."""
    varied = {name: value for name, value in cell.variation.items() if name not in _NOT_ARGUMENTS}
    return {"backbone": cell.backbone, "seed": cell.seed, **cell.settings, **cell.options, **varied}


def _run_of(cell: Cell, estimator: Sparsifier, root: Path | None) -> Run:
    data = load_once(cell.dataset, root)
    configs = estimator.config(Training, data), estimator.config(Batching, data)
    relocated = cell.variation.get("relocated", 0.0)
    return shared_run(cell.dataset, root, relocated, cell.backbone, *configs, estimator.counts_by)


def _measure(cell: Cell, root: Path | None) -> dict[str, Any]:
    estimator = make_method(cell.method, sparsity=cell.sparsity, **_arguments(cell))
    run = _run_of(cell, estimator, root)
    result = estimator.fit_run(run, dense=True).result_
    found, metrics = estimator.found_, result.metrics
    keep_mask = found.keep_mask.cpu()
    names = ("edges_total", "edges_kept", "metric", "val", "test", "dense_val", "dense_test", "agreement")
    measured = {name: metrics[name] for name in names}
    if found.fresh:  # the returned model is the one that a fresh training gives
        measured |= {"retrain_val": metrics["val"], "retrain_test": metrics["test"]}
    else:
        measured |= fresh_scores(run, keep_mask)
    measured |= warm_scores(run, keep_mask)
    measured["seconds"] = sum(found.seconds.values())
    times = inference_times(result.model, run.data, result.graph, LATENCY_REPEATS)
    measured |= {"dense_ms": times["dense_ms"], "sparse_ms": times["sparse_ms"]}
    measured |= mac_counts(result.model, run.x, run.edges, keep_mask)
    facts = facts_of(run.data, run.edges, keep_mask) if cell.seed == 0 else {}  # kilobytes: one seed is enough
    if cell.spectrum:
        spectra = compare_spectra(run.edges, keep_mask)
        measured |= {"spectrum_top": spectra.top_error, "spectrum_bottom": spectra.bottom_error}
        facts["spectrum"] = spectra.facts()
    return {**measured, "facts": facts}


def mac_counts(model: Backbone, x: Features, edges: EdgeSet, keep_mask: Tensor) -> dict[str, float]:
    """Multiply–accumulates of a forward pass: on the full graph, on the sparse one, and as the paper counts them."""
    graphs = edges, edges.subset(keep_mask)
    dense, sparse = (count_macs(model, x, graph.arcs.shape[1] + graph.num_nodes).total for graph in graphs)
    sparsity = 1 - int(keep_mask.sum()) / edges.num_edges
    return {"macs_dense": dense, "macs_sparse": sparse, "macs_paper": paper_macs(model, edges.num_nodes, sparsity)}


def once_per_graph(run: Run, keep_mask: Tensor, kind: str, make: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The output of ``make``, cached by the kept edges: several methods often end with the same ones."""
    edges = hashlib.blake2b(keep_mask.numpy().tobytes(), digest_size=16).hexdigest()
    return run.store.get(kind, {**run.depends_on_all, "kept": edges}, lambda: ({}, make()))[1]


def fresh_scores(run: Run, keep_mask: Tensor) -> dict[str, float]:
    """``retrain_val`` and ``retrain_test``: a new model, E + D epochs on the sparse graph."""
    return once_per_graph(run, keep_mask, "fresh-scores", lambda: run.train_fresh(keep_mask, "retrain")[1])


def warm_scores(run: Run, keep_mask: Tensor) -> dict[str, float]:
    """``warm_val`` and ``warm_test``: E epochs on the full graph, then D on the sparse one, for every method alike."""
    return once_per_graph(run, keep_mask, "warm-scores", lambda: _warm_start(run, keep_mask))


def _warm_start(run: Run, keep_mask: Tensor) -> dict[str, float]:
    network, training = run.network(), run.training

    def make() -> Content:
        with seeded(training.seed + 1):
            trainer = run.trainer(network)
            best = train(trainer, run.edges, training.anchor_epochs, "dense", 0.0, run.watch, run.checkpoint)
        return flatten("model", best.kept["model"]), {"val": best.val}

    tensors, _ = run.store.get("warm", run.depends, make)
    network.module.load_state_dict(unflatten("model", tensors))
    edges = run.subset(keep_mask)
    with seeded(training.seed + 2):
        trainer = run.trainer(network)
        best = train(trainer, edges, training.sparse_epochs, "sparse", 0.0, run.watch, run.checkpoint)
    return {"warm_val": best.val, "warm_test": trainer.evaluate(edges, "test")}


def _measure_ticket(cell: Cell, root: Path | None) -> dict[str, Any]:
    """A lottery ticket after some rounds: the weights of UGS, on its graph or on GST's with as many edges."""
    ugs = UGS(sparsity=cell.sparsity, **_accepted(UGS, _arguments(cell)))
    run = _run_of(cell, ugs, root)
    num_kept = run.edges.num_edges
    for _ in range(cell.variation["rounds"]):
        num_kept -= prune_count(num_kept, ugs.prune_ratio)
    scores, stages, _ = ugs.path(run, num_kept)
    weight_masks = unflatten("weights", stages[-1].extra)
    keep_mask = top_k(scores, num_kept)
    seconds = sum(stage.seconds for stage in stages)
    if cell.method == "ugs+gst":
        found = GST(keep=num_kept, **_accepted(GST, _arguments(cell))).fit_run(run).found_
        keep_mask = found.keep_mask
        seconds += sum(found.seconds.values())
    network, val = train_ticket(run, keep_mask, weight_masks)
    num_weights = sum(mask.numel() for mask in weight_masks.values())
    return {
        "edges_total": run.edges.num_edges,
        "edges_kept": int(keep_mask.sum()),
        "metric": run.task.metric,
        "val": val,
        "test": run.trainer(network).evaluate(run.subset(keep_mask), "test"),
        "agreement": run.agreement(run.answers(network, keep_mask)),
        "weight_sparsity": 1 - sum(int(mask.sum()) for mask in weight_masks.values()) / num_weights,
        "seconds": seconds,
        "dense_val": run.dense.val,
        "dense_test": run.dense.test,
    }


def _accepted(method: type[Sparsifier], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that this method has: a cell of two methods holds those of both."""
    return {name: arguments[name] for name in inspect.signature(method).parameters if name in arguments}
