"""The command line: parse, call, print."""

import inspect
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.after.structure import inspect_run
from gst.api.sparsify import make_method, sparsify
from gst.base import distributed
from gst.base.errors import InputError
from gst.base.memory import reuse_memory
from gst.base.user_paths import check_file
from gst.cli import console
from gst.cli.bench import bench
from gst.cli.drift import drift
from gst.cli.exits import run_and_exit
from gst.cli.latency import Precision, export_compiled, latency
from gst.cli.options import (
    DEFAULT_METHOD,
    BackboneName,
    DataRoot,
    Dataset,
    Edges,
    Features,
    Force,
    Json,
    Labels,
    MethodName,
    RunFolder,
    Split,
    Undirected,
    UseCache,
    check_checkpoint,
    check_effect,
    given_on_the_line,
    load_data,
    method_arguments,
    place_option,
    print_json,
    with_method_options,
)
from gst.cli.report import report
from gst.cli.resume import run_checkpoint, stored_options
from gst.cli.search import search
from gst.data import datasets as list_datasets
from gst.data import load
from gst.inference.compiled.orders import ORDERS
from gst.inference.compiled.stored import NAME as COMPILED
from gst.inference.latency import inference_times
from gst.methods import METHODS, Result
from gst.methods.base import own_arguments
from gst.storage.cache import Cache
from gst.storage.checkpoint import EVERY, BaseCheckpoint
from gst.storage.export import FORMATS, default_name
from gst.storage.export import export as write_export
from gst.storage.paths import data_root as find_data_root
from gst.storage.signals import graceful

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Fewer edges, same answers: graph sparse training and its peers.",
)
LARGE = 10_000_000  # columns
_NOT_STORED = ("context", "arguments", "out", "resume", "checkpoint_every", "quiet", "as_json")  # not part of a run
DEMO = ("deploy", "gst", "random")


@app.command()
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
    method: MethodName = None,
    backbone: BackboneName = "gcn",
    sparsity: Annotated[float | None, typer.Option(help="share of edges to remove")] = None,
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
    source = ("dataset", "edges", "features", "labels", "undirected", "split", "data_root")
    measures = {name: options[name] for name in ("dense", "retrain", "distill")}
    amount = {name: options[name] for name in ("sparsity", "keep", "backbone")}
    elsewhere = (*source, *measures, *amount, "method", "cache")
    given = {name: value for name, value in options.items() if name not in elsewhere}
    arguments = method_arguments(options["method"], given)
    cache = Cache(find_data_root(options["data_root"]) / "anchors") if options["cache"] else False
    with console.progress_bars(quiet) as watch, graceful(checkpoint):
        shared = {"cache": cache, "watch": watch, "checkpoint": checkpoint}
        estimator = make_method(options["method"], **amount, **arguments, **shared)
        data = load_data(*(options[name] for name in source))
        check_effect(data, estimator, arguments)
        result = estimator.fit(data, **measures).result_
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


@app.command()
def demo(
    sparsity: Annotated[float, typer.Option(help="share of edges to remove")] = 0.7,
    seed: Annotated[int, typer.Option(help="seed of all random numbers")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress bars")] = False,
    as_json: Json = False,
) -> None:
    """Handwritten digits as a graph: Deploy and GST against random edges, in under a minute, with no network."""
    data = load("digits")
    with console.progress_bars(quiet) as watch, tempfile.TemporaryDirectory() as folder:
        shared: dict[str, Any] = {"sparsity": sparsity, "seed": seed, "cache": Cache(Path(folder)), "watch": watch}
        results = {name: sparsify(data, name, dense=True, retrain=True, **shared) for name in DEMO}
    deployed = results["deploy"]
    deployed.metrics["inference"] = inference_times(deployed.model, data, deployed.graph)  # type: ignore[arg-type]
    if as_json:
        print_json({name: result.metrics for name, result in results.items()})
    else:
        console.comparison({name: result.metrics for name, result in results.items()})


@app.command()
def datasets(as_json: Json = False) -> None:
    """List the data sets that have a name."""
    rows = [vars(info) for info in list_datasets()]
    if as_json:
        print_json({"datasets": rows})
    else:
        shown = [name for name in rows[0] if name != "split"]  # words too long for a terminal; --json has them
        console.table("data sets", shown, [[row[name] for name in shown] for row in rows])


@app.command()
def methods(as_json: Json = False) -> None:
    """List the sparsifiers."""
    rows = [
        {
            "name": name,
            "kind": method.kind,
            "needs_labels": method.kind == "learned",
            "needs_model": method.kind == "learned",
            "complexity": method.complexity,
            "reference": method.reference,
        }
        for name, method in METHODS.items()
    ]
    if as_json:
        options = {name: {o: getattr(m, o, None) for o in own_arguments(m)} for name, m in METHODS.items()}
        print_json({"methods": [{**row, "options": options[row["name"]]} for row in rows]})
        return
    cells = []
    for row in rows:
        needs = [need for need in ("labels", "model") if row[f"needs_{need}"]]
        cells.append([row["name"], row["kind"], ", ".join(needs) or "–", row["complexity"], row["reference"]])
    console.table("methods", ["name", "kind", "needs", "complexity", "reference"], cells)
    console.say("", "one epoch is O(|E|·h + N·F·h); what each takes: gst methods --json, docs/guide/methods.md")


@app.command("inspect")
def inspect_command(run: RunFolder, as_json: Json = False) -> None:
    """Show what a run kept, what it removed and how it scored."""
    result = Result.load(run)
    facts = inspect_run(result)
    if as_json:
        print_json({**result.metrics, "structure": facts, "settings": result.settings})
        return
    console.result(result.metrics)
    console.say("")
    console.table("structure", ["", "dense", "sparse"], [[name, *pair] for name, pair in facts.items()])


@app.command()
def export(
    run: RunFolder,
    to: Annotated[str | None, typer.Option(help=", ".join(FORMATS) + " [pyg]")] = None,
    layout: Annotated[
        str | None, typer.Option(help="write graph and model for inference: fast (the best), " + ", ".join(ORDERS))
    ] = None,
    precision: Precision = "float32",
    output: Annotated[Path | None, place_option("--output", "-o", help="file to write, else one in RUN")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the sparse graph for another tool, or with its model for fast inference."""
    if layout is not None:
        if to is not None:
            raise InputError("give either --to or --layout, not both")
        target = output or run / COMPILED
        check_file(target, force)
        export_compiled(run, layout, precision, target, as_json)
        return
    if precision != "float32":
        raise InputError("--precision needs --layout: other formats have the numbers as they are")
    to = to or "pyg"
    target = output or run / default_name(to)
    check_file(target, force)
    graph = Result.load(run).graph
    write_export(graph, to, target)
    if as_json:
        print_json({"out": str(target), "to": to, "columns": graph.num_edges})
    else:
        console.say(f"wrote {target}")


for command in (bench, report, search, drift, latency):
    app.command()(command)


def main() -> None:
    """Entry point: one line for a person's mistake and exit code 2; 130 when interrupted."""
    reuse_memory()
    with console.warnings_in_one_line():
        run_and_exit(app)
