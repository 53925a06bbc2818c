"""The command line: parse, call, print."""

import inspect
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gst import console, distributed
from gst.cache import Cache
from gst.checkpoint import EVERY, Checkpoint, NoCheckpoint
from gst.commands.bench import bench
from gst.commands.drift import drift
from gst.commands.latency import Precision, export_compiled, latency
from gst.commands.report import report
from gst.commands.search import search
from gst.commands.words import (
    BackboneName,
    DataRoot,
    Dataset,
    Edges,
    Features,
    Json,
    Labels,
    MethodName,
    Options,
    RunFolder,
    Split,
    Undirected,
    UseCache,
    load_data,
    print_json,
    with_settings,
)
from gst.compiled.orders import ORDERS
from gst.compiled.stored import NAME as COMPILED
from gst.data import datasets as list_datasets
from gst.data import load
from gst.data.roots import data_root as find_data_root
from gst.errors import GSTError, InputError, InterruptedRunError
from gst.evaluate.inspect import inspect_run
from gst.evaluate.latency import inference_times
from gst.export import FORMATS, default_name
from gst.export import export as write_export
from gst.limits import reuse_memory
from gst.protocol import sparsify
from gst.result import Result
from gst.resuming import run_checkpoint, stored_words
from gst.signals import graceful
from gst.sparsifiers import METHODS
from gst.sparsifiers.options import parse_options

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
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
    out: Annotated[Path | None, typer.Option(help="folder for the result, and for the state until it is there")] = None,
    resume: Annotated[Path | None, typer.Option(help="go on with the unfinished run in this folder")] = None,
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
        resumed = stored_words(resume, {name: options[name] for name in words}, _given(context))
        if resumed is None:
            _show(Result.load(resume), resume, as_json)
            return
        words, out = resumed, resume
    with distributed.joined():
        first = distributed.rank() == 0  # of several workers one writes and speaks
        if out is not None and first:
            _check_writable(out)
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
    data = load_data(*(words[name] for name in names))
    chosen = {name: value for name, value in words.items() if name not in (*names, "cache", "option")}
    chosen |= parse_options(words["method"], words["option"] or [])
    if str(chosen["eigenpairs"] or "").isdigit():
        chosen["eigenpairs"] = int(chosen["eigenpairs"])
    cache = Cache(find_data_root(words["data_root"]) / "anchors") if words["cache"] else False
    with console.progress_bars(quiet) as watch, graceful(checkpoint):
        result = sparsify(data, cache=cache, watch=watch, checkpoint=checkpoint, **chosen)
    if result.settings.batch == "full" or data.num_edges < LARGE:  # the dense graph is passed whole, many times
        result.metrics["inference"] = inference_times(result.model, data, result.graph)  # type: ignore[arg-type]
    return result


def _given(context: typer.Context) -> set[str]:
    """The options that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _show(result: Result, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({**result.metrics, "settings": result.settings.model_dump()})
    else:
        console.result(result.metrics)
        if out is not None:
            console.out.print(f"saved to {out} (gst inspect {out})")


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
    console.out.print(f"random edges at the same sparsity, fresh model: test accuracy {baseline['retrain_test']:.1f}")


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
        console.out.print("\none epoch is O(|E|·h + N·F·h); what each takes: gst methods --json, docs/methods.md")


@app.command("inspect")
def inspect_command(run: RunFolder, as_json: Json = False) -> None:
    """Show what a run kept, what it removed and how it scored."""
    result = Result.load(run)
    facts = inspect_run(result)
    if as_json:
        print_json({**result.metrics, "structure": facts, "settings": result.settings.model_dump()})
        return
    console.result(result.metrics)
    console.out.print()
    console.table("structure", ["", "dense", "sparse"], [[name, *pair] for name, pair in facts.items()])


@app.command()
def export(
    run: RunFolder,
    to: Annotated[str | None, typer.Option(help=", ".join(FORMATS) + " [pyg]")] = None,
    layout: Annotated[
        str | None, typer.Option(help="write graph and model for inference: fast (the best), " + ", ".join(ORDERS))
    ] = None,
    precision: Precision = "float32",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file to write, else one in RUN")] = None,
    as_json: Json = False,
) -> None:
    """Write the sparse graph for another tool, or with its model for fast inference."""
    if layout is not None:
        if to is not None:
            raise InputError("give either --to or --layout, not both")
        export_compiled(run, layout, precision, output or run / COMPILED, as_json)
        return
    to = to or "pyg"
    target = output or run / default_name(to)
    graph = Result.load(run).graph
    write_export(graph, to, target)
    if as_json:
        print_json({"out": str(target), "to": to, "columns": graph.num_edges})
    else:
        console.out.print(f"wrote {target}")


for command in (bench, report, search, drift, latency):
    app.command()(command)


def main() -> None:
    """Entry point: one line for a person's mistake and exit code 2; 130 when interrupted."""
    reuse_memory()
    try:
        code = app(standalone_mode=False)
    except InterruptedRunError as error:
        _fail(str(error), error.code)
    except GSTError as error:
        _fail(str(error), 2)
    except BrokenPipeError:  # the reader of a pipe has gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        message = getattr(error, "format_message", None)  # the command-line parser's own errors have one
        if message is None:
            raise
        _fail(message(), getattr(error, "exit_code", 2))
    if code == 130:  # the parser turns Ctrl-C into this
        _fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    print(f"gst: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _check_writable(folder: Path) -> None:
    """Finds out before hours of training, and leaves nothing behind."""
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if new:
            folder.rmdir()
    except OSError as error:
        raise InputError(f"cannot write to --out {folder}: {error.strerror}") from None
    if not new and not os.access(folder, os.W_OK):
        raise InputError(f"cannot write to --out {folder}: permission denied")
