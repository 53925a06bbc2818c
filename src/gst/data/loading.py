"""``load``: a data set by name, or the user's own data by path."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, HeteroData

from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.base.names import normalise_name, resolve_name
from gst.base.text import shown
from gst.data.edges import Period
from gst.data.files import Split, load_path
from gst.data.links import link_split
from gst.data.objects import load_object
from gst.data.registry import DATASETS, Dataset
from gst.data.splits import choose, parse_split
from gst.data.typed import finish_typed, own_typed
from gst.data.validate import finish, stored_masks
from gst.storage.paths import data_root

TASKS = ("nodes", "links")
MAX_OPTION = 10**18  # exclusive bound of every option


@plain_torch()
def load(
    dataset: Any,
    *,
    split: Split = None,
    root: str | os.PathLike[str] | None = None,
    task: str | None = None,
    **options: Any,
) -> Any:
    """A graph with ``x``, ``y``, ``edge_index``, the three masks, ``name`` and ``metric``.

    Args:
        dataset: a name from ``datasets()``, with options after a colon if it has any
            (``"synthetic:nodes=5000,degree=20"``, ``"Cora:split=paper"``), or a path: a PyG ``Data`` or ``HeteroData``
            saved as ``.pt``, or a folder with ``edges.*``, ``features.*``, ``labels.*`` and perhaps ``split.*``. If a
            folder has the name of a data set, ``./name`` means the folder. Or a graph in memory: a PyG ``Data`` or
            ``HeteroData``, a graph of networkx or DGL, a scipy sparse matrix, or edges as a data frame of pandas or
            polars, an array or a tensor [2, E].
        split: None for the default; a number for a shipped split or a seed; ``"public"``, ``"paper"`` or
            ``"random"``, the last two with an optional seed (``"random:3"``); for own data also a split file.
        task: ``"nodes"``, the default, or ``"links"``: edges are split by :func:`gst.link_split`, with the number of
            ``split`` as its seed. Also as an option: ``"Cora:task=links"``.
        root: folder of raw files, instead of ``$GST_DATA`` or the user's cache folder.
        options: of ``digits`` the number of ``nodes``, of ``synthetic`` its sizes, of OGB's synthetic twins ``scale``
            and ``seed``; of own data ``undirected`` and ``metric``, of an edge list with times ``since`` and ``until``
            (as for :func:`gst.from_files`); of a graph in memory also ``features`` [N, F] and ``labels`` [N], as
            arrays, tensors, frames or names of node attributes, and its ``name``.

    Returns:
        ``x`` [N, F], ``y`` [N] or [N, L], ``edge_index`` [2, E], the masks [N], ``name``, ``metric``, and ``node_id``
        where nodes have names of their own; a typed graph is a ``HeteroData`` that has them by type.

    Raises:
        InputError: an unknown name, a file that cannot be read, data that do not fit together.

    >>> data = load("synthetic:nodes=60,classes=2", degree=4)
    >>> data.name, data.num_nodes, data.num_edges
    ('synthetic:nodes=60,degree=4,classes=2', 60, 240)
    >>> import networkx, numpy
    >>> club = networkx.karate_club_graph()
    >>> own = load(club, features=numpy.eye(34), labels="club", split="random", name="club")
    >>> own.num_nodes, own.num_edges == 2 * club.number_of_edges()
    (34, True)
    """
    if not isinstance(dataset, str | os.PathLike):
        _check_names(options, ("features", "labels", "undirected", "metric", "name", "since", "until"))
        period = Period(options.pop("since", None), options.pop("until", None))
        if _is_links(task):
            raise InputError("task links takes a name or a path: for a graph in memory call gst.link_split(data)")
        if isinstance(dataset, HeteroData):
            return own_typed(dataset, split, **options, period=bool(period))
        return load_object(dataset, split, **options, period=period)
    name, colon, text = os.fspath(dataset).partition(":")
    if is_path(dataset):
        _check_names(options, ("undirected", "metric", "since", "until"))
        if _is_links(task):
            return _with_links(load_path(Path(dataset), "random", **options), split)
        return load_path(Path(dataset), split, **options)
    registered = DATASETS[DATASETS.resolve(name)]
    if colon:
        given = {name: value for name, value in (("split", split), ("task", task)) if value is not None}
        options = _merge(text, {**options, **given})
        split, task = options.pop("split", None), options.pop("task", None)
    links = _is_links(task)
    data = _load_registered(registered, None if links else split, root, _checked(registered, options))
    return _with_links(data, split) if links else data


def _is_links(task: str | None) -> bool:
    return task is not None and resolve_name("task", task, TASKS) == "links"


def _with_links(data: Data, split: Split) -> Data:
    """The graph for link prediction; the name says so, and settings go by it."""
    if not isinstance(data, Data):
        raise InputError("task links takes graphs of one type of nodes and edges")
    kind, number = parse_split(None if split is None else str(split))
    if kind not in ("default", "number", "random"):
        raise InputError(f"split '{shown(str(split))}' is for classes of nodes: links take a number, the seed")
    data = link_split(data, seed=number or 0)
    data.name = f"{data.name}{',' if ':' in data.name else ':'}task=links"
    return data


def _check_names(options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if unknown := options.keys() - set(known):
        rest = ", ".join(f"{name}=" for name in ("split", *known[:-1]))
        raise InputError(f"own data takes no option {min(unknown)!r}, only {rest} and {known[-1]}=")


def _load_registered(
    dataset: Dataset,
    split: Split,
    root: str | os.PathLike[str] | None,
    options: dict[str, Any],
) -> Any:
    info = dataset.info
    try:
        data = dataset.build(data_root(root), **options)
    except MemoryError as error:
        raise InputError(f"{info.name} does not fit into memory") from error
    defaults = dataset.options
    changed = ",".join(f"{key}={_brief(value)}" for key, value in options.items() if value != defaults[key])
    name = f"{info.name}:{changed}" if changed else info.name
    if isinstance(data, HeteroData):
        return finish_typed(data, split, name=name, metric=info.metric)
    masks = choose(info.name, data.y, None if split is None else str(split), dataset.sizes, stored_masks(data))
    return finish(data, masks, name=name, metric=info.metric)


def is_path(dataset: str | os.PathLike[str]) -> bool:
    """Whether this means a file or folder, existing or not: it names no data set and looks like a path."""
    path = Path(dataset)
    if isinstance(dataset, str) and is_named(dataset):
        return False
    return not isinstance(dataset, str) or len(path.parts) > 1 or path.suffix != "" or (dataset != "" and _exists(path))


def is_named(dataset: str) -> bool:
    """Whether this means a data set of :func:`datasets`, with or without options."""
    return normalise_name(dataset.partition(":")[0]) in map(normalise_name, DATASETS)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long, a folder without permission
        return False


def _merge(text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a string such as ``nodes=5000,degree=20`` and those passed by name."""
    merged = dict(options)
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise InputError(f"cannot read the option '{shown(part)}': write name=value, several with commas between")
        if key in merged:
            raise InputError(f"the option {key!r} is given twice")
        merged[key] = value
    return merged


def _checked(dataset: Dataset, options: Mapping[str, Any]) -> dict[str, int | float]:
    """Options as integers or floats like their defaults, and in the same order."""
    name, defaults = dataset.info.name, dataset.options
    if not defaults and options:
        raise InputError(f"{name} takes no option {next(iter(options))!r}, only split= and root=")
    values = {resolve_name(f"option of {name}", key, defaults): value for key, value in options.items()}
    return {
        key: _number(key, values[key], integer=isinstance(default, int))
        for key, default in defaults.items()
        if key in values
    }


def _number(key: str, value: Any, integer: bool) -> int | float:
    try:
        number = float(value)
        if MAX_OPTION <= abs(number) < math.inf:
            raise InputError(f"{key}={shown(value)} is too large: less than {MAX_OPTION:.0e} is needed")
        if not integer:
            return number
        return int(value) if isinstance(value, str) and value.isdecimal() else _whole(number)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{key}='{shown(value)}' is not a {'whole ' if integer else ''}number") from error


def _brief(number: int | float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(number)


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(number)
    return int(number)
