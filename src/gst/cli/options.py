"""What commands share: their common options, the data they name, and how they print."""

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.api.result import Result
from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.base.text import is_whole
from gst.base.user_paths import named
from gst.data import from_files, load
from gst.data.loading import is_named, is_path
from gst.methods import METHODS
from gst.nn.backbones import BACKBONES
from gst.train.settings import CRITERIA, UPDATES, Settings, make_settings


def place_option(*names: str, **words: Any) -> Any:
    """An option that names a place to write to."""
    return typer.Option(*names, parser=_place, metavar="PATH", **words)


def _place(text: str | Path) -> Path:
    try:
        return named(text)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


Dataset = Annotated[str | None, typer.Option(help="name (see gst datasets), .pt file or folder of your own")]
Edges = Annotated[Path | None, typer.Option(help="own edge list, CSV, Parquet or .npy")]
Features = Annotated[Path | None, typer.Option(help="own features, .npy, .npz, CSV or Parquet")]
Labels = Annotated[Path | None, typer.Option(help="own labels, .npy, .npz, CSV or Parquet")]
Undirected = Annotated[bool, typer.Option("--undirected", help="own data lists each pair once")]
Split = Annotated[str | None, typer.Option(help="number, public, paper, random, or a file")]
MethodName = Annotated[str, typer.Option(help="see gst methods")]
BackboneName = Annotated[str, typer.Option(help=", ".join(BACKBONES))]
DataRoot = Annotated[Path | None, place_option(help="folder of data and caches, else $GST_DATA")]
UseCache = Annotated[bool, typer.Option(help="keep anchors and dense baselines on disk")]
Options = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="of the method itself, see gst methods --json"),
]
Force = Annotated[bool, typer.Option("--force", help="replace the file if it is there")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object on stdout")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="folder written by gst run --out")]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every field of Settings, so that the two cannot part."""
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    extra = []
    for name, field in Settings.model_fields.items():
        if name in signature.parameters:
            continue
        flag = f"--{name.replace('_', '-')}"
        kind: Any = field.annotation if field.annotation in (int, float, bool, str) else str
        flags = [f"{flag}/--no-{flag[2:]}"] if kind is bool else [flag]
        option = typer.Option(*flags, help=f"{field.description} [{field.default}]", rich_help_panel="Settings")
        annotation = Annotated[kind | None, option]
        extra.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    command.__signature__ = signature.replace(parameters=own + extra)  # type: ignore[attr-defined]
    command.__annotations__ |= {p.name: p.annotation for p in extra}
    return command


def check_read(dataset: str | None, method: str, backbone: str, given: Mapping[str, Any]) -> None:
    """Refuses settings that a run with these others, and those of a data set, would never look at; None: not given."""
    method, backbone = resolve_name("method", method, METHODS), resolve_name("backbone", backbone, BACKBONES)
    found = make_settings(dataset, backbone, dict(given))
    recipe = found.recipe if method == "gst" else ""
    dynamic = method in ("set", "snfs", "rigl", "mest")
    updates = "--recipe paper, and for --method set, snfs, rigl and mest"
    rules = (
        (("recipe",), method == "gst", "--method gst"),
        (("turns",), recipe == "retrain", "--recipe retrain"),
        (CRITERIA, recipe == "paper", "--recipe paper"),
        (("matrix", "eigenpairs", "topology_weight"), found.topology, "runs with --topology"),
        (("semantic_weight",), found.semantic, "runs with --semantic"),
        (UPDATES, recipe == "paper" or dynamic, updates),
        (UPDATES - {"tune"}, found.tune, "runs with --tune"),
        (
            ("masker_hidden", "mask_deviation"),
            recipe in ("paper", "retrain") or dynamic or method == "snip",
            "runs with a masker: --recipe paper or retrain, --method snip, set, snfs, rigl or mest",
        ),
        (("heads",), backbone == "gat", "--backbone gat"),
        (("residual",), backbone not in ("sage", "cluster-gcn"), "--backbone gcn, gin and gat, the others have it"),
        (("norm",), found.layers > 1, "more than one layer"),
        (("clusters", "clusters_per_batch"), found.batch == "clusters", "--batch clusters"),
        (("batch_nodes", "fanout"), found.batch == "neighbors", "--batch neighbors"),
        (("loader",), found.batch != "full", "--batch clusters or neighbors"),
    )
    for names, read, what in rules:
        if unread := sorted(name for name in names if given.get(name) is not None and not read):
            raise InputError(f"--{unread[0].replace('_', '-')} would have no effect in this run: it is for {what}")


def given_on_the_line(context: typer.Context) -> set[str]:
    """The options that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def check_checkpoint(context: typer.Context, out: Path | None) -> None:
    """Refuses a pace for states that have no folder to go to."""
    if out is None and "checkpoint_every" in given_on_the_line(context):
        raise InputError("--checkpoint-every needs --out, the folder that states are kept in")


def print_json(content: dict[str, Any]) -> None:
    """In ASCII: some signs beyond it are commands to a terminal, and JSON has another way to write them."""
    print(json.dumps(content))


def load_data(
    dataset: str | None,
    edges: Path | None,
    features: Path | None,
    labels: Path | None,
    undirected: bool,
    split: str | None,
    root: Path | None,
) -> Any:
    chosen: Any = int(split) if split is not None and is_whole(split) else split
    if edges is None:
        _check_alone(features=features, labels=labels)
        if dataset is None:
            raise InputError("no data: give --dataset NAME, or --edges, --features and --labels of your own")
        if is_path(dataset):
            return load(dataset, split=chosen, undirected=undirected)
        if undirected:
            raise InputError(f"--undirected is for data of your own: {dataset} has its own direction")
        return load(dataset, split=chosen, root=root)
    if dataset is not None:
        raise InputError("give either --dataset or --edges, not both")
    if features is None or labels is None:
        raise InputError("--edges needs --features and --labels")
    return from_files(edges, features, labels, split=chosen, undirected=undirected)


def _check_alone(**files: Path | None) -> None:
    for name, file in files.items():
        if file is not None:
            raise InputError(f"--{name} needs --edges: edges, features and labels are given together")


def dense_graph(result: Result, run: Path, dataset: str | None, edges: Path | None, *rest: Any) -> Any:
    """What a run began with: data that the user names, else the data set that the run names; never a file it names."""
    if dataset is None and edges is None:
        _check_alone(features=rest[0], labels=rest[1])
        dataset = result.metrics["dataset"]
        if not is_named(dataset):
            raise InputError(
                f"{run} does not hold its dense graph: give it by --dataset, or by --edges, --features and --labels"
            )
    return load_data(dataset, edges, *rest)


def parsed_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the command line has them; K may be a number or a word."""
    pairs = given.get("eigenpairs")
    return {**given, "eigenpairs": int(pairs)} if isinstance(pairs, str) and is_whole(pairs) else dict(given)
