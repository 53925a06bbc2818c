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
from gst.inference.latency import inference_times
from gst.storage.cache import Cache

DEMO = ("deploy", "gst", "random")


def demo(
    sparsity: Annotated[float, typer.Option(help="share of edges to remove")] = 0.7,
    seed: Annotated[int, typer.Option(help="seed of all random numbers")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress bars")] = False,
    as_json: Json = False,
) -> None:
    """Handwritten digits as a graph: Deploy and GST against random edges, in under a minute, with no network."""
    data = load("digits")
    with show_progress(quiet) as watch, tempfile.TemporaryDirectory() as folder:
        shared: dict[str, Any] = {"sparsity": sparsity, "seed": seed, "cache": Cache(Path(folder)), "callbacks": watch}
        results = {name: sparsify(data, name, dense=True, retrain=True, **shared) for name in DEMO}
    deployed = results["deploy"]
    deployed.metrics["inference"] = inference_times(deployed.model, data, deployed.graph)  # type: ignore[arg-type]
    if as_json:
        print_json({name: result.metrics for name, result in results.items()})
    else:
        console.comparison({name: result.metrics for name, result in results.items()})
