"""Paths given by a user: nothing is replaced by accident, and a refused call leaves nothing behind."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gst.base.errors import InputError


def non_empty_path(path: str | os.PathLike[str]) -> Path:
    """The path; refuses an empty one, which ``Path`` would take for the current folder."""
    if not os.fspath(path):
        raise InputError("an empty path is not allowed: write '.' for the current folder")
    return Path(path)


def check_file(path: Path, force: bool = True) -> None:
    """Refuses to write where anything but a regular file would be replaced; without ``force``, anything at all."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    if stat.S_ISLNK(mode):
        raise InputError(f"cannot write {path}: it is a symbolic link; name the file itself")
    if stat.S_ISDIR(mode):
        raise InputError(f"cannot write {path}: it is a folder; a file is needed")
    if not stat.S_ISREG(mode):
        raise InputError(f"cannot write {path}: it is a device or a pipe; a file is needed")
    if not force:
        raise InputError(f"{path} exists already: choose another name, or replace it with --force")


def make_folders(folder: Path) -> list[Path]:
    """Makes a folder and its parents; returns the ones that were missing, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def remove_folders(folders: Iterable[Path]) -> None:
    """Removes those of the folders that are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
