"""How fast a run is: its dense graph, its sparse graph, and the sparse graph in the better layout."""

from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch_geometric.data import Data

from gst.api.result import Result
from gst.base.errors import InputError
from gst.cli import console
from gst.cli.options import Json, RunFolder, dense_graph, print_json
from gst.inference import latency as measure
from gst.inference.compiled.model import PRECISIONS
from gst.inference.compiled.orders import ORDERS

Precision = Annotated[
    str, typer.Option(help="of the features and of what rows are summed from: " + ", ".join(PRECISIONS))
]


def latency(
    run: RunFolder,
    dataset: Annotated[str | None, typer.Option(help="the dense graph, if the run's own name does not say it")] = None,
    edges: Annotated[Path | None, typer.Option(help="own edge list that the run was made of")] = None,
    features: Annotated[Path | None, typer.Option(help="own features, with --edges")] = None,
    labels: Annotated[Path | None, typer.Option(help="own labels, with --edges")] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="own data lists each pair once")] = False,
    layout: Annotated[str, typer.Option(help="auto (the fastest), " + ", ".join(ORDERS))] = "auto",
    precision: Precision = "float32",
    repeats: Annotated[int, typer.Option(min=2, max=10_000, help="rounds in which all take turns")] = 30,
    data_root: Annotated[Path | None, typer.Option(help="folder of data, else $GST_DATA")] = None,
    as_json: Json = False,
) -> None:
    """Time inference: dense, sparse, sparse and reordered, with MACs and the Amdahl limit."""
    result = Result.load(run)
    if result.model is None:
        raise InputError(
            f"{run} has an own model, whose code is not in it: in Python, gst.inference.latency.latency times it"
        )
    data = dense_graph(result, run, dataset, edges, features, labels, undirected, None, data_root)
    check_dense(result, data)
    found = measure.latency(result.model, data, result.graph, layout, precision, repeats)
    words = {name: result.metrics.get(name) for name in ("dataset", "method", "backbone", "sparsity")}
    threads = torch.get_num_threads()
    if as_json:
        print_json({"run": str(run), **words, **found, "threads": threads})
        return
    console.table(
        f"{words['method']} · {words['backbone']} · {words['dataset']} · sparsity {words['sparsity']:.1%}",
        ["", "ms", "quartiles", "speed-up", "of limit", "MMACs"],
        [_row(name, found) for name in ("dense", "sparse", "reordered")],
    )
    tried = ", ".join(f"{name} {ms:.2f}" for name, ms in found["layouts_tried_ms"].items())
    paper = " → ".join(f"{found['paper_macs'][name] / 1e6:,.1f}" for name in ("dense", "sparse"))
    lines = [
        f"limit {found['limit']:.2f}× = 1 / (1 − p + p·r): p = {found['edge_share']:.1%} of the dense graph's time is "
        f"for the entries of A, r = {found['entries_kept']:.1%} of them stay",
        f"median of {repeats} rounds in turns, {threads} thread{'s' * (threads > 1)}; "
        f"MMACs by the paper's convention {paper}",
        *([f"tried, ms: {tried}"] if tried else []),
    ]
    console.say("", *lines)


def _row(name: str, found: dict[str, Any]) -> list[str]:
    row = found[name]
    words = [row["layout"]] + ["bf16"] * (found["features"] == "bfloat16")
    return [
        f"{name} ({', '.join(words)})" if name == "reordered" else name,
        f"{row['ms']:.2f}",
        f"{row['low_ms']:.2f} – {row['high_ms']:.2f}",
        f"{found['speedup'].get(name, 1.0):.2f}×",
        f"{found['share_of_limit'][name]:.2f}" if name in found["share_of_limit"] else "–",
        f"{row['macs'] / 1e6:,.1f}",
    ]


def check_dense(result: Result, data: Data) -> None:
    """The data must be what the run was made of: its kept columns are the run's."""
    mask = result.edge_mask
    same = data.edge_index.shape[1] == mask.numel() and data.num_nodes == result.graph.num_nodes
    if not same or not torch.equal(data.edge_index[:, mask], result.graph.edge_index):
        raise InputError(
            f"{data.get('name') or 'the data'} is not the dense graph of this run: it has {data.edge_index.shape[1]} "
            f"columns, the run {mask.numel()}, and their kept columns must agree"
        )


def export_compiled(run: Path, layout: str, precision: str, target: Path, as_json: bool) -> None:
    """``gst export --layout``."""
    compiled = Result.load(run).compile("auto" if layout == "fast" else layout, precision)
    compiled.save(target)
    words = {"layout": compiled.layout, "features": precision, "layouts_tried_ms": compiled.trials}
    if as_json:
        print_json({"out": str(target), **words})
    else:
        console.say(f"wrote {target} (layout {compiled.layout}; gst.load_compiled reads it)")
