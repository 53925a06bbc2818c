"""The command line: parse, call, print."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.after.inspect import inspect_run
from gst.api.result import Result
from gst.api.sparsify import sparsify
from gst.base import distributed
from gst.base.errors import InputError
from gst.base.memory import reuse_memory
from gst.base.user_paths import check_file
from gst.cli import console
from gst.cli.bench import bench
from gst.cli.drift import drift
from gst.cli.exits import leave_by
from gst.cli.latency import Precision, export_compiled, latency
from gst.cli.options import (
    BackboneName,
    DataRoot,
    Dataset,
    Edges,
    Features,
    Force,
    Json,
    Labels,
    MethodName,
    Options,
    RunFolder,
    Split,
    Undirected,
    UseCache,
    check_checkpoint,
    check_read,
    given_on_the_line,
    load_data,
    parsed_settings,
    place_option,
    print_json,
    with_settings,
)
from gst.cli.report import report
from gst.cli.resume import run_checkpoint, stored_words
from gst.cli.search import search
from gst.data import datasets as list_datasets
from gst.data import load
from gst.data.registry import published_name
from gst.inference.compiled.orders import ORDERS
from gst.inference.compiled.stored import NAME as COMPILED
from gst.inference.latency import inference_times
from gst.methods import METHODS
from gst.methods.base import check_budget
from gst.methods.options import parse_options
from gst.storage.cache import Cache
from gst.storage.checkpoint import EVERY, Checkpoint, NoCheckpoint
from gst.storage.export import FORMATS, default_name
from gst.storage.export import export as write_export
from gst.storage.paths import data_root as find_data_root
from gst.storage.signals import graceful
from gst.train.settings import Settings

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Fewer edges, same answers: graph sparse training and its peers.",
)
LARGE = 10_000_000  # columns
_NO_WORDS = ("context", "settings", "out", "resume", "checkpoint_every", "quiet", "as_json")  # no part of what is run


@app.command()
@with_settings
def run(
    context: typer.Context,
    *,
    dataset: Dataset = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    undirected: Undirected = False,
    split: Split = None,
    method: MethodName = "gst",
    option: Options = None,
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
    **settings: Any,
) -> None:
    """Make a graph sparse and train a model on it."""
    words = {name: value for name, value in locals().items() if name not in _NO_WORDS} | settings
    if resume is not None:
        options = {name: option.annotation for name, option in inspect.signature(run).parameters.items()}
        resumed = stored_words(resume, {name: options[name] for name in words}, given_on_the_line(context))
        if resumed is None:
            _show(Result.load(resume), resume, as_json)
            return
        words, out = resumed, resume
    else:
        check_checkpoint(context, out)
    with distributed.joined():
        first = distributed.rank() == 0  # of several workers one writes and speaks
        with run_checkpoint(out, checkpoint_every, words) as checkpoint:
            result = _run(words, quiet or not first, checkpoint)
            result.metrics["out"] = None if out is None else str(out)
            if isinstance(checkpoint, Checkpoint) and first:
                result.save(checkpoint.run)
                checkpoint.clear()
        if first:
            _show(result, out, as_json)


def _run(words: dict[str, Any], quiet: bool, checkpoint: NoCheckpoint) -> Result:
    """The run that the words of a command line describe."""
    names = ("dataset", "edges", "features", "labels", "undirected", "split", "data_root")
    check_budget(words["sparsity"], words["keep"])
    data = load_data(*(words[name] for name in names))
    given = {name: words[name] for name in Settings.model_fields}
    check_read(published_name(data), words["method"], words["backbone"], given)
    chosen = {name: value for name, value in words.items() if name not in (*names, "cache", "option")}
    chosen = parsed_settings(chosen) | parse_options(words["method"], words["option"] or [])
    cache = Cache(find_data_root(words["data_root"]) / "anchors") if words["cache"] else False
    with console.progress_bars(quiet) as watch, graceful(checkpoint):
        result = sparsify(data, cache=cache, watch=watch, checkpoint=checkpoint, **chosen)
    if result.settings.batch == "full" or data.num_edges < LARGE:  # the dense graph is passed whole, many times
        result.metrics["inference"] = inference_times(result.model, data, result.graph)  # type: ignore[arg-type]
    return result


def _show(result: Result, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({**result.metrics, "settings": result.settings.model_dump()})
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
    """Handwritten digits as a graph: GST against random edges, in under a minute, with no network."""
    data = load("digits")
    results = {}
    with console.progress_bars(quiet) as watch:
        common: dict[str, Any] = {"sparsity": sparsity, "seed": seed, "cache": False, "watch": watch, "retrain": True}
        results["gst"] = sparsify(data, "gst", dense=True, **common)
        results["random"] = sparsify(data, "random", **common)
    found = results["gst"]
    found.metrics["inference"] = inference_times(found.model, data, found.graph)  # type: ignore[arg-type]
    if as_json:
        print_json({name: result.metrics for name, result in results.items()})
        return
    console.result(found.metrics)
    baseline = results["random"].metrics
    console.say(f"random edges at the same sparsity, fresh model: test accuracy {baseline['retrain_test']:.1f}")


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
    columns = ("kind", "needs_labels", "needs_model", "complexity", "reference")
    rows = [{"name": name, **{c: getattr(m, c) for c in columns}} for name, m in METHODS.items()]
    if as_json:
        options = {name: {o.name: o.default for o in m.options.values()} for name, m in METHODS.items()}
        print_json({"methods": [{**row, "options": options[row["name"]]} for row in rows]})
    else:
        cells = []
        for row in rows:
            needs = [word for word in ("labels", "model") if row[f"needs_{word}"]]
            cells.append([row["name"], row["kind"], ", ".join(needs) or "–", row["complexity"], row["reference"]])
        console.table("methods", ["name", "kind", "needs", "complexity", "reference"], cells)
        console.say("", "one epoch is O(|E|·h + N·F·h); what each takes: gst methods --json, docs/methods.md")


@app.command("inspect")
def inspect_command(run: RunFolder, as_json: Json = False) -> None:
    """Show what a run kept, what it removed and how it scored."""
    result = Result.load(run)
    facts = inspect_run(result)
    if as_json:
        print_json({**result.metrics, "structure": facts, "settings": result.settings.model_dump()})
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
        leave_by(app)
