"""Where raw files live: the data root, which is written, and the mirror, which is only read."""

import os
from pathlib import Path

from platformdirs import user_cache_path

from gst.base.errors import InputError


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """``root``, else ``$GST_DATA``, else the user's cache folder."""
    place = root or os.environ.get("GST_DATA")
    folder = _absolute(place) if place else user_cache_path("gst")
    mirror = mirror_root()
    if mirror is not None and _real(folder).is_relative_to(_real(mirror)):
        raise InputError(f"the data root {folder} lies in $GST_MIRROR, which is only read: choose another data root")
    return folder


def _absolute(place: str | os.PathLike[str]) -> Path:
    try:
        return Path(place).expanduser().absolute()
    except RuntimeError:
        raise InputError(f"{place}: there is no such user, whose home could be found") from None


def _real(path: Path) -> Path:
    """Without symbolic links; unlike Path.resolve, also where they go round in circles."""
    return Path(os.path.realpath(path))


def mirror_root() -> Path | None:
    """``$GST_MIRROR``: a read-only folder laid out like the data root."""
    place = os.environ.get("GST_MIRROR")
    return _absolute(place) if place else None
