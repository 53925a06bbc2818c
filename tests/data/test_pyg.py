"""PyG's loaders on a small file in a published format: no network, no mirror."""

import io
from contextlib import redirect_stderr
from dataclasses import replace
from functools import partial
from urllib.error import URLError

import numpy as np
import pytest
import torch
from torch_geometric.datasets import HeterophilousGraphDataset

from gst.base.errors import InputError
from gst.data.pyg import Source, fetch
from gst.data.registry import DatasetInfo

INFO = DatasetInfo("Minesweeper", 6, 4, 3, 2, "rocauc", False, "", "")
RAW = "minesweeper/raw"
SOURCE = Source(partial(HeterophilousGraphDataset, name="Minesweeper"), RAW, ("minesweeper.npz",))


def write_raw(root, edges=4):
    (root / RAW).mkdir(parents=True)
    np.savez(
        root / RAW / "minesweeper.npz",
        node_features=np.eye(6, 3, dtype=np.float32),
        node_labels=np.arange(6) % 2,
        edges=np.array([[i, i + 1] for i in range(edges)]),
        **{f"{part}_masks": np.ones((10, 6), dtype=bool) for part in ("train", "val", "test")},
    )
    return root


def tree(root):
    return {path.relative_to(root): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def download(self):
        raise URLError("no route to host")

    monkeypatch.delenv("GST_MIRROR", raising=False)
    monkeypatch.setattr(HeterophilousGraphDataset, "download", download)


def test_raw_files_in_the_root_are_used_then_the_cache(tmp_path, monkeypatch):
    write_raw(tmp_path)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # PyG is quiet under pytest, but should be so everywhere
    with redirect_stderr(io.StringIO()) as printed:
        data = fetch(SOURCE, INFO, tmp_path)
    assert printed.getvalue() == ""
    assert data.x.shape == (6, 3) and data.num_edges == 8 and data.train_mask.shape == (6, 10)
    before = tree(tmp_path)
    assert {path.name for path in before} == {"minesweeper.npz", "data.pt", "pre_transform.pt", "pre_filter.pt"}
    monkeypatch.setattr(HeterophilousGraphDataset, "process", lambda self: pytest.fail("the cache was not used"))
    assert torch.equal(fetch(SOURCE, INFO, tmp_path).edge_index, data.edge_index)
    assert tree(tmp_path) == before


def test_the_mirror_is_copied_and_never_written(tmp_path, monkeypatch):
    mirror, root = write_raw(tmp_path / "mirror"), tmp_path / "root"
    monkeypatch.setenv("GST_MIRROR", str(mirror))
    before = tree(mirror)
    fetch(SOURCE, INFO, root)
    assert tree(mirror) == before
    assert (root / RAW / "minesweeper.npz").read_bytes() == (mirror / RAW / "minesweeper.npz").read_bytes()
    assert sorted(path.name for path in root.iterdir()) == ["minesweeper"]


def test_missing_files_name_the_folder_and_the_mirror(tmp_path, monkeypatch):
    with pytest.raises(InputError) as error:
        fetch(SOURCE, INFO, tmp_path / "root")
    message = str(error.value)
    assert str(tmp_path / "root" / RAW) in message and "$GST_MIRROR (not set)" in message
    assert "no route to host" in message and "\n" not in message
    assert tree(tmp_path) == {}
    monkeypatch.setenv("GST_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(InputError, match=f"mirror/{RAW}"):
        fetch(SOURCE, INFO, tmp_path / "root")


def test_a_download_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(HeterophilousGraphDataset, "download", lambda self: write_in(self.raw_dir))

    def write_in(raw_dir):
        (tmp_path / "net").mkdir(exist_ok=True)
        file = write_raw(tmp_path / "net") / RAW / "minesweeper.npz"
        file.rename(f"{raw_dir}/minesweeper.npz")

    fetch(SOURCE, INFO, tmp_path / "root")
    assert (tmp_path / "root" / RAW / "minesweeper.npz").is_file()


def test_half_a_download_leaves_nothing(tmp_path, monkeypatch):
    def download(self):
        with open(self.raw_paths[0], "wb") as file:  # noqa: PTH123
            file.write(b"PK half")
        raise KeyboardInterrupt

    monkeypatch.setattr(HeterophilousGraphDataset, "download", download)
    with pytest.raises(KeyboardInterrupt):
        fetch(SOURCE, INFO, tmp_path)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_broken_cache_is_rebuilt(tmp_path, damage):
    write_raw(tmp_path)
    fetch(SOURCE, INFO, tmp_path)
    cache = tmp_path / "minesweeper" / "processed" / "data.pt"
    good = cache.read_bytes()
    if damage == "other":
        torch.save(({"x": torch.zeros(1, 1)}, None, dict), cache)
    else:
        cache.write_bytes(good[: len(good) // 2] if damage == "cut" else b"")
    assert fetch(SOURCE, INFO, tmp_path).num_edges == 8
    assert cache.stat().st_size == len(good)


def test_broken_raw_files_are_named(tmp_path, monkeypatch):
    raw = write_raw(tmp_path) / RAW / "minesweeper.npz"
    raw.write_bytes(raw.read_bytes()[:300])
    with pytest.raises(InputError, match=r"Minesweeper: not the published raw data in .*minesweeper\.npz") as error:
        fetch(SOURCE, INFO, tmp_path)
    assert "\n" not in str(error.value)
    assert set(tree(tmp_path)) == {raw.relative_to(tmp_path)}


def test_a_broken_mirror_spoils_nothing(tmp_path, monkeypatch):
    mirror, root = write_raw(tmp_path / "mirror", edges=3), tmp_path / "root"
    monkeypatch.setenv("GST_MIRROR", str(mirror))
    with pytest.raises(InputError, match=r"mirror.*columns, classes are \(6, 3, 6, 2\), published are \(6, 3, 8, 2\)"):
        fetch(SOURCE, INFO, root)
    assert tree(root) == {}


def test_several_files_name_their_folder(tmp_path):
    source = replace(SOURCE, files=("minesweeper.npz", "other.npz"))
    write_raw(tmp_path, edges=3)
    (tmp_path / RAW / "other.npz").touch()
    with pytest.raises(InputError, match=f"in {tmp_path / RAW} "):
        fetch(source, INFO, tmp_path)


def test_a_root_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("GST_MIRROR", str(write_raw(tmp_path / "mirror")))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write below the data root .*file.* set .GST_MIRROR"):
        fetch(SOURCE, INFO, tmp_path / "file")
