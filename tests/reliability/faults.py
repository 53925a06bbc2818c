"""A disk that is full, broken or closed, at every single call in turn."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CALLS = ("write", "fsync", "replace")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


@contextmanager
def failing(call: str, error: int, number: int) -> Iterator[list[int]]:
    """Inside, the ``number``-th ``os.call`` fails with ``error``; gives the list of all that were made."""
    real, made = getattr(os, call), []

    def fake(*args: Any, **kwargs: Any) -> Any:
        made.append(1)
        if len(made) == number:
            raise OSError(error, os.strerror(error))
        return real(*args, **kwargs)

    setattr(os, call, fake)
    try:
        yield made
    finally:
        setattr(os, call, real)
