"""Memory left by the limits of control groups, as set by containers, systemd slices and batch systems such as Slurm."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_PROCESS = Path("/proc/self")
_DEFAULT_MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _Version:
    """One version of the kernel's interface: names of its files and of the fields of ``memory.stat``."""

    limits: tuple[str, ...]
    used: str
    reclaimable: tuple[str, ...]  # unused file pages, which the kernel reclaims before it refuses memory
    inherited: str | None = None  # the tightest limit of the parent groups, in case those are not visible


_V2 = _Version(("memory.max", "memory.high"), "memory.current", ("inactive_file",))
_V1 = _Version(
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_inactive_file", "inactive_file"),
    "hierarchical_memory_limit",
)


def free_group_memory(process: Path | None = None, default_mount: Path = _DEFAULT_MOUNT) -> int | None:
    """Bytes left in the tightest group of the process or any of its parents; None if no group has a limit."""
    process = process or _PROCESS
    free = [
        _free_memory(folder, version)
        for version, mount, root, group in _memberships(process, default_mount)
        for folder in _with_parents(mount, root, group)
    ]
    return min((size for size in free if size is not None), default=None)


def read_lines(path: Path) -> list[str]:
    """The lines of a kernel file; an empty list if it does not exist."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _memberships(process: Path, default_mount: Path) -> Iterator[tuple[_Version, Path, str, str]]:
    """For every hierarchy: version, mount point, the group mounted there, and the group of the process."""
    mounts = _mounts(process)
    for line in read_lines(process / "cgroup"):  # number:controllers:group
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            mount, root = mounts.get("cgroup2", (default_mount, "/"))
            yield _V2, mount, root, group
        elif "memory" in controllers.split(","):
            mount, root = mounts.get("memory", (default_mount / "memory", "/"))
            yield _V1, mount, root, group


def _mounts(process: Path) -> dict[str, tuple[Path, str]]:
    """Mount point and mounted group of version 2 (``cgroup2``) and of version 1's memory controller (``memory``).

    A line is: id, parent, device, root, mount point, options, any number of fields, "-", type, source, options.
    """
    mounts: dict[str, tuple[Path, str]] = {}
    for line in read_lines(process / "mountinfo"):
        before, _, after = line.partition(" - ")
        fields, filesystem = before.split(), after.split()
        if len(fields) < 5 or len(filesystem) < 3:
            continue
        mount = Path(_unescaped(fields[4])), _unescaped(fields[3])
        if filesystem[0] == "cgroup2":
            mounts.setdefault("cgroup2", mount)
        elif filesystem[0] == "cgroup" and "memory" in filesystem[2].split(","):
            mounts.setdefault("memory", mount)
    return mounts


def _unescaped(field: str) -> str:
    r"""Decodes the octal escapes of blanks and other special characters.

    >>> _unescaped(r"/my\040mount")
    '/my mount'
    """
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), field)


def _with_parents(mount: Path, root: str, group: str) -> Iterator[Path]:
    """The folders of a group and its parents; the mount point alone if the group lies outside of it."""
    inside = PurePosixPath(group)
    if inside.is_relative_to(root) and ".." not in inside.parts:
        folder = mount / inside.relative_to(root)
        while folder != mount:
            yield folder
            folder = folder.parent
    yield mount


def _free_memory(folder: Path, version: _Version) -> int | None:
    """Bytes left in one group; reclaimable file pages count as free. None if it has no limit."""
    stat = dict(line.split(" ", 1) for line in read_lines(folder / "memory.stat") if " " in line)
    texts = [*(_first_line(folder / name) for name in version.limits), stat.get(version.inherited or "", "")]
    limits = [int(text) for text in texts if text.isdecimal()]  # "max" means no limit
    if not limits:
        return None
    used = _first_line(folder / version.used)
    reclaimable = next((stat[name] for name in version.reclaimable if name in stat), "0")
    in_use = int(used) - int(reclaimable) if used.isdecimal() and reclaimable.isdecimal() else 0
    return max(0, min(limits) - max(0, in_use))


def _first_line(path: Path) -> str:
    return next(iter(read_lines(path)), "").strip()
