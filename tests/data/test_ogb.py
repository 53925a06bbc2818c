"""OGB's graphs from small files in exactly its layout: no network."""

import gzip
import io
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.error import URLError
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from torch_geometric.utils import scatter, to_undirected

from gst import EdgeSet, load
from gst.base.errors import InputError
from gst.data import ogb
from gst.data.ogb import fetch, mapped
from gst.data.ogb_raw import raw_files
from gst.data.ogb_spec import ARXIV, PRODUCTS, PROTEINS, SPECS
from gst.data.registry import DATASETS
from gst.train.task import Task

SMALL = {"nodes": 12, "rows": 30, "edges": 0, "features": 4, "parts": (6, 3, 2)}
KINDS = [
    replace(ARXIV, **SMALL, classes=3),
    replace(PRODUCTS, **SMALL, classes=3),
    replace(PROTEINS, **SMALL, classes=5),
]
ARXIV_SMALL, _, PROTEINS_SMALL = KINDS


def content(spec, seed=0):
    """Every array of a random graph, by its file in OGB's archive."""
    rng = np.random.default_rng(seed)
    shape = (spec.nodes, spec.classes) if spec.multilabel else (spec.nodes, 1)
    y = np.arange(spec.nodes * shape[1]).reshape(shape) % (2 if spec.multilabel else spec.classes)
    nodes = np.split(rng.permutation(spec.nodes), np.cumsum(spec.parts))
    features = (spec.rows if spec.edge_features else spec.nodes, spec.features)
    return {
        "raw/num-node-list": [[spec.nodes]],
        "raw/num-edge-list": [[spec.rows]],
        "raw/node-label": y,
        "raw/edge": rng.integers(0, spec.nodes - 1, (spec.rows, 2)),
        f"raw/{'edge' if spec.edge_features else 'node'}-feat": rng.normal(size=features).astype(np.float32),
        "raw/node_year": [[2017]] * spec.nodes,  # in the archive, but not read
        **{f"split/{spec.split}/{p}": n[:, None] for p, n in zip(("train", "valid", "test"), nodes, strict=False)},
    }


def packed(values):
    values, out = np.asarray(values), io.BytesIO()
    np.savetxt(out, values, fmt="%.9g" if values.dtype.kind == "f" else "%d", delimiter=",")
    return gzip.compress(out.getvalue())


def write(spec, folder, **changes):
    files = content(spec) | {name.replace("__", "/").replace("_", "-"): values for name, values in changes.items()}
    for name, values in files.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(values))
    return folder


def archive(spec, path):
    with ZipFile(path, "w") as zipped:
        zipped.writestr(f"{spec.name}/RELEASE_v1.txt", "")
        for name, values in content(spec).items():
            zipped.writestr(f"{spec.name}/{name}.csv.gz", packed(values))
    return path


def tree(root):
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(url, timeout):
        raise URLError("no route to host")

    monkeypatch.delenv("GST_MIRROR", raising=False)
    monkeypatch.setattr(ogb, "urlopen", refuse)


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.name)
def test_graph_labels_and_official_split(spec, tmp_path):
    write(spec, tmp_path / f"ogbn_{spec.name}")
    data, files = fetch(spec, tmp_path), content(spec)
    rows = torch.from_numpy(files["raw/edge"]).t()
    assert torch.equal(data.edge_index, to_undirected(rows, num_nodes=spec.nodes))
    assert torch.equal(data.y.view(spec.nodes, -1), torch.from_numpy(files["raw/node-label"]))
    for key, part in (("train_mask", "train"), ("val_mask", "valid"), ("test_mask", "test")):
        assert data[key].nonzero().flatten().tolist() == sorted(files[f"split/{spec.split}/{part}"].flatten().tolist())
    task = Task.from_data(data)
    assert task.num_classes == spec.classes and task.multilabel == spec.multilabel


@pytest.mark.parametrize("spec", KINDS[:2], ids=lambda spec: spec.name)
def test_features_are_those_of_the_file(spec, tmp_path):
    write(spec, tmp_path / f"ogbn_{spec.name}")
    assert torch.equal(fetch(spec, tmp_path).x, torch.from_numpy(content(spec)["raw/node-feat"]))


def test_proteins_have_the_mean_features_of_their_edges(tmp_path):
    write(PROTEINS_SMALL, tmp_path / "ogbn_proteins")
    files = content(PROTEINS_SMALL)
    ends, features = torch.from_numpy(files["raw/edge"]), torch.from_numpy(files["raw/edge-feat"]).double()
    expected = scatter(torch.cat([features, features]), ends.t().flatten(), dim=0, dim_size=12, reduce="mean")
    x = fetch(PROTEINS_SMALL, tmp_path).x
    torch.testing.assert_close(x, expected.float())
    assert x[11].tolist() == [0.0] * 4  # the node without edges


def test_a_name_loads_it(tmp_path, monkeypatch):
    dataset = replace(DATASETS["ogbn-proteins"], make=partial(fetch, PROTEINS_SMALL))
    monkeypatch.setitem(DATASETS._entries, "ogbn-proteins", dataset)
    write(PROTEINS_SMALL, tmp_path / "ogbn_proteins")
    data = load("OGBN_Proteins", root=tmp_path)
    assert data.name == "ogbn-proteins" and data.metric == "rocauc" and data.y.shape == (12, 5)
    with pytest.raises(InputError, match="a random split goes by class"):
        load("ogbn-proteins", root=tmp_path, split=3)


@pytest.mark.parametrize("folder", ["ogbn_arxiv", "ogbn_arxiv_pyg", "arxiv"])
def test_every_folder_name_of_ogb(folder, tmp_path):
    write(ARXIV_SMALL, tmp_path / folder)
    before = tree(tmp_path)
    fetch(ARXIV_SMALL, tmp_path)
    arrays = {f"ogbn_arxiv/gst/{name}.npy" for name in ("edge_index", "x", "y", "part")}
    assert set(tree(tmp_path)) == set(before) | arrays


def test_the_second_load_maps_the_first(tmp_path, monkeypatch):
    write(ARXIV_SMALL, tmp_path / "ogbn_arxiv")
    first, before = fetch(ARXIV_SMALL, tmp_path), tree(tmp_path)
    monkeypatch.setattr(ogb, "build", lambda *_: pytest.fail("the cache was not used"))
    second = fetch(ARXIV_SMALL, tmp_path)
    for key in ("x", "y", "edge_index", "train_mask"):
        assert torch.equal(first[key], second[key])
    assert all(isinstance(array, np.memmap) for array in mapped(ARXIV_SMALL, tmp_path / "ogbn_arxiv/gst").values())
    second.x += 1  # changes this process only
    assert torch.equal(fetch(ARXIV_SMALL, tmp_path).x, first.x) and tree(tmp_path) == before


def test_loading_copies_no_array(tmp_path, monkeypatch):
    write(ARXIV_SMALL, tmp_path / "ogbn_arxiv")
    seen = []

    def make(root):
        seen.append(fetch(ARXIV_SMALL, root))
        return seen[0]

    monkeypatch.setitem(DATASETS._entries, "ogbn-arxiv", replace(DATASETS["ogbn-arxiv"], make=make))
    before = {key: fetch(ARXIV_SMALL, tmp_path)[key].dtype for key in ("x", "y", "edge_index")}
    data = load("ogbn-arxiv", root=tmp_path)
    assert {key: data[key].dtype for key in before} == before
    assert all(data[key].data_ptr() == seen[0][key].data_ptr() for key in before)


def test_the_mirror_is_read_in_place(tmp_path, monkeypatch):
    mirror, root = tmp_path / "mirror", tmp_path / "root"
    write(ARXIV_SMALL, mirror / "ogbn_arxiv")
    monkeypatch.setenv("GST_MIRROR", str(mirror))
    before = tree(mirror)
    fetch(ARXIV_SMALL, root)
    assert tree(mirror) == before
    assert all(name.startswith("ogbn_arxiv/gst/") for name in tree(root)) and len(tree(root)) == 4


@pytest.mark.parametrize("where", ["root", "mirror", "network"])
def test_the_archive_is_unpacked(where, tmp_path, monkeypatch):
    root, mirror, asked = tmp_path / "root", tmp_path / "mirror", []
    for folder in (root, mirror, tmp_path / "network"):
        folder.mkdir()
    path = archive(ARXIV_SMALL, tmp_path / where / "arxiv.zip")
    monkeypatch.setenv("GST_MIRROR", str(mirror))
    if where == "network":
        monkeypatch.setattr(ogb, "urlopen", lambda url, timeout: asked.append(url) or path.open("rb"))
    data = fetch(ARXIV_SMALL, root)
    assert torch.equal(data.x, torch.from_numpy(content(ARXIV_SMALL)["raw/node-feat"]))
    kept = {f"ogbn_arxiv/{file}" for file in raw_files(ARXIV_SMALL)}
    assert set(tree(root)) - {"arxiv.zip"} == kept | {
        f"ogbn_arxiv/gst/{n}.npy" for n in ("edge_index", "x", "y", "part")
    }
    assert asked == (["http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"] if where == "network" else [])


def test_no_files_and_no_network(tmp_path, monkeypatch):
    with pytest.raises(InputError) as error:
        fetch(ARXIV_SMALL, tmp_path / "root")
    message = str(error.value)
    assert message.startswith("ogbn-arxiv: no raw files (raw/num-node-list.csv.gz and 7 more)")
    assert str(tmp_path / "root" / "ogbn_arxiv") in message and "$GST_MIRROR (not set)" in message
    assert "no route to host" in message and "\n" not in message
    assert tree(tmp_path) == {}
    monkeypatch.setenv("GST_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(InputError, match="mirror/ogbn_arxiv"):
        fetch(ARXIV_SMALL, tmp_path / "root")


def test_half_a_download_leaves_nothing(tmp_path, monkeypatch):
    whole = archive(ARXIV_SMALL, tmp_path / "arxiv.zip").read_bytes()
    monkeypatch.setattr(ogb, "urlopen", lambda url, timeout: io.BytesIO(whole[: len(whole) // 2]))
    with pytest.raises(InputError, match=r"ogbn-arxiv: .*arxiv\.zip is not OGB's archive \(BadZipFile"):
        fetch(ARXIV_SMALL, tmp_path / "root")
    assert tree(tmp_path / "root") == {}


BAD = [
    ({"raw__edge": [[0, 1]] * 29}, "edge.csv.gz has 29 rows: the published file has 30"),
    ({"raw__edge": [[0, 1]] * 31}, "edge.csv.gz has more than 30 rows"),
    ({"raw__edge": [[0, 1]] * 29 + [[0, 12]]}, "edge.csv.gz: row 30 is [0, 12]: nodes go from 0 to 11"),
    ({"raw__edge": [[-1, 1]] * 30}, "edge.csv.gz: row 1 is [-1, 1]"),
    ({"raw__num_node_list": [[13]]}, "num-node-list.csv.gz says 13: the published number is 12"),
    ({"raw__num_edge_list": [[30], [30]]}, "num-edge-list.csv.gz has more than 1 rows"),
    ({"raw__node_label": [[3]] * 12}, "node-label.csv.gz holds 3 … 3: the published labels are 0 … 2"),
    ({"raw__node_label": [[0.5]] * 12}, "node-label.csv.gz holds 0.5 … 0.5"),
    ({"raw__node_feat": np.zeros((12, 3))}, "node-feat.csv.gz has 3 columns: the published file has 4"),
    ({"split__time__valid": [[0], [1]]}, "valid.csv.gz has 2 rows: the published file has 3"),
    ({"split__time__valid": [[1], [2], [1]]}, "valid.csv.gz lists a node twice"),
    ({"split__time__train": [[0], [1], [2], [3], [4], [99]]}, "train.csv.gz: row 6 is [99]"),
]


@pytest.mark.parametrize(("changes", "reason"), BAD)
def test_other_files_than_the_published_get_one_line(changes, reason, tmp_path):
    before = tree(write(ARXIV_SMALL, tmp_path / "ogbn_arxiv", **changes))
    with pytest.raises(InputError) as error:
        fetch(ARXIV_SMALL, tmp_path)
    assert reason in str(error.value) and str(tmp_path) in str(error.value) and "\n" not in str(error.value)
    assert tree(tmp_path / "ogbn_arxiv") == before and len(list(tmp_path.iterdir())) == 1


def test_labels_of_proteins_are_yes_or_no(tmp_path):
    labels = np.zeros((12, 5))
    labels[3, 3] = 2
    write(PROTEINS_SMALL, tmp_path / "ogbn_proteins", raw__node_label=labels)
    with pytest.raises(InputError, match=r"node-label.csv.gz holds 0 … 2: the published labels are 0 … 1"):
        fetch(PROTEINS_SMALL, tmp_path)


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_broken_cache_is_rebuilt(damage, tmp_path):
    write(ARXIV_SMALL, tmp_path / "ogbn_arxiv")
    expected = fetch(ARXIV_SMALL, tmp_path).edge_index.clone()
    file = tmp_path / "ogbn_arxiv/gst/edge_index.npy"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-8])
    elif damage == "gone":
        file.unlink()
    else:
        np.save(file, np.zeros((3, 4)))
    assert torch.equal(fetch(ARXIV_SMALL, tmp_path).edge_index, expected)


def test_the_process_that_was_first_wins(tmp_path, monkeypatch):
    write(ARXIV_SMALL, tmp_path / "ogbn_arxiv")
    build, done = ogb.build, []

    def build_twice(*args):
        build(*args)
        if not done:
            done.append(True)
            fetch(ARXIV_SMALL, tmp_path)

    monkeypatch.setattr(ogb, "build", build_twice)
    assert fetch(ARXIV_SMALL, tmp_path).num_nodes == 12
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ogbn_arxiv"]


def test_a_root_that_cannot_be_written(tmp_path, monkeypatch):
    write(ARXIV_SMALL, tmp_path / "mirror" / "ogbn_arxiv")
    monkeypatch.setenv("GST_MIRROR", str(tmp_path / "mirror"))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write below the data root .*file.* set .GST_MIRROR"):
        fetch(ARXIV_SMALL, tmp_path / "file")


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_published_graph_itself(spec, tmp_path, monkeypatch):
    monkeypatch.undo()
    root = ogb.mirror_root() or Path("/nonexistent")
    if not (root / f"ogbn_{spec.name}" / "raw" / "edge.csv.gz").is_file():
        pytest.skip(f"no raw files of ogbn-{spec.name} in $GST_MIRROR")
    data = load(f"ogbn-{spec.name}", root=tmp_path)
    edges = EdgeSet.from_data(data)
    assert (edges.num_edges, edges.directed) == (spec.edges, False)
    assert data.x.shape == (spec.nodes, spec.features) and Task.from_data(data).num_classes == spec.classes
    assert tuple(int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")) == spec.parts
