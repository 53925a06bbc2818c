"""Large graphs of the Open Graph Benchmark, from raw files in the data root or the mirror, or from a download.

The raw files are read once and cached as plain arrays. Every later load maps these from disk: pages are read when
needed, and processes on one machine share them.
"""

import shutil
from functools import partial
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
from gst.data.ogb_spec import SPECS, OGBSpec
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.untrusted import one_line
from gst.storage.paths import mirror_root

URL = "http://snap.stanford.edu/ogb/data/nodeproppred"  # as in OGB's list of data sets
TIMEOUT = 30.0  # seconds without a response before a download fails


def fetch(spec: OGBSpec, root: Path) -> Data:
    """The graph, undirected, with the official split; from the cache below ``root``, else from raw files."""
    cache = root / f"ogbn_{spec.name}" / "gst"
    arrays = mapped(spec, cache)
    if arrays is None:
        try:
            for name in ARRAYS:
                (cache / f"{name}.npy").unlink(missing_ok=True)
            _make(spec, root, cache)
        except OSError as error:
            hint = "set $GST_MIRROR to use a read-only folder"
            raise InputError(
                f"ogbn-{spec.name}: cannot write below the data root {root} ({one_line(error)}); {hint}"
            ) from error
        arrays = mapped(spec, cache)
        assert arrays is not None
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    part = tensors.pop("part")
    return Data(**tensors, train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)


def mapped(spec: OGBSpec, cache: Path) -> dict[str, np.ndarray] | None:
    """The arrays, mapped copy-on-write from their files; None if one is missing, damaged or of another size."""
    try:
        for name in ARRAYS:
            require_regular(cache / f"{name}.npy")
        arrays: dict[str, np.ndarray] = {
            name: np.lib.format.open_memmap(cache / f"{name}.npy", mode="c") for name in ARRAYS
        }
    except (OSError, ValueError):  # missing or truncated
        return None
    labels = (spec.nodes, spec.classes) if spec.multilabel else (spec.nodes,)
    shapes = {"edge_index": (2, arrays["edge_index"].shape[-1]), "x": (spec.nodes, spec.features), "y": labels}
    as_published = all(
        array.dtype == ARRAYS[name] and array.shape == shapes.get(name, (spec.nodes,)) for name, array in arrays.items()
    )
    return arrays if as_published else None


def _make(spec: OGBSpec, root: Path, cache: Path) -> None:
    """Finds or downloads the raw files and builds the cache; only files that passed every check are moved there."""
    root.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".gst-", dir=root, ignore_cleanup_errors=True) as folder:
        stage = Path(folder)
        local = _find(spec, root)
        raw = local or _unpack(spec, _archive(spec, root, stage), stage / "unpacked")
        (stage / "gst").mkdir()
        build(spec, raw, stage / "gst")
        cache.parent.mkdir(parents=True, exist_ok=True)
        for file in () if local else raw_files(spec):
            (cache.parent / file).parent.mkdir(parents=True, exist_ok=True)
            (raw / file).replace(cache.parent / file)
        try:
            (stage / "gst").rename(cache)
        except OSError:
            if mapped(spec, cache) is None:  # else another process built the same cache first
                raise


def _find(spec: OGBSpec, root: Path) -> Path | None:
    """The first folder with all raw files, under the names that OGB's loaders and its archive give it."""
    names = (f"ogbn_{spec.name}", f"ogbn_{spec.name}_pyg", f"ogbn_{spec.name}_dgl", spec.name)
    folders = [base / name for base in (root, mirror_root()) if base is not None for name in names]
    return next((folder for folder in folders if not _missing(spec, folder)), None)


def _missing(spec: OGBSpec, folder: Path) -> list[str]:
    return [file for file in raw_files(spec) if not (folder / file).is_file()]


def _archive(spec: OGBSpec, root: Path, stage: Path) -> Path:
    """OGB's archive: from the data root, the mirror or the network."""
    mirror = mirror_root()
    for folder in (root, mirror):
        if folder is not None and (folder / f"{spec.name}.zip").is_file():
            return folder / f"{spec.name}.zip"
    path = stage / f"{spec.name}.zip"
    try:
        with urlopen(f"{URL}/{spec.name}.zip", timeout=TIMEOUT) as response, path.open("wb") as file:
            shutil.copyfileobj(response, file, 2**20)
    except OSError as error:
        home = root / f"ogbn_{spec.name}"
        first, *rest = _missing(spec, home)
        also = f"$GST_MIRROR ({mirror / home.name})" if mirror else "$GST_MIRROR (not set)"
        raise InputError(
            f"ogbn-{spec.name}: no raw files ({first} and {len(rest)} more) in {home} nor in {also}, "
            f"and the download failed ({one_line(error, 60)})"
        ) from error
    return path


def _unpack(spec: OGBSpec, archive: Path, folder: Path) -> Path:
    """Unpacks only the files that are needed: an archive may name any path."""
    try:
        with ZipFile(archive) as zipped:
            for file in raw_files(spec):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                with zipped.open(f"{spec.name}/{file}") as packed, (folder / file).open("wb") as out:
                    shutil.copyfileobj(packed, out, 2**20)
    except OSError:  # from the disk, not from the archive
        raise
    except Exception as error:  # zipfile and zlib have no common base class for a broken archive
        raise InputError(f"ogbn-{spec.name}: {archive} is not OGB's archive ({one_line(error)})") from error
    return folder


def _info(spec: OGBSpec) -> DatasetInfo:
    sizes = (spec.nodes, spec.edges, spec.features, spec.classes)
    split = f"official: {spec.shares} by {spec.split.replace('_', ' ')}"
    return DatasetInfo(f"ogbn-{spec.name}", *sizes, spec.metric, False, split, "OGB")


for _spec in SPECS:
    DATASETS.register(f"ogbn-{_spec.name}")(Dataset(_info(_spec), partial(fetch, _spec)))
