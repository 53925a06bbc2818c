"""Debian's packages, their sources and maintainers: a typed graph that is read from a folder of the mirror."""

from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.untrusted import one_line
from gst.storage.paths import mirror_root

DEPENDENCIES = ("depends", "recommends", "suggests", "enhances")


def debian_typed(root: Path) -> HeteroData:
    """Binary packages with words and sections, source packages and maintainers, every relation with its reverse."""
    folders = [folder / "debian" for folder in (root, mirror_root()) if folder is not None]
    folder = next((folder for folder in folders if (folder / "typed.npz").is_file()), None)
    if folder is None:
        raise InputError(f"debian-typed: no typed.npz in {' nor in '.join(map(str, folders))}; it cannot be downloaded")
    try:
        return _read(folder)
    except Exception as error:
        raise InputError(f"debian-typed: not the raw data in {folder} ({one_line(error)})") from error


def _read(folder: Path) -> HeteroData:
    typed, split = (np.load(folder / name, allow_pickle=False) for name in ("typed.npz", "split.npz"))
    words = sparse.csr_matrix(sparse.load_npz(folder / "features.npz"))
    data = HeteroData()
    pointers, columns = (torch.from_numpy(part.astype(np.int64)) for part in (words.indptr, words.indices))
    values = torch.from_numpy(words.data.astype(np.float32))
    data["binary"].x = torch.sparse_csr_tensor(pointers, columns, values, size=words.shape)
    data["binary"].y = torch.from_numpy(np.load(folder / "labels.npy").astype(np.int64))
    for name in ("train", "val", "test"):
        mask = torch.zeros(words.shape[0], dtype=torch.bool)
        mask[torch.from_numpy(split[name])] = True
        data["binary"][f"{name}_mask"] = mask
    maintained = typed["source_maintainedby_maintainer"]
    data["source"].num_nodes = int(typed["source_year"].size)
    data["maintainer"].num_nodes = int(maintained[1].max()) + 1
    index, kind = typed["binary_edge_index"], typed["binary_edge_type"]
    for number, name in enumerate(DEPENDENCIES):
        _add(data, "binary", name, "binary", index[:, kind == number])
    _add(data, "binary", "built_from", "source", typed["binary_builtfrom_source"])
    _add(data, "source", "build_depends", "binary", typed["source_builddepends_binary"])
    _add(data, "source", "maintained_by", "maintainer", maintained)
    return data


def _add(data: HeteroData, source: str, name: str, target: str, index: np.ndarray) -> None:
    columns = torch.from_numpy(np.ascontiguousarray(index).astype(np.int64))
    data[source, name, target].edge_index = columns
    data[target, f"rev_{name}", source].edge_index = columns.flip(0)


_INFO = DatasetInfo(
    "debian-typed", 126_227, 944_843, 5000, 58, "accuracy", False, "by first release", "Debian's indexes, typed"
)
DATASETS.register("debian-typed")(Dataset(_INFO, debian_typed))
