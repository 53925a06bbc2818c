"""What fits: memory that is needed against memory that is there, and what a file claims against what it is."""

import ctypes
import os
from pathlib import Path

from gst.base.cgroups import group_room, read_lines
from gst.base.errors import InputError
from gst.base.regular_files import held_bytes, require_regular

SMALL = 256 * 2**20  # bytes that any machine can spare
MOST_RATIO = 500  # real data, sparse features included, hold at least one byte in so many of what they unfold to
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # their numbers in malloc.h of glibc


def available_memory() -> int | None:
    """Bytes that this process may still take: of the machine, its control groups and its own limit; None if unknown."""
    found = [_free(), group_room(), _address_space()]
    return min((value for value in found if value is not None), default=None)


def reuse_memory() -> None:
    """Has the C library keep what is freed for what is asked for next; for processes of our own, not for an import.

    By default an array of tens of megabytes is given back to the kernel each time and comes again page by page, each
    cleared: with such features (PubMed, Computers) up to a half of an epoch. Where there is no glibc, nothing happens.
    """
    try:
        options = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    options(_MMAP_THRESHOLD, 256 * 2**20)
    options(_TRIM_THRESHOLD, 512 * 2**20)


def check_memory(needed: int, what: str, remedy: str) -> None:
    """One clear line before the work, instead of the kernel's killer in the middle of it."""
    available = available_memory()
    if available is not None and needed > max(available, SMALL):
        raise InputError(f"{what} needs about {_gib(needed)} of memory, {_gib(available)} are free: {remedy}")


def check_claim(path: Path, size: int) -> None:
    """Refuses a file that would unfold to ``size`` bytes when that is absurd for its own size, or does not fit."""
    if size > SMALL and size > MOST_RATIO * held_bytes(path):
        raise InputError(f"{path} is small but would unfold to {_gib(size)}: no real data does, it is not read")
    check_memory(size, str(path), "a machine with more memory would help, or a smaller graph")


def check_size(path: Path, most: int | None = None) -> int:
    """The size of a regular file that may be read whole: at most ``most`` bytes, not mostly holes, and it fits."""
    size = require_regular(path).st_size
    if most is not None and size > most:
        raise InputError(f"{path} is larger than {most // 2**20} MiB: no such file of gst is")
    check_claim(path, size)
    return size


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _free() -> int | None:
    for line in read_lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return None


def _address_space() -> int | None:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = read_lines(Path("/proc/self/statm"))
    if limit == resource.RLIM_INFINITY or not used:
        return None
    return max(0, limit - int(used[0].split()[0]) * os.sysconf("SC_PAGE_SIZE"))
