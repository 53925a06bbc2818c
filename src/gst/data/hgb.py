"""ACM, DBLP and IMDB as the Heterogeneous Graph Benchmark has them (Lv et al., KDD 2021)."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, suppress
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import HeteroData, download_google_url
from torch_geometric.datasets import HGBDataset

from gst.base.errors import InputError
from gst.base.regular_files import require_regular
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.untrusted import one_line
from gst.storage.files import read_tensors, write_tensors
from gst.storage.paths import mirror_root
from gst.storage.typed_file import pack_typed, unpack_typed

PARTS = ("info.dat", "node.dat", "link.dat", "label.dat", "label.dat.test")
Open = Callable[[str], io.BufferedIOBase]


def hgb(name: str, root: Path) -> HeteroData:
    """The graph from the cache below ``root``, else from the archive there or in the mirror, else downloaded.

    Columns keep the order of the archive, nodes that of their type. Types without features have none here either.
    Training nodes are those with public labels: validation is drawn from them by the split's number, 1 in 5.
    """
    cache = root / "HGB" / f"{name.lower()}.safetensors"
    if cache.is_file():
        with suppress(InputError, OSError):  # a cache that is damaged is made again
            tensors, metadata = read_tensors(cache)
            return unpack_typed(tensors, metadata, cache)[0]
    try:
        data = _read(name, root)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}: not the published raw data ({one_line(error)}); replace or remove it") from error
    counts = {kind: data[kind].edge_index.shape[1] for kind in data.edge_types}
    masks = {kind: torch.ones(count, dtype=torch.bool) for kind, count in counts.items()}
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(cache, *pack_typed(data, masks, {kind: torch.zeros(count) for kind, count in counts.items()}))
    return data


def _read(name: str, root: Path) -> HeteroData:
    for folder in filter(None, (root, mirror_root())):
        unpacked = folder / "HGB" / name.lower() / "raw" / name
        if (unpacked / PARTS[0]).is_file():
            return parse(lambda part, place=unpacked: (place / part).open("rb"))  # type: ignore[misc]
        archive = folder / "HGB" / f"{name}.zip"
        if archive.is_file():
            require_regular(archive)
            return _from_archive(archive)
    return _from_archive(_download(name, root))


def _download(name: str, root: Path) -> Path:
    folder = root / "HGB"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with redirect_stderr(io.StringIO()):
            return Path(download_google_url(HGBDataset.file_ids[name.lower()], str(folder), f"{name}.zip"))
    except Exception as error:  # the network fails in many ways
        mirror = mirror_root()
        also = f"$GST_MIRROR ({mirror / 'HGB'})" if mirror else "$GST_MIRROR (not set)"
        raise InputError(
            f"{name}: no {name}.zip in {folder} nor in {also}, and the download failed ({one_line(error, 60)})"
        ) from error


def _from_archive(path: Path) -> HeteroData:
    with zipfile.ZipFile(path) as archive:
        members = {Path(member).name: member for member in archive.namelist()}
        if missing := [part for part in PARTS if part not in members]:
            raise InputError(f"{path} has no {missing[0]}: it is not an archive of the benchmark")
        return parse(lambda part: archive.open(members[part]))  # type: ignore[arg-type,return-value]


def parse(open_part: Open) -> HeteroData:
    """The graph in five text files: what the types are, nodes, links, and labels of training and of test nodes."""
    with open_part("info.dat") as file:
        info = json.load(file)
    types = {int(key): value for key, value in info["node.dat"]["node type"].items()}
    data = HeteroData()
    number = _nodes(open_part, types, data)
    _links(open_part, info["link.dat"]["link type"], types, number, data)
    labels = {part: list(_rows(open_part, part)) for part in PARTS[3:]}
    several = any("," in row[3] for rows in labels.values() for row in rows)
    classes = len(info["label.dat"]["node type"]["0"])
    target = types[int(labels[PARTS[3]][0][2])]
    store, count = data[target], int(data[target].num_nodes)
    store.y = torch.full((count, classes) if several else (count,), -1)
    for part, key in zip(PARTS[3:], ("train_mask", "test_mask"), strict=True):
        store[key] = torch.zeros(count, dtype=torch.bool)
        for row in labels[part]:
            node = number[int(row[0])]
            if several:
                store.y[node] = 0
                store.y[node, [int(label) for label in row[3].split(",")]] = 1
            else:
                store.y[node] = int(row[3])
            store[key][node] = True
    return data


def _rows(open_part: Open, part: str) -> Iterator[list[str]]:
    with open_part(part) as file:
        for line in io.TextIOWrapper(file, encoding="utf-8"):  # type: ignore[type-var]
            if line.strip():
                yield line.rstrip("\n").split("\t")


def _nodes(open_part: Open, types: dict[int, str], data: HeteroData) -> dict[int, int]:
    """The number of every node within its type; features go into ``data``."""
    counts, features = dict.fromkeys(types.values(), 0), {name: list[np.ndarray]() for name in types.values()}
    number: dict[int, int] = {}
    for row in _rows(open_part, "node.dat"):
        node, kind = int(row[0]), types[int(row[2])]
        number[node] = counts[kind]
        counts[kind] += 1
        if len(row) > 3:
            features[kind].append(np.array(row[3].split(","), np.float32))
    for kind, count in counts.items():
        if features[kind]:
            data[kind].x = torch.from_numpy(np.stack(features[kind]))
        else:
            data[kind].num_nodes = count
    return number


def _links(
    open_part: Open, links: dict[str, dict[str, str]], types: dict[int, str], number: dict[int, int], data: HeteroData
) -> None:
    kinds = {}
    for key, link in links.items():
        source, target, meaning = types[int(link["start"])], types[int(link["end"])], link["meaning"].split("-")[1]
        kinds[int(key)] = (source, "to" if target in meaning else meaning, target)
    ends, weights = {key: list[tuple[int, int]]() for key in kinds}, {key: list[float]() for key in kinds}
    for source_id, target_id, key, weight in _rows(open_part, "link.dat"):
        ends[int(key)].append((number[int(source_id)], number[int(target_id)]))
        weights[int(key)].append(float(weight))
    for number_of, kind in kinds.items():
        data[kind].edge_index = torch.tensor(ends[number_of]).t().contiguous()
        weight_of = torch.tensor(weights[number_of])
        if not bool((weight_of == 1).all()):
            data[kind].edge_weight = weight_of


def _register(name: str, nodes: int, edges: int, features: int, classes: int, metric: str) -> None:
    split = "test nodes as published, validation 1 in 5 of the others with labels"
    info = DatasetInfo(name, nodes, edges, features, classes, metric, False, split, "HGB, typed")
    DATASETS.register(name)(Dataset(info, partial(hgb, name)))


_register("ACM", 10_942, 273_936, 1902, 3, "accuracy")
_register("DBLP", 26_128, 119_783, 334, 4, "accuracy")
_register("IMDB", 21_420, 43_321, 3489, 5, "f1")
