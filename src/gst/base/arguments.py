"""Arguments of a Python call: one clear line for a value of the wrong type, before any work."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gst.base.errors import InputError
from gst.base.text import shown
from gst.base.user_paths import named


def check_number(name: str, value: object, meaning: str, *kinds: type) -> None:
    """A number of these kinds, by default int or float; True is none, and neither is text that looks like one."""
    wanted = kinds or (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        words = " or ".join(kind.__name__ for kind in wanted)
        raise InputError(f"{name} is a {type(value).__name__} ({shown(value, 40)}): {words} is needed, {meaning}")


def check_options(method: str, **options: tuple[Any, type, Callable[[Any], bool], str]) -> None:
    """A line for the first argument that is no finite number in its range.

    ``options``: name=(value, int or float, whether a value fits, the range in words).
    """
    for name, (value, kind, fits, wanted) in options.items():
        check_number(f"{method}: {name}", value, wanted, *([int] if kind is int else [int, float]))
        if not (-math.inf < value < math.inf and fits(value)):
            raise InputError(f"{method}: {name} = {shown(value)}: {wanted} is needed")


def as_path(name: str, value: Any) -> Path:
    """A path from text or a path object."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} is a {type(value).__name__}: a path is needed")
    return named(value)
