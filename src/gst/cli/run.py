"""``gst run``: one graph made sparse, from the command line to a folder."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer
from torch_geometric.data import HeteroData

from gst.api.sparsify import make_method
from gst.base import distributed
from gst.base.errors import InputError
from gst.cli import console
from gst.cli.options import (
    DEFAULT_METHOD,
    BackboneName,
    DataRoot,
    Dataset,
    Edges,
    Features,
    Json,
    Labels,
    MethodName,
    Split,
    TaskName,
    Undirected,
    UseCache,
    check_checkpoint,
    check_effect,
    given_on_the_line,
    load_data,
    method_arguments,
    place_option,
    print_json,
    shares_by_relation,
    with_method_options,
)
from gst.cli.progress import show_progress
from gst.cli.resume import run_checkpoint, stored_options
from gst.inference.latency import inference_times
from gst.methods import Result
from gst.storage.cache import Cache
from gst.storage.checkpoint import EVERY, BaseCheckpoint
from gst.storage.paths import data_root as find_data_root
from gst.storage.signals import graceful

LARGE = 10_000_000  # columns
_NOT_STORED = ("context", "arguments", "out", "resume", "checkpoint_every", "quiet", "as_json")  # not part of a run


@with_method_options
def run(
    context: typer.Context,
    *,
    dataset: Dataset = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    undirected: Undirected = False,
    split: Split = None,
    task: TaskName = None,
    method: MethodName = None,
    backbone: BackboneName = "gcn",
    sparsity: Annotated[float | None, typer.Option(help="share of edges to remove")] = None,
    relation_sparsity: Annotated[
        str | None, typer.Option(help="of a typed graph, a share by relation: writes=0.5,cites=0.8; others stay whole")
    ] = None,
    keep: Annotated[int | None, typer.Option(help="number of edges to keep, instead of a share")] = None,
    out: Annotated[
        Path | None, place_option(help="folder for the result, and for the state until it is there; new or of gst")
    ] = None,
    resume: Annotated[Path | None, place_option(help="go on with the unfinished run in this folder")] = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="seconds between two states in --out")] = EVERY,
    retrain: Annotated[bool, typer.Option("--retrain", help="also train a fresh model on the sparse graph")] = False,
    distill: Annotated[bool, typer.Option("--distill", help="also one that learns from the dense answers")] = False,
    dense: Annotated[bool, typer.Option(help="also train on the full graph, for comparison")] = True,
    cache: UseCache = True,
    data_root: DataRoot = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress bars")] = False,
    as_json: Json = False,
    **arguments: Any,
) -> None:
    """Make a graph sparse and train a model on it."""
    options = {name: value for name, value in locals().items() if name not in _NOT_STORED} | arguments
    if resume is not None:
        kinds = {name: option.annotation for name, option in inspect.signature(run).parameters.items()}
        stored = stored_options(resume, {name: kinds[name] for name in options}, given_on_the_line(context))
        if stored is None:
            _show(Result.load(resume), resume, as_json)
            return
        options, out = stored, resume
    else:
        check_checkpoint(context, out)
        if method is None:
            options["method"] = DEFAULT_METHOD
    with distributed.process_group():
        first = distributed.rank() == 0  # of several workers one writes and speaks
        with run_checkpoint(out, checkpoint_every, options) as checkpoint:
            result = _run(options, quiet or not first, checkpoint)
            result.metrics["out"] = None if out is None else str(out)
            if out is not None and first:
                result.save(out)
                checkpoint.clear()
        if first:
            _show(result, out, as_json)
            if method is None and resume is None and not as_json:
                console.say(f"by the default method, {DEFAULT_METHOD}: gst methods lists the others")


def _run(options: dict[str, Any], quiet: bool, checkpoint: BaseCheckpoint) -> Result:
    """The run that the options of a command line describe."""
    source = ("dataset", "edges", "features", "labels", "undirected", "split", "data_root", "task")
    measures = {name: options[name] for name in ("dense", "retrain", "distill")}
    amount = {name: options[name] for name in ("sparsity", "keep", "backbone")}
    if options["relation_sparsity"] is not None:
        if options["sparsity"] is not None:
            raise InputError("give either --sparsity or --relation-sparsity, not both")
        amount["sparsity"] = shares_by_relation(options["relation_sparsity"])
    elsewhere = (*source, *measures, *amount, "method", "cache", "relation_sparsity")
    given = {name: value for name, value in options.items() if name not in elsewhere}
    arguments = method_arguments(options["method"], given)
    cache = Cache(find_data_root(options["data_root"]) / "anchors") if options["cache"] else False
    with show_progress(quiet) as watch, graceful(checkpoint):
        shared = {"cache": cache, "callbacks": watch, "checkpoint": checkpoint}
        estimator = make_method(options["method"], **amount, **arguments, **shared)
        data = load_data(*(options[name] for name in source))
        check_effect(data, estimator, arguments)
        result = estimator.fit(data, **measures).result_
    if isinstance(data, HeteroData):
        return result
    if result.batching.batch == "full" or data.num_edges < LARGE:  # the dense graph is passed whole, many times
        result.metrics["inference"] = inference_times(result.model, data, result.graph)  # type: ignore[arg-type]
    return result


def _show(result: Result, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({**result.metrics, "settings": result.settings})
    else:
        console.result(result.metrics)
        if out is not None:
            console.say(f"saved to {out} (gst inspect {out})")
