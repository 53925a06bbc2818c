"""Checks before memory is taken: what is needed against what is free, what a file claims against what it holds."""

import ctypes
import os
from pathlib import Path

from gst.base.cgroups import free_group_memory, read_lines
from gst.base.errors import InputError
from gst.base.regular_files import held_bytes, require_regular

SMALL = 256 * 2**20  # bytes that any machine can spare
MAX_RATIO = 500  # of bytes in memory to bytes in the file; real data, sparse features included, stay below
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameter numbers in glibc's malloc.h


def available_memory() -> int | None:
    """Bytes this process may still take, by the machine, its control groups and its own limit; None if unknown."""
    limits = [_machine_memory(), free_group_memory(), _address_space()]
    return min((limit for limit in limits if limit is not None), default=None)


def reuse_memory() -> None:
    """Makes the C library keep freed memory for reuse. For gst's own processes; ``import gst`` must not call it.

    By default glibc returns an array of tens of megabytes to the kernel and gets it back page by page, each cleared:
    with such features (PubMed, Computers) that takes up to half of an epoch. Without glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, 256 * 2**20)
    mallopt(_TRIM_THRESHOLD, 512 * 2**20)


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Refuses work that does not fit, with one clear line, before the kernel's OOM killer ends it midway."""
    available = available_memory()
    if available is not None and needed > max(available, SMALL):
        raise InputError(f"{what} needs about {_gib(needed)} of memory, {_gib(available)} are free: {remedy}")


def check_claim(path: Path, size: int) -> None:
    """Refuses a file whose ``size`` bytes in memory are implausible for its own size, or do not fit."""
    if size > SMALL and size > MAX_RATIO * held_bytes(path):
        raise InputError(f"{path} is small but would unfold to {_gib(size)}: no real data does, it is not read")
    check_memory(size, str(path), "a machine with more memory would help, or a smaller graph")


def check_size(path: Path, max_bytes: int | None = None) -> int:
    """The size of a regular file that may be read whole: at most ``max_bytes``, not mostly holes, and it fits."""
    size = require_regular(path).st_size
    if max_bytes is not None and size > max_bytes:
        raise InputError(f"{path} is larger than {max_bytes // 2**20} MiB: no such file written by gst is")
    check_claim(path, size)
    return size


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _machine_memory() -> int | None:
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
