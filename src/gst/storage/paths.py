"""Locations of raw files: the data root, which gst writes to, and the read-only mirror."""

import os
from pathlib import Path

from platformdirs import user_cache_path

from gst.base.errors import InputError


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """``root``, else ``$GST_DATA``, else the user's cache folder."""
    path = root or os.environ.get("GST_DATA")
    folder = _absolute(path) if path else user_cache_path("gst")
    mirror = mirror_root()
    if mirror is not None and _real(folder).is_relative_to(_real(mirror)):
        raise InputError(f"the data root {folder} lies in $GST_MIRROR, which is only read: choose another data root")
    return folder


def _absolute(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise InputError(f"{path}: there is no such user; write the path without ~") from None


def _real(path: Path) -> Path:
    """The path without symbolic links; unlike ``Path.resolve`` it tolerates circular ones."""
    return Path(os.path.realpath(path))


def mirror_root() -> Path | None:
    """``$GST_MIRROR``: a read-only folder with the layout of the data root."""
    path = os.environ.get("GST_MIRROR")
    return _absolute(path) if path else None
