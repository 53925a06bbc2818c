"""A disk that is full, broken or read-only, and a process that is killed, at any chosen call to the disk."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CALLS = ("write", "fsync", "replace")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


@contextmanager
def failing(call: str, error: int, number: int) -> Iterator[list[int]]:
    """Inside, the ``number``-th ``os.call`` fails with ``error``; yields a list with one item per call made."""
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


@contextmanager
def dying(number: int) -> Iterator[list[str]]:
    """Inside, the process is killed at the ``number``-th call to the disk (0: never); yields the calls made."""
    made: list[str] = []

    def wrap(call: str) -> Callable[..., Any]:
        real = getattr(os, call)

        def fake(*args: Any, **kwargs: Any) -> Any:
            made.append(call)
            if len(made) == number:
                if call == "write":  # half of the content reaches the file
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return fake

    before = {call: getattr(os, call) for call in (*CALLS, "open", "close", "unlink", "mkdir", "rmdir")}
    for call in before:
        setattr(os, call, wrap(call))
    try:
        yield made
    finally:
        for call, real in before.items():
            setattr(os, call, real)
