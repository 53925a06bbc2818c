"""``load``: a data set by name, or the user's own data by path."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.base.names import normal, resolve_name
from gst.base.text import shown
from gst.data.files import Split, load_path
from gst.data.registry import ENTRIES, Entry
from gst.data.splits import choose
from gst.data.validate import finish, stored_masks
from gst.storage.paths import data_root

MOST = 10**18  # of any option of a data set


@plain_torch()
def load(
    dataset: str | os.PathLike[str],
    *,
    split: Split = None,
    root: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Data:
    """A graph with ``x``, ``y``, ``edge_index``, the three masks, ``name`` and ``metric``.

    Args:
        dataset: a name from ``datasets()``, with options after a colon if it has any
            (``"synthetic:nodes=5000,degree=20"``, ``"Cora:split=paper"``), or a path: a PyG ``Data`` saved as ``.pt``,
            or a folder with ``edges.*``, ``features.*``, ``labels.*`` and perhaps ``split.*``. Where a folder has the
            name of a data set, ``./name`` means the folder.
        split: None for the default; a number for a shipped split or a seed; ``"public"``, ``"paper"`` or
            ``"random"``, the last two with an optional seed (``"random:3"``); for own data also a split file.
        root: where raw files are kept, instead of ``$GST_DATA`` or the user's cache folder.
        options: of ``digits`` how many ``nodes``, of ``synthetic`` its sizes, of its large relatives ``scale`` and
            ``seed``; of own data ``undirected`` and ``metric``.

    >>> data = load("synthetic:nodes=60,classes=2", degree=4)
    >>> data.name, data.num_nodes, data.num_edges
    ('synthetic:nodes=60,degree=4,classes=2', 60, 240)
    """
    if not isinstance(dataset, str | os.PathLike):
        raise InputError(f"dataset is a {type(dataset).__name__}: a name of gst.datasets() or a path is needed")
    name, colon, text = os.fspath(dataset).partition(":")
    if is_path(dataset):
        if unknown := options.keys() - {"undirected", "metric"}:
            raise InputError(f"own data takes no option {min(unknown)!r}, only split=, undirected= and metric=")
        return load_path(Path(dataset), split, **options)
    entry = ENTRIES[resolve_name("data set", name, ENTRIES)]
    if colon:
        options = _merge(text, {**options, **({} if split is None else {"split": split})})
        split = options.pop("split", None)
    return _load_entry(entry, split, root, _checked(entry, options))


def _load_entry(
    entry: Entry,
    split: Split,
    root: str | os.PathLike[str] | None,
    options: dict[str, Any],
) -> Data:
    info = entry.info
    try:
        data = entry.make(data_root(root), **options)
    except MemoryError as error:
        raise InputError(f"{info.name} does not fit into memory") from error
    if entry.words:
        data.x = data.x / data.x.sum(dim=1, keepdim=True).clamp(min=1)
    masks = choose(info.name, data.y, None if split is None else str(split), entry.sizes, stored_masks(data))
    changed = ",".join(f"{key}={_brief(value)}" for key, value in options.items() if value != entry.options[key])
    return finish(data, masks, name=f"{info.name}:{changed}" if changed else info.name, metric=info.metric)


def is_path(dataset: str | os.PathLike[str]) -> bool:
    """Whether this means a file or folder, there or not, because it names no data set and looks like a path."""
    path = Path(dataset)
    if isinstance(dataset, str) and is_named(dataset):
        return False
    return not isinstance(dataset, str) or len(path.parts) > 1 or path.suffix != "" or (dataset != "" and _there(path))


def is_named(dataset: str) -> bool:
    """Whether this means a data set of :func:`datasets`, with or without options."""
    return normal(dataset.partition(":")[0]) in map(normal, ENTRIES)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long, a folder that is closed
        return False


def _merge(text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a string such as ``nodes=5000,degree=20`` together with those given by name."""
    merged = dict(options)
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise InputError(f"cannot read the option '{shown(part)}': write name=value, several with commas between")
        if key in merged:
            raise InputError(f"the option {key!r} is given twice")
        merged[key] = value
    return merged


def _checked(entry: Entry, options: Mapping[str, Any]) -> dict[str, int | float]:
    """Options as numbers of the right kind, in the order of the defaults."""
    if not entry.options and options:
        raise InputError(f"{entry.info.name} takes no option {next(iter(options))!r}, only split= and root=")
    given = {resolve_name(f"option of {entry.info.name}", key, entry.options): value for key, value in options.items()}
    return {
        key: _number(key, given[key], integer=isinstance(default, int))
        for key, default in entry.options.items()
        if key in given
    }


def _number(key: str, value: Any, integer: bool) -> int | float:
    try:
        number = float(value)
        if MOST <= abs(number) < math.inf:
            raise InputError(f"{key}={shown(value)} is beyond all graphs: less than {MOST:.0e} is needed")
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
