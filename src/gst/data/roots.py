"""Where raw files live: the data root, which is written, and the mirror, which is only read."""

import os
from pathlib import Path

from platformdirs import user_cache_path

from gst.errors import InputError


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """``root``, else ``$GST_DATA``, else the user's cache folder."""
    place = root or os.environ.get("GST_DATA")
    folder = Path(place).expanduser().absolute() if place else user_cache_path("gst")
    mirror = mirror_root()
    if mirror is not None and folder.resolve().is_relative_to(mirror.resolve()):
        raise InputError(f"the data root {folder} lies in $GST_MIRROR, which is only read: choose another data root")
    return folder


def mirror_root() -> Path | None:
    """``$GST_MIRROR``: a read-only folder laid out like the data root."""
    place = os.environ.get("GST_MIRROR")
    return Path(place).expanduser().absolute() if place else None
