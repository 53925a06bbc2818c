"""What commands share: their common options, the data they name, and how they print."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.data import from_files, load
from gst.errors import InputError
from gst.nn.backbones import BACKBONES
from gst.settings import Settings

Dataset = Annotated[str | None, typer.Option(help="name (see gst datasets), .pt file or folder of your own")]
Edges = Annotated[Path | None, typer.Option(help="own edge list, CSV, Parquet or .npy")]
Features = Annotated[Path | None, typer.Option(help="own features, .npy, .npz, CSV or Parquet")]
Labels = Annotated[Path | None, typer.Option(help="own labels, .npy, .npz, CSV or Parquet")]
Undirected = Annotated[bool, typer.Option("--undirected", help="own edge list names each pair once")]
Split = Annotated[str | None, typer.Option(help="number, public, paper, random, or a file")]
MethodName = Annotated[str, typer.Option(help="see gst methods")]
BackboneName = Annotated[str, typer.Option(help=", ".join(BACKBONES))]
DataRoot = Annotated[Path | None, typer.Option(help="folder of data and caches, else $GST_DATA")]
UseCache = Annotated[bool, typer.Option(help="keep anchors and dense baselines on disk")]
Options = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="of the method itself, see gst methods --json"),
]
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


def print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content, ensure_ascii=False))


def load_data(
    dataset: str | None,
    edges: Path | None,
    features: Path | None,
    labels: Path | None,
    undirected: bool,
    split: str | None,
    root: Path | None,
) -> Any:
    chosen: Any = int(split) if split is not None and split.isdigit() else split
    if edges is None:
        if dataset is None:
            raise InputError("no data: give --dataset NAME, or --edges, --features and --labels of your own")
        return load(dataset, split=chosen, root=root)
    if dataset is not None:
        raise InputError("give either --dataset or --edges, not both")
    if features is None or labels is None:
        raise InputError("--edges needs --features and --labels")
    return from_files(edges, features, labels, split=chosen, undirected=undirected)
