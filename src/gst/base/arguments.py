"""Checks of arguments: one clear line for a value of the wrong type, before any work."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gst.base.errors import InputError
from gst.base.text import shown
from gst.base.user_paths import non_empty_path


def check_number(name: str, value: object, meaning: str, *kinds: type) -> None:
    """Requires a number of these kinds, by default int or float; neither a bool nor a numeric string counts."""
    accepted = kinds or (int, float)
    if isinstance(value, bool) or not isinstance(value, accepted):
        expected = " or ".join(kind.__name__ for kind in accepted)
        raise InputError(f"{name} is a {type(value).__name__} ({shown(value, 40)}): {expected} is needed, {meaning}")


def check_options(method: str, **options: tuple[Any, type, Callable[[Any], bool], str]) -> None:
    """Requires every option to be a finite number in its range.

    ``options``: name=(value, int or float, a predicate that accepts the range, the range in words).
    """
    for name, (value, kind, in_range, valid_range) in options.items():
        check_number(f"{method}: {name}", value, valid_range, *([int] if kind is int else [int, float]))
        if not (-math.inf < value < math.inf and in_range(value)):
            raise InputError(f"{method}: {name} = {shown(value)}: {valid_range} is needed")


def as_path(name: str, value: Any) -> Path:
    """A path from text or a path object."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} is a {type(value).__name__}: a path is needed")
    return non_empty_path(value)
