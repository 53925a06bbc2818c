"""Untrusted text made safe to show: short, and without escape sequences or spreadsheet formulas."""

import re
from collections.abc import Collection
from difflib import get_close_matches

MOST = 300  # characters in a message
_MAX_VALUE = 60  # characters of a value quoted in a message
_MAX_CHOICES = 120  # characters in a list of choices
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def printable(text: str) -> str:
    r"""One line without control characters: white space becomes spaces, other unprintable characters become �.

    >>> printable("red \x1b[31m\nor\tnot \udcff")
    'red �[31m or not �'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else "�" for char in text)


def shorten(text: str, max_length: int = MOST) -> str:
    """The text, or its beginning and end if it is longer than ``max_length``.

    >>> shorten("a very long name", 9)
    'a ver…ame'
    """
    if len(text) <= max_length:
        return text
    tail = (max_length - 1) * 3 // 8
    return f"{text[: max_length - 1 - tail]}…{text[-tail:]}"


def shown(value: object, max_length: int = _MAX_VALUE) -> str:
    """An untrusted value for a message or a table: printable and short."""
    return shorten(printable(value if isinstance(value, str) else str(value)), max_length)


def message(text: str) -> str:
    """One line of at most :data:`MOST` characters."""
    return shown(" ".join(text.split()), MOST)


def choices(options: Collection[str], name: str = "") -> str:
    """The options, separated by commas; of a long list those nearest to ``name``.

    >>> choices(["red", "blue"])
    'red, blue'
    >>> choices([f"colour{i}" for i in range(100)], "colour7")
    'colour7, colour97, colour87, colour79, colour78 … (100 in all)'
    """
    text = ", ".join(options)
    if len(text) <= _MAX_CHOICES:
        return text
    return f"{', '.join(get_close_matches(name[:_MAX_VALUE], options, n=5, cutoff=0))} … ({len(options)} in all)"


def is_whole(text: str) -> bool:
    """Whether the text is a non-negative decimal integer of at most 18 digits; ``str.isdigit`` also accepts ²."""
    return text.isascii() and text.isdigit() and len(text) < 19


def as_cell(text: str) -> str:
    """The text of a CSV cell that no spreadsheet takes for a formula; :func:`from_cell` is the inverse.

    >>> as_cell("=cmd()"), from_cell(as_cell("=cmd()")), as_cell("a=b")
    ("'=cmd()", '=cmd()', 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """The inverse of :func:`as_cell`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
