"""Text from outside made fit to be shown: never markup, an escape sequence or a formula, and never endless."""

import re
from collections.abc import Collection
from difflib import get_close_matches

MOST = 300  # characters of a message
_NAME = 60  # of a value that a message quotes
_CHOICES = 120  # of a list of choices
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def printable(text: str) -> str:
    r"""One line without anything that a terminal would act on: white space as spaces, other such signs as �.

    >>> printable("red \x1b[31m\nor\tnot \udcff")
    'red �[31m or not �'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "�" for sign in text)


def shorten(text: str, most: int = MOST) -> str:
    """The text, or its beginning and end if it is longer than ``most``.

    >>> shorten("a very long name", 9)
    'a ver…ame'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) * 3 // 8
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def shown(value: object, most: int = _NAME) -> str:
    """A value from outside as it may stand in a message or a table: printable, short."""
    return shorten(printable(value if isinstance(value, str) else str(value)), most)


def message(text: str) -> str:
    """One line of at most :data:`MOST` characters."""
    return shown(" ".join(text.split()), MOST)


def choices(options: Collection[str], name: str = "") -> str:
    """The options with commas between; of a long list those nearest to ``name``.

    >>> choices(["red", "blue"])
    'red, blue'
    >>> choices([f"colour{i}" for i in range(100)], "colour7")
    'colour7, colour97, colour87, colour79, colour78 … (100 in all)'
    """
    text = ", ".join(options)
    if len(text) <= _CHOICES:
        return text
    return f"{', '.join(get_close_matches(name[:_NAME], options, n=5, cutoff=0))} … ({len(options)} in all)"


def is_whole(text: str) -> bool:
    """Whether these are the digits of a number that fits into 64 bits; str.isdigit also likes ² and endless numbers."""
    return text.isascii() and text.isdigit() and len(text) < 19


def as_cell(text: str) -> str:
    """The text of a CSV cell that no spreadsheet takes for a formula; :func:`from_cell` gives the text back.

    >>> as_cell("=cmd()"), from_cell(as_cell("=cmd()")), as_cell("a=b")
    ("'=cmd()", '=cmd()', 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """The text that :func:`as_cell` made this of."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
