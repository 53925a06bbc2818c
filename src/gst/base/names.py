"""Names resolve regardless of case, dashes, underscores and spaces; for an unknown name the error lists the choices."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from gst.base.errors import InputError
from gst.base.text import choices, shown

T = TypeVar("T")


def normalise_name(name: str) -> str:
    """The name in lower case, without dashes, underscores and spaces."""
    return "".join(c for c in name.lower() if c not in "-_ ")


def resolve(kind: str, name: str, options: Mapping[str, T]) -> T:
    """The option called ``name``.

    >>> resolve("color", "Dark-Red", {"dark_red": 1, "blue": 2})
    1
    """
    return options[resolve_name(kind, name, options)]


def resolve_name(kind: str, name: str, options: Iterable[str]) -> str:
    """The canonical spelling of ``name`` among ``options``."""
    names = {normalise_name(option): option for option in options}
    if not isinstance(name, str):
        raise InputError(f"{kind} is a {type(name).__name__}: a name is needed, of {choices(names.values())}")
    if normalise_name(name) in names:
        return names[normalise_name(name)]
    close = get_close_matches(normalise_name(name), names, n=1)
    hint = f"did you mean {names[close[0]]!r}? " if close else ""
    raise InputError(f"unknown {kind} '{shown(name)}': {hint}choose from {choices(names.values(), name)}")
