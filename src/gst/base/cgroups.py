"""What control groups leave of the memory: those of containers, systemd's slices and batch systems such as Slurm."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_PROCESS, _USUAL = Path("/proc/self"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _Version:
    """One version of the kernel's interface: names of files, and of lines in ``memory.stat``."""

    limits: tuple[str, ...]
    used: str
    reclaimable: tuple[str, ...]  # pages of files not in use, which the kernel gives up before it refuses memory
    inherited: str | None = None  # the tightest limit above, where the groups above cannot be seen


_V2 = _Version(("memory.max", "memory.high"), "memory.current", ("inactive_file",))
_V1 = _Version(
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_inactive_file", "inactive_file"),
    "hierarchical_memory_limit",
)


def group_room(process: Path | None = None, usual: Path = _USUAL) -> int | None:
    """Bytes that the tightest group around the process leaves, its own or any above; None if none has a limit."""
    process = process or _PROCESS
    rooms = [
        _room(folder, version)
        for version, mount, root, group in _memberships(process, usual)
        for folder in _upwards(mount, root, group)
    ]
    return min((room for room in rooms if room is not None), default=None)


def read_lines(path: Path) -> list[str]:
    """The lines of a file of the kernel; none where there is no such file."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _memberships(process: Path, usual: Path) -> Iterator[tuple[_Version, Path, str, str]]:
    """Version, mount point, the group that is mounted there, and the group of the process."""
    mounts = _mounts(process)
    for line in read_lines(process / "cgroup"):  # number:controllers:group
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            mount, root = mounts.get("cgroup2", (usual, "/"))
            yield _V2, mount, root, group
        elif "memory" in controllers.split(","):
            mount, root = mounts.get("memory", (usual / "memory", "/"))
            yield _V1, mount, root, group


def _mounts(process: Path) -> dict[str, tuple[Path, str]]:
    """Where version 2 (``cgroup2``) and the memory controller of version 1 (``memory``) are mounted, and what of them.

    A line is: id, parent, device, root, mount point, options, any number of fields, "-", type, source, options.
    """
    found: dict[str, tuple[Path, str]] = {}
    for line in read_lines(process / "mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        place = Path(_plain(fields[4])), _plain(fields[3])
        if kind[0] == "cgroup2":
            found.setdefault("cgroup2", place)
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            found.setdefault("memory", place)
    return found


def _plain(field: str) -> str:
    r"""Blanks and the like are written as octal numbers.

    >>> _plain(r"/my\040mount")
    '/my mount'
    """
    return re.sub(r"\\([0-7]{3})", lambda number: chr(int(number[1], 8)), field)


def _upwards(mount: Path, root: str, group: str) -> Iterator[Path]:
    """The folder of a group and of all groups above it; only the mount point where the group lies outside of it."""
    inside = PurePosixPath(group)
    if inside.is_relative_to(root) and ".." not in inside.parts:
        folder = mount / inside.relative_to(root)
        while folder != mount:
            yield folder
            folder = folder.parent
    yield mount


def _room(folder: Path, version: _Version) -> int | None:
    """What one group leaves; pages of files that can be had back count as free."""
    stat = dict(line.split(" ", 1) for line in read_lines(folder / "memory.stat") if " " in line)
    texts = [*(_first(folder / name) for name in version.limits), stat.get(version.inherited or "", "")]
    limits = [int(text) for text in texts if text.isdecimal()]  # "max" is none
    if not limits:
        return None
    used = _first(folder / version.used)
    free = next((stat[name] for name in version.reclaimable if name in stat), "0")
    taken = int(used) - int(free) if used.isdecimal() and free.isdecimal() else 0
    return max(0, min(limits) - max(0, taken))


def _first(path: Path) -> str:
    return next(iter(read_lines(path)), "").strip()
