"""Runs one cell, in whichever process it lands: from its description to a row."""

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
from gst.data import load
from gst.graph.edgeset import By, EdgeSet
from gst.graph.select import top_k
from gst.inference.cost import count_macs, paper_macs
from gst.inference.latency import inference_times
from gst.lab.bench.cells import Cell
from gst.lab.bench.models import fresh_scores, warm_scores
from gst.lab.bench.references import REFERENCES
from gst.lab.bench.rows import Row
from gst.methods import GST, UGS, Sparsifier, TopologySparsifier
from gst.methods.iterative import prune_count
from gst.methods.ugs import train_ticket
from gst.nn.backbones import Backbone
from gst.nn.features import Features
from gst.storage.cache import Cache
from gst.storage.files import unflatten
from gst.storage.paths import data_root
from gst.train.run import Run
from gst.train.settings import Batching, Training, Value

LATENCY_REPEATS = 15  # more would take a fifth of a cell's time on PubMed
_NOT_ARGUMENTS = ("relocated", "rounds")  # variations of the graph and of tickets, not of the method


@lru_cache(maxsize=2)
def load_once(dataset: str, split: str, root: Path | None) -> Data:
    """A data set, read once per process."""
    return load(dataset, split=split or None, root=root)


@lru_cache(maxsize=1)
def shared_run(
    dataset: str,
    split: str,
    root: Path | None,
    relocated: float,
    backbone: str,
    training: Training,
    batching: Batching,
    by: By,
) -> Run:
    """The cells of a group, which follow one another, share this."""
    data = load_once(dataset, split, root)
    if relocated:
        data = relocate(data, relocated, training.seed)
    cache = Cache(data_root(root) / "anchors")
    return Run(data, backbone=backbone, training=training, batching=batching, by=by, cache=cache)


def run_cell(cell: Cell, root: Path | None = None) -> Row:
    """The row of a cell; a failed one says why."""
    torch.set_num_threads(1)
    try:
        measured = _measurement(cell)(cell, root)
    except GSTError as error:
        measured = {"status": "failed", "reason": str(error)}
    except Exception as error:  # whatever it is, it must not stop the other cells
        last = traceback.extract_tb(sys.exc_info()[2])[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        measured = {"status": "failed", "reason": f"{type(error).__name__} in {where}: {' '.join(str(error).split())}"}
    return cell.row(**measured)


def _measurement(cell: Cell) -> Callable[[Cell, Path | None], dict[str, Any]]:
    if cell.method in REFERENCES:
        return _measure_reference
    return _measure_ticket if "rounds" in cell.variation else _measure


def _arguments(cell: Cell) -> dict[str, Value]:
    """The arguments of the cell's method, but for its budget."""
    varied = {name: value for name, value in cell.variation.items() if name not in _NOT_ARGUMENTS}
    return {"backbone": cell.backbone, "seed": cell.seed, **cell.settings, **cell.options, **varied}


def _run_of(cell: Cell, estimator: Sparsifier, root: Path | None) -> Run:
    data = load_once(cell.dataset, cell.split, root)
    configs = estimator.config(Training, data), estimator.config(Batching, data)
    relocated = cell.variation.get("relocated", 0.0)
    return shared_run(cell.dataset, cell.split, root, relocated, cell.backbone, *configs, estimator.counts_by)


def _measure(cell: Cell, root: Path | None) -> dict[str, Any]:
    estimator = make_method(cell.method, sparsity=cell.sparsity, **_arguments(cell))
    run = _run_of(cell, estimator, root)
    if not cell.models and isinstance(estimator, TopologySparsifier):  # nothing needs to be trained on its graph
        keep_mask, _, seconds = estimator.choose(run, estimator.num_kept(run.edges))
        measured: dict[str, Any] = {"edges_kept": int(keep_mask.sum()), "seconds": seconds}
        return measured | run.frozen_scores(keep_mask) | _of_dense(run)
    result = estimator.fit_run(run, dense=True).result_
    found, metrics = estimator.found_, result.metrics
    keep_mask = found.keep_mask.cpu()
    measured = {name: metrics.get(name) for name in ("edges_kept", "val", "test", "agreement", "updates")}
    measured |= _of_dense(run) | run.frozen_scores(keep_mask) | {"seconds": sum(found.seconds.values())}
    if found.fresh:  # the returned model is the one that a fresh training gives
        measured |= {"retrain_val": metrics["val"], "retrain_test": metrics["test"]}
    elif "fresh" in cell.models:
        measured |= fresh_scores(run, keep_mask)
    if "warm" in cell.models:
        measured |= warm_scores(run, keep_mask)
    if not cell.models:
        return measured
    times = inference_times(result.model, run.data, result.graph, LATENCY_REPEATS)
    measured |= {"dense_ms": times["dense_ms"], "sparse_ms": times["sparse_ms"]}
    measured |= mac_counts(result.model, run.x, run.edges, keep_mask)
    facts = facts_of(run.data, run.edges, keep_mask) if cell.seed == 0 else {}  # kilobytes: one seed is enough
    if cell.spectrum:
        spectra = compare_spectra(run.edges, keep_mask)
        measured |= {"spectrum_top": spectra.top_error, "spectrum_bottom": spectra.bottom_error}
        facts["spectrum"] = spectra.facts()
        spectra = compare_spectra(run.edges, keep_mask, matrix="normalised")
        measured |= {"normalised_top": spectra.top_error, "normalised_bottom": spectra.bottom_error}
    return {**measured, "facts": facts}


def _of_dense(run: Run) -> dict[str, Any]:
    """What every row of a run has in common."""
    dense = {"dense_val": run.dense.val, "dense_test": run.dense.test}
    return {"edges_total": run.edges.num_edges, "metric": run.task.metric, **dense}


def _measure_reference(cell: Cell, root: Path | None) -> dict[str, Any]:
    run = _run_of(cell, make_method("random", sparsity=0.0, **_arguments(cell)), root)
    return _of_dense(run) | REFERENCES[cell.method](run, cell)


def mac_counts(model: Backbone, x: Features, edges: EdgeSet, keep_mask: Tensor) -> dict[str, float]:
    """Multiply–accumulates of a forward pass: on the full graph, on the sparse one, and as the paper counts them."""
    graphs = edges, edges.subset(keep_mask)
    dense, sparse = (count_macs(model, x, graph.arcs.shape[1] + graph.num_nodes).total for graph in graphs)
    sparsity = 1 - int(keep_mask.sum()) / edges.num_edges
    return {"macs_dense": dense, "macs_sparse": sparse, "macs_paper": paper_macs(model, edges.num_nodes, sparsity)}


def _measure_ticket(cell: Cell, root: Path | None) -> dict[str, Any]:
    """A lottery ticket after some rounds: the weights of UGS, on its graph or on GST's with as many edges."""
    ugs = UGS(sparsity=cell.sparsity, **_accepted(UGS, _arguments(cell)))
    run = _run_of(cell, ugs, root)
    num_kept = run.edges.num_edges
    for _ in range(int(cell.variation["rounds"])):
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
