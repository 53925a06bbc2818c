"""Untrusted files: only regular ones are opened, and how much data they really hold is known beforehand."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from gst.base.errors import InputError, MissingError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_MAX_EXTENTS = 100_000  # data extents to count; a file with more of them holds hundreds of megabytes


def require_regular(path: Path) -> os.stat_result:
    """The ``stat`` of a regular file, links followed; anything else is refused.

    A pipe would block for ever, a device may never end.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise MissingError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    _check_kind(path, status)
    return status


def open_regular(path: Path) -> BinaryIO:
    """A regular file, opened for reading; checked again once open, for it may have been replaced meanwhile."""
    require_regular(path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise MissingError(f"no such file: {path}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        _check_kind(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def held_bytes(path: Path) -> int:
    """The size of a file without its holes, which read as zeros and cost nothing to make."""
    status = require_regular(path)
    size = status.st_size
    if not hasattr(os, "SEEK_DATA") or 1024 * status.st_blocks >= size:
        return size
    held = end = 0
    with open_regular(path) as file:  # some file systems update st_blocks late: look for the holes themselves
        for _ in range(_MAX_EXTENTS):
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # no data after this offset
                break
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            held += end - start
    return held


def _check_kind(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise InputError(f"{path} is {kind}: a regular file is needed")
