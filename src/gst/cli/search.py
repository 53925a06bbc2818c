"""gst search: the largest sparsity with no loss."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.after import curve
from gst.after.search import MOST_SEEDS, SafeSparsity
from gst.after.search import search as find
from gst.api.sparsify import make_method
from gst.base.errors import InterruptedRunError
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
    load_data,
    method_arguments,
    place_option,
    print_json,
    with_method_options,
)
from gst.storage.cache import Cache
from gst.storage.checkpoint import EVERY, Checkpoint, NoCheckpoint
from gst.storage.paths import data_root as find_data_root
from gst.storage.signals import graceful

SURE = {
    "confirmed": "test confirms it: the whole interval is within the tolerance",
    "open": "test leaves it open: the interval reaches beyond the tolerance (more seeds narrow it)",
    "refuted": "test refutes it: the whole interval lies beyond the tolerance",
    "none": "no sparsity that was tried is within the tolerance",
}


@with_method_options
def search(
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
    tolerance: Annotated[float, typer.Option(help="points that may be lost")] = 0.5,
    seeds: Annotated[int, typer.Option(min=1, max=MOST_SEEDS, help="how many, from --seed on")] = 5,
    step: Annotated[float, typer.Option(help="of the grid of sparsities")] = 0.1,
    precision: Annotated[float, typer.Option(help="how closely the answer is looked for")] = 0.02,
    accuracy: Annotated[str, typer.Option(help="of which model: returned, fresh, or auto")] = "auto",
    decision: Annotated[str, typer.Option(help="what must be within the tolerance: mean, or bound")] = "mean",
    confidence: Annotated[float, typer.Option(help="of the intervals")] = 0.95,
    out: Annotated[Path | None, place_option(help="folder for the result, the curve and all runs so far")] = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="seconds between two states in --out")] = EVERY,
    cache: UseCache = True,
    data_root: DataRoot = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
    as_json: Json = False,
    **arguments: Any,
) -> None:
    """Find the largest sparsity that is as good as the dense graph; the same command goes on with what --out holds."""
    check_checkpoint(context, out)
    method = method or DEFAULT_METHOD
    params = method_arguments(method, arguments)
    data = load_data(dataset, edges, features, labels, undirected, split, data_root, task)
    check_effect(data, make_method(method, backbone=backbone, sparsity=0.5, **params), params)
    params |= {"backbone": backbone, "cache": Cache(find_data_root(data_root) / "anchors") if cache else False}
    rule: dict[str, Any] = {"tolerance": tolerance, "seeds": seeds, "step": step, "precision": precision}
    rule |= {"accuracy": accuracy, "decision": decision, "confidence": confidence}

    if out is not None:
        curve.check(out)
    with nullcontext(NoCheckpoint()) if out is None else Checkpoint(out, checkpoint_every) as place:
        try:
            with graceful(place), console.err.status("", spinner="line") as status:

                def on_run(seed: int, sparsity: float) -> None:
                    status.update("" if quiet else f"sparsity {curve.share(sparsity)}, seed {seed}")

                safe = find(data, method, checkpoint=place, on_run=on_run, **rule, **params)
        except InterruptedRunError as error:
            how = "" if out is None else "; the same command goes on from here"
            raise InterruptedRunError(error.code - 128, f"{error}{how}") from None
        if out is not None:
            safe.result.metrics["out"] = str(out)
            curve.save(safe, out)
    show(safe, out, as_json)


def show(safe: SafeSparsity, out: Path | None, as_json: bool) -> None:
    m = safe.result.metrics
    if as_json:
        print_json({**m, **curve.summary(safe), "sparsity": safe.sparsity, "sparsity_achieved": m["sparsity"]})
        return
    unit = "ROC-AUC" if m["metric"] == "rocauc" else "accuracy"
    title = f"{curve.name(m)} · {unit} of the {safe.accuracy} model, sparse − dense"
    level = f"{safe.confidence:.0%}"
    columns = ["removed", "edges", f"val, {level} interval", "", f"test, {level} interval", ""]
    console.table(title, columns, curve.lines(safe))
    console.say(
        "",
        f"largest sparsity within {safe.tolerance:g} points: {curve.share(safe.sparsity)} (share removed)",
    )
    console.say(f"{SURE[safe.verdict]}; {len(safe.seeds)} seeds")
    if out is not None:
        files = ", ".join(name for name in (curve.TABLE, curve.PICTURE) if (out / name).exists())
        console.say(f"saved to {out}: run of seed {m['seed']}, {files} (gst inspect {out})")
