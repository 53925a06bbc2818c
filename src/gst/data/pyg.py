"""Published graphs through their PyG loaders, with raw files from the data root, the mirror or the network.

PyG downloads and processes in place, so a kill or a second process can leave half a file behind. Here it works in a
temporary folder below the data root, and only files that were read and have the published sizes are moved into place.
"""

import io
import shutil
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from torch_geometric.data import Data, InMemoryDataset

from gst.base.errors import InputError
from gst.base.regular_files import require_regular
from gst.base.text import shown
from gst.data.registry import DatasetInfo
from gst.data.untrusted import one_line
from gst.storage.paths import mirror_root

TIMEOUT = 30.0  # seconds without a response before a download fails


@dataclass(frozen=True)
class Source:
    """A PyG data set and the raw files it reads below its root."""

    open: Callable[[str], InMemoryDataset]
    raw: str
    files: tuple[str, ...]
    columns: int | None = None  # of edge_index, if they are not two per edge

    def raw_files(self, root: Path) -> list[Path]:
        return [root / self.raw / file for file in self.files]

    def processed(self, root: Path) -> Path:
        return (root / self.raw).parent / "processed"


def fetch(source: Source, info: DatasetInfo, root: Path) -> Data:
    """The graph from PyG's cache below ``root``, else built from raw files; an unreadable cache is replaced."""
    cache = source.processed(root)
    if cache.is_dir() and all(file.is_file() for file in (*source.raw_files(root), *cache.iterdir())):
        with suppress(Exception):  # torch, zipfile and pickle have no common base class for a broken file
            return _open(source, info, root)
    try:
        return _build(source, info, root)
    except OSError as error:
        hint = "set $GST_MIRROR to use a read-only folder"
        raise InputError(f"{info.name}: cannot write below the data root {root} ({one_line(error)}); {hint}") from error


def _build(source: Source, info: DatasetInfo, root: Path) -> Data:
    raw = _find_raw(source, root)
    root.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".gst-", dir=root, ignore_cleanup_errors=True) as folder:
        stage = Path(folder)
        for target, origin in zip(source.raw_files(stage), raw, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            if origin is not None:
                shutil.copyfile(origin, target)
        try:
            data = _open(source, info, stage)
        except Exception as error:
            raise InputError(_reason(source, info, root, raw, error)) from error
        _publish(source, stage, root)
    return data


def _find_raw(source: Source, root: Path) -> list[Path | None]:
    """Every raw file from the data root or else the mirror; None where neither has it."""
    mirror = mirror_root()
    candidates = [source.raw_files(folder) for folder in (root, mirror) if folder is not None]
    raw = [next((file for file in files if file.exists()), None) for files in zip(*candidates, strict=True)]
    for file in filter(None, raw):
        require_regular(file)
    return raw


def _publish(source: Source, stage: Path, root: Path) -> None:
    """Moves finished files below the data root, each atomically."""
    cache = source.processed(stage)
    finished = [file for file in source.raw_files(stage) if not (root / file.relative_to(stage)).exists()]
    for file in finished + sorted(cache.iterdir()):
        target = root / file.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)


def _open(source: Source, info: DatasetInfo, root: Path) -> Data:
    """What PyG reads below ``root``, checked against the published sizes: PyG reads a truncated text file silently."""
    with _quiet():
        data = source.open(str(root))[0]
    assert isinstance(data, Data) and data.x is not None and data.edge_index is not None
    columns = source.columns or 2 * info.edges
    expected = (info.nodes, info.features, columns, info.classes)
    actual = (*data.x.shape, data.edge_index.shape[1], int(data.y.max()) + 1)
    if actual != expected:
        raise ValueError(f"nodes, features, columns, classes are {actual}, published are {expected}")
    return data


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps PyG's progress off stderr, and a stalled download from blocking for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        socket.setdefaulttimeout(before)


def _reason(source: Source, info: DatasetInfo, root: Path, raw: list[Path | None], error: Exception) -> str:
    present = [file for file in raw if file is not None]
    if len(present) == len(raw):
        folders = sorted({str(file.parent) for file in present})
        where = str(present[0]) if len(present) == 1 else " and ".join(folders)
        return f"{info.name}: not the published raw data in {where} ({one_line(error)}); replace or remove it"
    mirror = mirror_root()
    also = f"$GST_MIRROR ({mirror / source.raw})" if mirror else "$GST_MIRROR (not set)"
    missing = ", ".join(name for name, file in zip(source.files, raw, strict=True) if file is None)
    return (
        f"{info.name}: no raw files ({shown(missing)}) in {root / source.raw} nor in {also}, "
        f"and the download failed ({one_line(error, 60)})"
    )
