"""What commands share: their common options, the data they name, and how they print."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.data import from_files, load
from gst.errors import InputError
from gst.settings import Settings

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
