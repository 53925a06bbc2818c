"""``gst demo``: three methods on embedded data, with no network."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.api.sparsify import sparsify
from gst.cli import console
from gst.cli.options import Json, print_json
from gst.cli.progress import show_progress
from gst.data import load
from gst.inference.serving import make_engine
from gst.inference.serving.single import single_answers
from gst.storage.cache import Cache

DEMO = ("gst", "deploy", "random")
NEXT = """
your own model    gst.Deploy(my_trained_model, sparsity=0.7).fit(data)
your own data     gst run --edges e.csv --features x.csv --labels y.csv
                  --split random --sparsity 0.7
how far to go     gst search --dataset digits
every method      gst methods
"""
TYPED = ("gst", "deploy", "local-similarity", "random")


def demo(
    sparsity: Annotated[float, typer.Option(help="share of edges to remove")] = 0.7,
    seed: Annotated[int, typer.Option(help="seed of all random numbers")] = 0,
    typed: Annotated[bool, typer.Option("--typed", help="a drawn graph of authors, papers, venues and terms")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress bars")] = False,
    as_json: Json = False,
) -> None:
    """Handwritten digits as a graph: Deploy and GST against random edges, in under a minute, with no network."""
    data = load("papers" if typed else "digits")
    with show_progress(quiet) as watch, tempfile.TemporaryDirectory() as folder:
        shared: dict[str, Any] = {"sparsity": sparsity, "seed": seed, "cache": Cache(Path(folder)), "callbacks": watch}
        names = TYPED if typed else DEMO
        results = {name: sparsify(data, name, dense=True, retrain=True, **shared) for name in names}
    deployed = results["deploy"]
    if not typed:
        engines = {"dense": make_engine(deployed.model, data), "sparse": deployed.engine()}  # type: ignore[arg-type]
        deployed.metrics["answers"] = single_answers(engines, data.test_mask.nonzero().flatten().tolist(), repeats=1)
    if as_json:
        print_json({name: result.metrics for name, result in results.items()})
    else:
        console.comparison({name: result.metrics for name, result in results.items()})
        if not typed:
            console.say(reads_line(deployed.metrics["answers"]), *NEXT.splitlines())


def reads_line(answers: dict[str, Any]) -> str:
    """What one answer of Deploy's graph reads, beside the dense graph."""
    dense, sparse = (answers[name]["reads"] for name in ("dense", "sparse"))
    return (
        f"one answer reads {sparse['mean']:.1f} nodes by deploy's graph, {dense['mean']:.1f} by the dense one "
        f"(99 in 100 at most {sparse['p99']:.0f} and {dense['p99']:.0f})"
    )
