"""What commands share: their common options, the data they name, and how they print."""

import inspect
import json
import re
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import TypeAdapter, ValidationError
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.base.text import is_whole, shown
from gst.base.user_paths import non_empty_path
from gst.data import from_files, load
from gst.data.loading import is_named, is_path
from gst.methods import METHODS, Result
from gst.nn.backbones import BACKBONES, Backbone
from gst.train.links import has_links

# arguments of methods that commands have as options of their own, or that no command line can give
_ELSEWHERE = ("sparsity", "keep", "backbone", "model", "head", "output", "cache", "callbacks", "checkpoint")
DEFAULT_METHOD = "deploy"
_UPDATES = ("interval", "swap_ratio", "decay", "tune")  # of methods that exchange edges while they train
FEW_METHODS = 6  # so many are named in the help of an option that only they take


def place_option(*names: str, **settings: Any) -> Any:
    """An option that names a path to write to."""
    return typer.Option(*names, parser=_place, metavar="<path>", **settings)


def _place(text: str | Path) -> Path:
    try:
        return non_empty_path(text)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


Dataset = Annotated[str | None, typer.Option(help="name (see gst datasets), .pt file or folder of your own")]
Edges = Annotated[Path | None, typer.Option(help="own edge list, CSV, Parquet or .npy")]
Features = Annotated[Path | None, typer.Option(help="own features, .npy, .npz, CSV or Parquet")]
Labels = Annotated[Path | None, typer.Option(help="own labels, .npy, .npz, CSV or Parquet")]
Undirected = Annotated[bool, typer.Option("--undirected", help="own data lists each pair once")]
TaskName = Annotated[str | None, typer.Option("--task", help="nodes or links: what is predicted [nodes]")]
Split = Annotated[str | None, typer.Option(help="number, public, paper, random, or a file")]
MethodName = Annotated[str | None, typer.Option(help=f"see gst methods [{DEFAULT_METHOD}]")]
BackboneName = Annotated[str, typer.Option(help=", ".join(BACKBONES))]
DataRoot = Annotated[Path | None, place_option(help="folder of data and caches, else $GST_DATA")]
UseCache = Annotated[bool, typer.Option(help="keep anchors and dense baselines on disk")]
Force = Annotated[bool, typer.Option("--force", help="replace the file if it is there")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object on stdout")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="folder written by gst run --out")]


def method_options() -> dict[str, tuple[Any, str]]:
    """Every argument of any method that can be given on a line, by name: its type and its help."""
    options: dict[str, tuple[Any, str]] = {}
    takers: dict[str, list[str]] = {}
    for name, method in METHODS.items():
        fields = {field: info for config in method.configs for field, info in config.model_fields.items()}
        texts = documented_arguments(method)
        for argument, parameter in inspect.signature(method).parameters.items():
            if argument in _ELSEWHERE:
                continue
            if argument not in _UPDATES or getattr(method, "updates_edges", True):
                takers.setdefault(argument, []).append(name)
            if argument in fields:
                info = fields[argument]
                text = f"{info.description}{_default(info.default)}"
            else:
                text = f"{texts.get(argument, '')}{_default(parameter.default)}"
            kind = _scalar(parameter.annotation, none_is_default=parameter.default is None)
            known = options.setdefault(argument, (kind, text))
            if known[0] is not kind:
                options[argument] = (str, known[1])
    return {name: (kind, _of(takers[name]) + text) for name, (kind, text) in options.items()}


def _default(value: Any) -> str:
    """The end of a help text; nothing where None stands for something that the text says."""
    return "" if value is None else f" [{'on' if value is True else 'off' if value is False else value}]"


def _of(takers: list[str]) -> str:
    """The methods that an option is for, where it is for a few."""
    return f"({', '.join(takers)}) " if len(takers) <= FEW_METHODS else ""


def _scalar(annotation: Any, none_is_default: bool) -> Any:
    """The type of an option: int, float or bool; text for anything else, and where "none" is a value of its own."""
    parts = [annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if not (none_is_default and part is types.NoneType)]
    return parts[0] if len(parts) == 1 and parts[0] in (int, float, bool) else str


def documented_arguments(method: type) -> dict[str, str]:
    """What the docstrings of a method and its bases say of each argument, on one line each."""
    texts: dict[str, str] = {}
    for kind in reversed(method.__mro__):
        section = re.search(r"Args:\n((?: {8}.*\n|\n(?= {8}))*)", (kind.__doc__ or "") + "\n")
        for name, text in re.findall(r"^ {8}(\w+): ((?:.|\n {12})*)", section[1] if section else "", re.MULTILINE):
            plain = re.sub(r"\s*\(:\w+:`[^`]*`\)|:\w+:(?=`)|`", "", text)  # references are for the documentation
            first = " ".join(plain.split())
            texts[name] = re.sub(r" \[[^\]]*\]\.$", "", first).rstrip(".")
    return texts


def with_method_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every argument of any method, so that the two cannot part."""
    signature = inspect.signature(command)
    parameters = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    for name, (kind, text) in method_options().items():
        if name in signature.parameters:
            continue
        flag = f"--{name.replace('_', '-')}"
        flags = [f"{flag}/--no-{flag[2:]}"] if kind is bool else [flag]
        option = typer.Option(*flags, help=text)
        annotation: Any = Annotated[kind | None, option]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ |= {p.name: p.annotation for p in parameters if p.name not in signature.parameters}
    return command


def method_arguments(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a method among the options given (None: not given), each of the type that it wants."""
    kind = METHODS[METHODS.resolve(method)]
    parameters = inspect.signature(kind).parameters
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        if value is None or name in _ELSEWHERE:
            continue
        if name not in parameters:
            takers = ", ".join(other for other, each in METHODS.items() if name in inspect.signature(each).parameters)
            raise InputError(f"{_flag(name)} would have no effect in this run: it is for --method {takers}")
        arguments[name] = _parsed(name, value, parameters[name].annotation)
    return arguments


def _parsed(name: str, value: Any, annotation: Any) -> Any:
    if not isinstance(value, str) or annotation is str:
        return value
    try:
        return TypeAdapter(annotation).validate_python(None if value == "none" else value)
    except ValidationError as error:
        raise InputError(f"{_flag(name)} {shown(value)}: {error.errors()[0]['msg'].lower()}") from None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def check_effect(data: Any, estimator: Any, arguments: Mapping[str, Any]) -> None:
    """Refuses arguments that a run with these others, and the settings of its data set, would never look at."""
    values = {**estimator.preset(data), **arguments}
    typed = isinstance(data, HeteroData)
    backbone = BACKBONES["gcn" if typed else BACKBONES.resolve(estimator.backbone)]
    batch = values.get("batch", "full")
    rules = (
        (("matrix", "eigenpairs", "topology_weight"), values.get("topology", True), "runs with --topology"),
        (("semantic_weight",), values.get("semantic", True), "runs with --semantic"),
        (("interval", "swap_ratio", "decay"), values.get("tune", True), "runs with --tune"),
        (
            _UPDATES,
            getattr(estimator, "updates_edges", True),
            "--method gst, set, snfs, rigl and mest",
        ),
        (("decoder",), has_links(data), "--task links"),
        (("heads",), "heads" in backbone.arguments, _backbones(lambda kind: "heads" in kind.arguments)),
        (
            ("residual",),
            not backbone.always_residual,
            f"{_backbones(lambda kind: not kind.always_residual)}; others always have it",
        ),
        (("norm",), values.get("layers", 2) > 1, "more than one layer"),
        (("clusters", "clusters_per_batch"), batch == "clusters", "--batch clusters"),
        (("batch_nodes", "fanout"), batch == "neighbors", "--batch neighbors"),
        (("by", "max_degree"), not typed, "graphs of one type"),
        (("scope",), estimator.kind == "topology" or estimator.name == "gst", "topology methods and --method gst"),
        (("loader",), batch != "full", "--batch clusters or neighbors"),
    )
    for names, has_effect, where in rules:
        if unread := sorted(name for name in names if name in arguments and not has_effect):
            raise InputError(f"{_flag(unread[0])} would have no effect in this run: it is for {where}")


def _backbones(fits: Callable[[type[Backbone]], bool]) -> str:
    return f"--backbone {', '.join(name for name, kind in BACKBONES.items() if fits(kind))}"


def shares_by_relation(text: str) -> dict[str, float]:
    """The shares of a line such as ``writes=0.5,cites=0.8``."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (piece.strip() for piece in part.partition("="))
        try:
            value = float(share)
        except ValueError:
            raise InputError(f"--relation-sparsity '{shown(part)}': write name=share, several with commas") from None
        if name in shares:
            raise InputError(f"--relation-sparsity names '{shown(name)}' twice")
        shares[name] = value
    return shares


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
    task: str | None = None,
) -> Any:
    which_split: Any = int(split) if split is not None and is_whole(split) else split
    if edges is None:
        _check_alone(features=features, labels=labels)
        if dataset is None:
            raise InputError("no data: give --dataset NAME, or --edges, --features and --labels of your own")
        if is_path(dataset):
            return load(dataset, split=which_split, undirected=undirected, task=task)
        if undirected:
            raise InputError(f"--undirected is for data of your own: {dataset} has its own direction")
        return load(dataset, split=which_split, root=root, task=task)
    if task is not None:
        raise InputError("--task needs --dataset: a name, a .pt file or a folder")
    if dataset is not None:
        raise InputError("give either --dataset or --edges, not both")
    if features is None or labels is None:
        raise InputError("--edges needs --features and --labels")
    return from_files(edges, features, labels, split=which_split, undirected=undirected)


def _check_alone(**files: Path | None) -> None:
    for name, file in files.items():
        if file is not None:
            raise InputError(f"--{name} needs --edges: edges, features and labels are given together")


def dense_graph(result: Result, run: Path, dataset: str | None, edges: Path | None, *rest: Any) -> Any:
    """What a run began with: data that the user names, else the data set that the run names; never a file it names."""
    if dataset is None and edges is None:
        _check_alone(features=rest[0], labels=rest[1])
        dataset = result.metrics["dataset"]
        if not is_named(dataset) and result.removed is not None:
            return result.dense_graph()
        if not is_named(dataset):
            raise InputError(
                f"{run} does not hold its dense graph: give it by --dataset, or by --edges, --features and --labels"
            )
    return load_data(dataset, edges, *rest)
