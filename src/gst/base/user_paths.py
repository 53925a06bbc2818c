"""Paths that a user names: nothing there is replaced by accident, and what is refused leaves nothing behind."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gst.base.errors import InputError


def named(path: str | os.PathLike[str]) -> Path:
    """The path; an empty one, which would mean the current folder, is a mistake."""
    if not os.fspath(path):
        raise InputError("an empty path names no place: give one ('.' is the current folder)")
    return Path(path)


def check_file(path: Path, force: bool = True) -> None:
    """Refuses to write where a rename would replace what is no plain file; without ``force``, where anything is."""
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
        raise InputError(f"{path} is there already: choose another name, or replace it with --force")


def make_folders(folder: Path) -> list[Path]:
    """Makes a folder and those above it; gives the ones that were missing, the innermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def remove_folders(made: Iterable[Path]) -> None:
    """Removes those of these folders that are still empty."""
    for folder in made:
        with suppress(OSError):
            folder.rmdir()
