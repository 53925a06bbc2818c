"""Published graphs through their PyG loaders, with raw files from the data root, the mirror or the network.

PyG downloads and processes in place, so a kill or a second process can leave half a file behind. Here it works in a
temporary folder below the data root, and only what was read and counted is moved into place.
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
from gst.data.info import DatasetInfo
from gst.data.untrusted import one_line, shown
from gst.storage.paths import mirror_root

TIMEOUT = 30.0  # seconds without an answer before a download counts as failed


@dataclass(frozen=True)
class Source:
    """A PyG data set and the raw files it reads below its root."""

    open: Callable[[str], InMemoryDataset]
    raw: str
    files: tuple[str, ...]
    columns: int | None = None  # of edge_index, where they are not two for every edge

    def raw_files(self, root: Path) -> list[Path]:
        return [root / self.raw / file for file in self.files]

    def processed(self, root: Path) -> Path:
        return (root / self.raw).parent / "processed"


def fetch(source: Source, info: DatasetInfo, root: Path) -> Data:
    """The graph from PyG's cache below ``root``, else built from raw files; a cache that does not read is replaced."""
    cache = source.processed(root)
    if cache.is_dir() and all(file.is_file() for file in (*source.raw_files(root), *cache.iterdir())):
        with suppress(Exception):  # torch, zipfile and pickle share no error for a broken file
            return _open(source, info, root)
    try:
        return _build(source, info, root)
    except OSError as error:
        hint = "a read-only folder belongs into $GST_MIRROR"
        raise InputError(f"{info.name}: cannot write below the data root {root} ({one_line(error)}); {hint}") from error


def _build(source: Source, info: DatasetInfo, root: Path) -> Data:
    found = _find_raw(source, root)
    root.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".gst-", dir=root, ignore_cleanup_errors=True) as folder:
        stage = Path(folder)
        for target, origin in zip(source.raw_files(stage), found, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            if origin is not None:
                shutil.copyfile(origin, target)
        try:
            data = _open(source, info, stage)
        except Exception as error:
            raise InputError(_reason(source, info, root, found, error)) from error
        _publish(source, stage, root)
    return data


def _find_raw(source: Source, root: Path) -> list[Path | None]:
    """For every raw file the first of data root and mirror that has it."""
    mirror = mirror_root()
    places = [source.raw_files(place) for place in (root, mirror) if place is not None]
    found = [next((file for file in files if file.exists()), None) for files in zip(*places, strict=True)]
    for file in filter(None, found):
        require_regular(file)
    return found


def _publish(source: Source, stage: Path, root: Path) -> None:
    """Moves finished files into place, each in one step."""
    cache = source.processed(stage)
    finished = [file for file in source.raw_files(stage) if not (root / file.relative_to(stage)).exists()]
    for file in finished + sorted(cache.iterdir()):
        target = root / file.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)


def _open(source: Source, info: DatasetInfo, root: Path) -> Data:
    """What PyG reads below ``root``, if it has the published size: a cut text file would read without complaint."""
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
    """Keeps PyG's progress off stderr, and a silent network from blocking for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        socket.setdefaulttimeout(before)


def _reason(source: Source, info: DatasetInfo, root: Path, found: list[Path | None], error: Exception) -> str:
    present = [file for file in found if file is not None]
    if len(present) == len(found):
        folders = sorted({str(file.parent) for file in present})
        where = str(present[0]) if len(present) == 1 else " and ".join(folders)
        return f"{info.name}: not the published raw data in {where} ({one_line(error)}); replace or remove it"
    mirror = mirror_root()
    also = f"$GST_MIRROR ({mirror / source.raw})" if mirror else "$GST_MIRROR (not set)"
    missing = ", ".join(file for file, place in zip(source.files, found, strict=True) if place is None)
    return (
        f"{info.name}: no raw files ({shown(missing)}) in {root / source.raw} nor in {also}, "
        f"and the download failed ({one_line(error, 60)})"
    )
