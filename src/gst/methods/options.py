"""The arguments of a method itself, as words on a command line."""

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.methods import METHODS


def parse_options(method: str, given: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE pairs as arguments of the method, of the type that it wants.

    >>> parse_options("ugs", ["prune-ratio=0.1", "round_epochs=20"])
    {'prune_ratio': 0.1, 'round_epochs': 20}
    """
    method = resolve_name("method", method, METHODS)
    known, found = METHODS[method].options, {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option {text!r}: NAME=VALUE is needed")
        if not known:
            raise InputError(f"--option {text!r}: method {method} has none of its own")
        name = resolve_name(f"option of {method}", name, known)
        try:
            found[name] = TypeAdapter(known[name].annotation).validate_python(None if value == "none" else value)
        except ValidationError as error:
            raise InputError(f"--option {text!r}: {error.errors()[0]['msg'].lower()}") from None
    return found
