import os

import numpy as np
import pytest
from scipy import sparse

import gst
from gst import InputError
from gst.storage.paths import mirror_root
from gst.train.presets import preset


def write(folder):
    folder.mkdir()
    ring = np.stack([np.arange(12), (np.arange(12) + 1) % 12])
    np.save(folder / "edges.npy", np.concatenate([ring, ring[::-1]], 1))
    np.savez(folder / "guesses.npz", x=np.ones((12, 3), np.float32))
    sparse.save_npz(folder / "features.npz", sparse.eye(12, format="csr", dtype=np.float32))
    np.save(folder / "labels.npy", np.arange(12) % 2)
    part = np.arange(12) % 3
    np.savez(folder / "split.npz", train=part == 0, val=part == 1, test=part == 2)


@pytest.mark.parametrize("name", ["debian", "arxiv-citations"])
def test_a_folder_below_the_data_root(name, tmp_path):
    write(tmp_path / name)
    data = gst.load(name, root=tmp_path)
    assert data.num_nodes == 12 and data.num_edges == 24 and data.x.shape == (12, 12)
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [4, 4, 4]
    if name == "arxiv-citations":
        assert gst.load("arxiv-citations:guesses=1", root=tmp_path).x.shape == (12, 3)


def test_a_missing_folder_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("GST_MIRROR", raising=False)
    with pytest.raises(InputError, match=r"debian: no folder .*debian, and it cannot be downloaded"):
        gst.load("debian", root=tmp_path)


def test_they_have_settings():
    assert preset("arxiv-citations", "gcn")["hidden"] == preset("debian", "sage")["hidden"] == 128


@pytest.mark.real
@pytest.mark.skipif("GST_MIRROR" not in os.environ, reason="needs $GST_MIRROR")
@pytest.mark.parametrize("name", ["debian", "arxiv-citations"])
def test_the_real_ones_have_the_sizes_of_the_table(name, tmp_path):
    if not (mirror_root() / name).is_dir():
        pytest.skip(f"the mirror has no {name}")
    data = gst.load(name, root=tmp_path)
    info = next(info for info in gst.datasets() if info.name == name)
    sizes = (data.num_nodes, data.num_edges // 2, data.x.shape[1], int(data.y.max()) + 1)
    assert sizes == (info.nodes, info.edges, info.features, info.classes)
