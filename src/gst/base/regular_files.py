"""Files that others may have written: only regular ones are opened, and what they truly hold is known before."""

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
_MOST_EXTENTS = 100_000  # stretches of data that are counted; more of them hold hundreds of megabytes


def require_regular(path: Path) -> os.stat_result:
    """What the system knows of a regular file, or of the one that a link leads to; anything else gets one line.

    A pipe would block for ever, a device may never end.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        raise MissingError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    _check_kind(path, found)
    return found


def open_regular(path: Path) -> BinaryIO:
    """A regular file open for reading; it is looked at again once open, for it may have been exchanged."""
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
    """The size of a file without its holes: those read as zeros and cost nothing to make, however many they are."""
    found = require_regular(path)
    size = found.st_size
    if not hasattr(os, "SEEK_DATA") or 1024 * found.st_blocks >= size:
        return size
    held = end = 0
    with open_regular(path) as file:  # some systems count blocks late: the holes themselves decide
        for _ in range(_MOST_EXTENTS):
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # nothing but a hole from here on
                break
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            held += end - start
    return held


def _check_kind(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise InputError(f"{path} is {kind}: a regular file is needed")
