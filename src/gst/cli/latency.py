"""gst latency: inference time on the dense graph, the sparse graph, and the sparse graph in a faster layout."""

from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.cli import console
from gst.cli.options import Json, RunFolder, dense_graph, print_json
from gst.inference import latency as measure
from gst.inference.compiled.model import PRECISIONS
from gst.inference.compiled.orders import ORDERS
from gst.inference.serving import make_engine
from gst.inference.serving.single import sample, single_answers
from gst.methods.result import Result
from gst.train.task import Task

Precision = Annotated[
    str, typer.Option(help="of the features and of the values that are aggregated: " + ", ".join(PRECISIONS))
]


def latency(
    run: RunFolder,
    dataset: Annotated[
        str | None, typer.Option(help="the dense graph of the run, if the run does not name a data set")
    ] = None,
    edges: Annotated[Path | None, typer.Option(help="own edge list of the dense graph")] = None,
    features: Annotated[Path | None, typer.Option(help="own features, with --edges")] = None,
    labels: Annotated[Path | None, typer.Option(help="own labels, with --edges")] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="own data lists each pair once")] = False,
    layout: Annotated[str, typer.Option(help="auto (the fastest), " + ", ".join(ORDERS))] = "auto",
    precision: Precision = "float32",
    repeats: Annotated[
        int, typer.Option(min=2, max=10_000, help="rounds, in each of which all graphs take turns")
    ] = 30,
    nodes: Annotated[
        int, typer.Option(min=0, help="also answer so many test nodes one by one, and count what each reads")
    ] = 0,
    data_root: Annotated[Path | None, typer.Option(help="folder of data, else $GST_DATA")] = None,
    as_json: Json = False,
) -> None:
    """Time inference: dense, sparse, sparse and reordered, with MACs and the Amdahl limit."""
    result = Result.load(run)
    if result.model is None:
        raise InputError(
            f"{run} has an own model, which is not saved with it: use gst.inference.latency.latency in Python"
        )
    data = dense_graph(result, run, dataset, edges, features, labels, undirected, None, data_root)
    check_dense(result, data)
    measured = measure.latency(result.model, data, result.graph, layout, precision, repeats)
    answers = answers_one_by_one(result, data, nodes) if nodes else None
    params = {name: result.metrics.get(name) for name in ("dataset", "method", "backbone", "sparsity")}
    threads = torch.get_num_threads()
    if as_json:
        print_json({"run": str(run), **params, **measured, "answers": answers, "threads": threads})
        return
    console.table(
        f"{params['method']} · {params['backbone']} · {params['dataset']} · sparsity {params['sparsity']:.1%}",
        ["", "ms", "quartiles", "speed-up", "of limit", "MMACs"],
        [_row(name, measured) for name in ("dense", "sparse", "reordered")],
    )
    tried = ", ".join(f"{name} {ms:.2f}" for name, ms in measured["layouts_tried_ms"].items())
    paper = " → ".join(f"{measured['paper_macs'][name] / 1e6:,.1f}" for name in ("dense", "sparse"))
    lines = [
        f"limit {measured['limit']:.2f}× = 1 / (1 − p + p·r): p = {measured['edge_share']:.1%} of the dense graph's "
        f"time is spent on the entries of A, r = {measured['entries_kept']:.1%} of them are kept",
        f"median of {repeats} interleaved rounds, {threads} thread{'s' * (threads > 1)}; "
        f"MMACs by the paper's convention {paper}",
        *([f"tried, ms: {tried}"] if tried else []),
    ]
    console.say("", *lines)
    if answers is not None:
        console.say("")
        console.table(f"one answer at a time, {answers['nodes']:,} nodes", ANSWERS, answer_rows(answers))


ANSWERS = ("", "reads p50", "p90", "p99", "mean", "µs p50", "p90", "p99", "mean", "test")


def answers_one_by_one(result: Result, dense: Data, count: int) -> dict[str, Any]:
    """Reads and times of single answers on both graphs, with the test scores beside them."""
    assert result.model is not None
    mask = result.graph.get("test_mask")
    candidates = torch.arange(int(dense.num_nodes)) if mask is None else mask.nonzero().flatten()
    engines = {"dense": make_engine(result.model, dense), "sparse": result.engine()}
    chosen = sample(candidates, count)
    rows: dict[str, Any] = single_answers(engines, chosen)
    if mask is not None:
        task, everything = Task.from_data(result.graph), range(int(dense.num_nodes))
        for name, engine in engines.items():
            rows[name]["test"] = task.score(engine(everything)[task.test], "test")
    return {"nodes": len(chosen), "native": engines["sparse"].native, **rows}


def answer_rows(answers: dict[str, Any]) -> list[list[Any]]:
    """The table of :func:`answers_one_by_one`."""
    rows = []
    for name in ("dense", "sparse"):
        row = answers[name]
        cells = [f"{row[what][part]:,.0f}" for what in ("reads", "us") for part in ("p50", "p90", "p99", "mean")]
        rows.append([name, *cells, f"{row['test']:.1f}" if "test" in row else None])
    return rows


def _row(name: str, measured: dict[str, Any]) -> list[str]:
    row = measured[name]
    variant = [row["layout"]] + ["bf16"] * (measured["features"] == "bfloat16")
    return [
        f"{name} ({', '.join(variant)})" if name == "reordered" else name,
        f"{row['ms']:.2f}",
        f"{row['low_ms']:.2f} – {row['high_ms']:.2f}",
        f"{measured['speedup'].get(name, 1.0):.2f}×",
        f"{measured['share_of_limit'][name]:.2f}" if name in measured["share_of_limit"] else "–",
        f"{row['macs'] / 1e6:,.1f}",
    ]


def check_dense(result: Result, data: Data) -> None:
    """Refuses data whose kept columns are not those of the run."""
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
    if as_json:
        facts = {"layout": compiled.layout, "features": precision, "layouts_tried_ms": compiled.trials}
        print_json({"out": str(target), **facts})
    else:
        console.say(f"wrote {target} (layout {compiled.layout}; gst.load_compiled reads it)")
