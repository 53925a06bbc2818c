"""Large graphs of the Open Graph Benchmark from its raw files: local ones, those of the mirror, or a download.

The raw files are read once. What is kept are plain arrays, which every later load maps from disk: nothing is read
before it is needed, and processes on one machine share it.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen
from zipfile import ZipFile

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.regular_files import require_regular
from gst.data.ogb_raw import ARRAYS, build, raw_files
from gst.data.published import Published
from gst.data.untrusted import one_line
from gst.storage.paths import mirror_root

URL = "http://snap.stanford.edu/ogb/data/nodeproppred"  # as in OGB's own list
TIMEOUT = 30.0  # seconds without an answer before a download counts as failed


def fetch(of: Published, root: Path) -> Data:
    """The graph, undirected, with the official split; from the cache below ``root``, else from raw files."""
    cache = root / f"ogbn_{of.name}" / "gst"
    arrays = mapped(of, cache)
    if arrays is None:
        try:
            for name in ARRAYS:
                (cache / f"{name}.npy").unlink(missing_ok=True)
            _make(of, root, cache)
        except OSError as error:
            hint = "a read-only folder belongs into $GST_MIRROR"
            raise InputError(
                f"ogbn-{of.name}: cannot write below the data root {root} ({one_line(error)}); {hint}"
            ) from error
        arrays = mapped(of, cache)
        assert arrays is not None
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    part = tensors.pop("part")
    return Data(**tensors, train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)


def mapped(of: Published, cache: Path) -> dict[str, np.ndarray] | None:
    """The arrays as private maps of their files, which a write does not change; None where they are not whole."""
    try:
        for name in ARRAYS:
            require_regular(cache / f"{name}.npy")
        arrays: dict[str, np.ndarray] = {
            name: np.lib.format.open_memmap(cache / f"{name}.npy", mode="c") for name in ARRAYS
        }
    except (OSError, ValueError):  # not there, or cut off
        return None
    labels = (of.nodes, of.classes) if of.multilabel else (of.nodes,)
    shapes = {"edge_index": (2, arrays["edge_index"].shape[-1]), "x": (of.nodes, of.features), "y": labels}
    right = all(
        array.dtype == ARRAYS[name] and array.shape == shapes.get(name, (of.nodes,)) for name, array in arrays.items()
    )
    return arrays if right else None


def _make(of: Published, root: Path, cache: Path) -> None:
    """Finds or downloads the raw files and builds the cache; only what was read and counted is moved into place."""
    root.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".gst-", dir=root, ignore_cleanup_errors=True) as folder:
        stage, found = Path(folder), _find(of, root)
        raw = found or _unpack(of, _archive(of, root, stage), stage / "unpacked")
        (stage / "gst").mkdir()
        build(of, raw, stage / "gst")
        cache.parent.mkdir(parents=True, exist_ok=True)
        for file in () if found else raw_files(of):
            (cache.parent / file).parent.mkdir(parents=True, exist_ok=True)
            (raw / file).replace(cache.parent / file)
        try:
            (stage / "gst").rename(cache)
        except OSError:
            if mapped(of, cache) is None:  # else another process was first, with the same content
                raise


def _find(of: Published, root: Path) -> Path | None:
    """The first folder that has all raw files: by the names that OGB's loaders leave, and that of the archive."""
    names = (f"ogbn_{of.name}", f"ogbn_{of.name}_pyg", f"ogbn_{of.name}_dgl", of.name)
    folders = [place / name for place in (root, mirror_root()) if place is not None for name in names]
    return next((folder for folder in folders if not _missing(of, folder)), None)


def _missing(of: Published, folder: Path) -> list[str]:
    return [file for file in raw_files(of) if not (folder / file).is_file()]


def _archive(of: Published, root: Path, stage: Path) -> Path:
    """OGB's archive: from the data root, the mirror or the network."""
    mirror = mirror_root()
    for place in (root, mirror):
        if place is not None and (place / f"{of.name}.zip").is_file():
            return place / f"{of.name}.zip"
    url, path = f"{URL}/{of.name}.zip", stage / f"{of.name}.zip"
    try:
        with urlopen(url, timeout=TIMEOUT) as answer, path.open("wb") as file:
            shutil.copyfileobj(answer, file, 2**20)
    except OSError as error:
        home = root / f"ogbn_{of.name}"
        first, *rest = _missing(of, home)
        also = f"$GST_MIRROR ({mirror / home.name})" if mirror else "$GST_MIRROR (not set)"
        raise InputError(
            f"ogbn-{of.name}: no raw files ({first} and {len(rest)} more) in {home} nor in {also}, "
            f"and the download failed ({one_line(error, 60)})"
        ) from error
    return path


def _unpack(of: Published, archive: Path, folder: Path) -> Path:
    """The files that are needed and no others: an archive may name any path."""
    try:
        with ZipFile(archive) as zipped:
            for file in raw_files(of):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                with zipped.open(f"{of.name}/{file}") as packed, (folder / file).open("wb") as out:
                    shutil.copyfileobj(packed, out, 2**20)
    except OSError:  # of the disk, not of the archive
        raise
    except Exception as error:  # zipfile and zlib share no error for a broken archive
        raise InputError(f"ogbn-{of.name}: {archive} is not OGB's archive ({one_line(error)})") from error
    return folder
