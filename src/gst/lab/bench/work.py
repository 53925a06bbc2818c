"""The work of one cell, in whatever process it lands: from a description to a row."""

import hashlib
import json
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
from gst.api.sparsify import solve
from gst.base.errors import GSTError
from gst.base.randomness import seeded
from gst.data import load
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.inference.cost import count_macs, paper_macs
from gst.inference.latency import inference_times
from gst.lab.bench.cells import Cell
from gst.lab.bench.rows import Row
from gst.methods import GST, METHODS, UGS
from gst.methods.dst import MEST, SET, SNFS, SNIP, RigL
from gst.methods.iterative import prune_count
from gst.methods.ugs import train_ticket
from gst.nn.backbones import Backbone
from gst.nn.features import Features
from gst.storage.cache import Cache, Content
from gst.storage.files import flatten, unflatten
from gst.storage.paths import data_root
from gst.train.run import Problem
from gst.train.trainer import train

ALONG = (GST, SNIP, SET, SNFS, RigL, MEST)
CLOCK_ROUNDS = 15  # of a cell's latency: more of them would take a fifth of a cell on PubMed


@lru_cache(maxsize=2)
def load_once(dataset: str, root: Path | None) -> Data:
    """A data set, read once a process."""
    return load(dataset, root=root)


@lru_cache(maxsize=1)
def make_problem(dataset: str, root: Path | None, relocated: float, backbone: str, settings: str) -> Problem:
    """A problem with settings in JSON; the cells of a group come one after the other and share it."""
    words, data = json.loads(settings), load_once(dataset, root)
    if relocated:
        data = relocate(data, relocated, words["seed"])
    return Problem(data, backbone=backbone, cache=Cache(data_root(root) / "anchors"), **words)


def run_cell(cell: Cell, root: Path | None = None) -> Row:
    """The row of a cell; of one that fails, with the reason."""
    torch.set_num_threads(1)
    words: dict[str, Any] = {}
    try:
        words = _measure(cell, root)
    except GSTError as error:
        words = {"status": "failed", "reason": str(error)}
    except Exception as error:  # whatever it is, it must not stop the others
        last = traceback.extract_tb(sys.exc_info()[2])[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        words = {"status": "failed", "reason": f"{type(error).__name__} in {place}: {' '.join(str(error).split())}"}
    return cell.row(**words)


def _measure(cell: Cell, root: Path | None) -> dict[str, Any]:
    varied = {name: value for name, value in cell.variation.items() if name not in ("relocated", "rounds")}
    recipe = "paper" if "rounds" in cell.variation else cell.recipe  # tickets with GST's graph are the paper's
    settings = {**cell.settings, **varied, "seed": cell.seed, **({"recipe": recipe} if recipe else {})}
    wanted = json.dumps(settings, sort_keys=True)
    problem = make_problem(cell.dataset, root, cell.variation.get("relocated", 0.0), cell.backbone, wanted)
    if "rounds" in cell.variation:
        return {**_ticket(cell, problem), **problem.dense_scores()}
    # what trains along with its graph returns that model; the others return the very one that a fresh training gives
    own_model = METHODS[cell.method].make in ALONG
    result = solve(problem, cell.method, cell.options, sparsity=cell.sparsity, dense=True)
    found, data, edges = result.metrics, problem.data, problem.edges
    keep = kept_edges(edges, result.edge_mask)
    names = ("edges_total", "edges_kept", "metric", "val", "test", "dense_val", "dense_test", "agreement")
    words = {name: found[name] for name in names}
    words |= fresh_scores(problem, keep) if own_model else {f"retrain_{name}": found[name] for name in ("val", "test")}
    words |= warm_scores(problem, keep)
    words["seconds"] = sum(found["seconds"][phase] for phase in ("anchor", "topology", "sparse"))
    times = inference_times(result.model, data, result.graph, CLOCK_ROUNDS)  # type: ignore[arg-type]
    words |= {"dense_ms": times["dense_ms"], "sparse_ms": times["sparse_ms"]}
    words |= counted(result.model, problem.x, edges, keep)  # type: ignore[arg-type]
    facts = facts_of(data, edges, keep) if cell.seed == 0 else {}  # kilobytes: one seed is enough to look at
    if cell.spectrum:
        spectra = compare_spectra(edges, keep)
        words |= {"spectrum_top": spectra.top_error, "spectrum_bottom": spectra.bottom_error}
        facts["spectrum"] = spectra.facts()
    return {**words, "facts": facts}


def counted(model: Backbone, x: Features, edges: EdgeSet, keep: Tensor) -> dict[str, float]:
    """Multiply–accumulates of a forward pass: on the full graph, on the sparse one, and as the paper counts them."""
    graphs = edges, edges.subset(keep)
    full, thin = (count_macs(model, x, graph.arcs.shape[1] + graph.num_nodes).total for graph in graphs)
    share = 1 - int(keep.sum()) / edges.num_edges
    return {"macs_dense": full, "macs_sparse": thin, "macs_paper": paper_macs(model, edges.num_nodes, share)}


def kept_edges(edges: EdgeSet, column_mask: Tensor) -> Tensor:
    """One truth value per edge from one per column."""
    keep = torch.zeros(edges.num_edges, dtype=torch.bool)
    real = edges.column_edge >= 0
    keep[edges.column_edge[real]] = column_mask[real]
    return keep


def once(problem: Problem, keep: Tensor, kind: str, make: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What ``make`` gives for these edges, kept: methods that train along with their graph often end with the same."""
    edges = hashlib.blake2b(keep.numpy().tobytes(), digest_size=16).hexdigest()
    depends = {**problem.depends, "sparse_epochs": problem.settings.sparse_epochs, "kept": edges}
    return problem.store.get(kind, depends, lambda: ({}, make()))[1]


def fresh_scores(problem: Problem, keep: Tensor) -> dict[str, float]:
    """``retrain_val`` and ``retrain_test``: a new model, E + D epochs on the sparse graph."""
    return once(problem, keep, "fresh-scores", lambda: problem.train_fresh(keep, "retrain")[1])


def warm_scores(problem: Problem, keep: Tensor) -> dict[str, float]:
    """``warm_val`` and ``warm_test``: E epochs on the full graph, then D on the sparse one, the budget of all."""
    return once(problem, keep, "warm-scores", lambda: _warm(problem, keep))


def _warm(problem: Problem, keep: Tensor) -> dict[str, float]:
    settings, network = problem.settings, problem.network()

    def make() -> Content:
        with seeded(settings.seed + 1):
            trainer = problem.trainer(network)
            best = train(
                trainer, problem.edges, settings.anchor_epochs, "dense", 0.0, problem.watch, problem.checkpoint
            )
        return flatten("model", best.kept["model"]), {"val": best.val}

    tensors, _ = problem.store.get("warm", problem.depends, make)
    network.module.load_state_dict(unflatten("model", tensors))
    edges = problem.edges.subset(keep.to(problem.device))
    with seeded(settings.seed + 2):
        trainer = problem.trainer(network)
        best = train(trainer, edges, settings.sparse_epochs, "sparse", 0.0, problem.watch, problem.checkpoint)
    return {"warm_val": best.val, "warm_test": trainer.evaluate(edges, "test")}


def _ticket(cell: Cell, problem: Problem) -> dict[str, Any]:
    """A lottery ticket after so many rounds: UGS's weights, on UGS's graph or on GST's of as many edges."""
    kept = problem.edges.num_edges
    for _ in range(cell.variation["rounds"]):
        kept -= prune_count(kept, cell.options["prune_ratio"])
    chosen: dict[str, Any] = {"backbone": problem.backbone, "keep": kept}
    ticket = UGS(**chosen, **cell.options)
    scores, stages, _ = ticket.path(problem, kept)
    masks = unflatten("weights", stages[-1].extra)
    keep = top_k(scores, kept)
    seconds = sum(stage.seconds for stage in stages)
    if cell.method == "ugs+gst":
        other = GST(**chosen).fit_problem(problem)
        keep = other.keep_.to(problem.device)
        seconds += sum(other.seconds_.values())
    network, val = train_ticket(problem, keep, masks)
    sizes = [mask.numel() for mask in masks.values()]
    return {
        "edges_total": problem.edges.num_edges,
        "edges_kept": int(keep.sum()),
        "metric": problem.task.metric,
        "val": val,
        "test": problem.trainer(network).evaluate(problem.edges.subset(keep), "test"),
        "agreement": problem.agreement(problem.answers(network, keep)),
        "weight_sparsity": 1 - sum(int(mask.sum()) for mask in masks.values()) / sum(sizes),
        "seconds": seconds,
    }
