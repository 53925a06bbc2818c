"""gst drift: how a sparse graph does when features or weights change later."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gst.after.drift import EPOCHS, SHARES
from gst.after.drift import drift as measure
from gst.base.errors import InputError
from gst.cli import console
from gst.cli.options import Json, RunFolder, dense_graph, print_json
from gst.data.loading import is_path
from gst.methods.result import Result
from gst.train.settings import MOST_EPOCHS


def drift(
    run: RunFolder,
    dataset: Annotated[
        str | None, typer.Option(help="the dense graph of the run, if the run does not name a data set")
    ] = None,
    edges: Annotated[Path | None, typer.Option(help="own edge list, CSV, Parquet or .npy")] = None,
    features: Annotated[Path | None, typer.Option(help="own features, .npy, .npz, CSV or Parquet")] = None,
    labels: Annotated[Path | None, typer.Option(help="own labels, .npy, .npz, CSV or Parquet")] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="own data lists each pair once")] = False,
    split: Annotated[str | None, typer.Option(help="for own files without one; the run's own split is used")] = None,
    share: Annotated[
        list[float], typer.Option(metavar="<float>", help="of the features that change; may be repeated")
    ] = SHARES,  # type: ignore[assignment]
    epochs: Annotated[
        list[int], typer.Option(min=1, max=MOST_EPOCHS, metavar="<int>", help="of further training; may be repeated")
    ] = EPOCHS,  # type: ignore[assignment]
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="of the random choices")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="folder of data and caches, else $GST_DATA")] = None,
    as_json: Json = False,
) -> None:
    """Change features or weights after sparsification: do both graphs still give the same answers?"""
    result = Result.load(run)
    if result.model is None:
        raise InputError(f"{run} has an own model, which is not saved with it: use gst.after.drift.drift in Python")
    if split is not None and (dataset or edges is None) and (dataset is None or not is_path(dataset)):
        raise InputError("--split would have no effect: the run has a split; the option is for own files without one")
    data = dense_graph(result, run, dataset, edges, features, labels, undirected, split, data_root)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):  # of the run, whatever its split
        data[name] = result.graph.get(name)
    rows = measure(result, data, shares=share, epochs=epochs, seed=seed)
    metrics = result.metrics
    if as_json:
        names = ("dataset", "method", "backbone", "sparsity", "edges_kept", "edges_total", "metric")
        print_json({**{name: metrics[name] for name in names}, "seed": seed, "drift": rows})
        return
    unit = "ROC-AUC" if metrics["metric"] == "rocauc" else "accuracy"
    run_name = f"{metrics['method']} · {metrics['backbone']} · {metrics['dataset']}"
    title = f"{run_name} · sparsity {metrics['sparsity']:.1%} · test {unit}"
    cells: list[list[Any]] = [
        [
            row["change"],
            "–" if row["change"] == "none" else f"{row['amount']:g}" if row["amount"] >= 1 else f"{row['amount']:.0%}",
            f"{100 * row['agreement']:.1f}",
            f"{row['divergence']:.3f}",
            f"{row['dense_test']:.1f}",
            f"{row['test']:.1f}",
        ]
        for row in rows
    ]
    columns = ["change", "by", "same answers, %", "KL", "dense", "sparse"]
    console.table(title, columns, cells)
    console.say("", "the model of the run on both graphs; by: share of the features, or number of epochs")
