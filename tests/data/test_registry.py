"""The published graphs themselves; skipped where their raw files are not at hand."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gst import EdgeSet
from gst.data import datasets, load
from gst.data.registry import ENTRIES
from gst.storage.paths import data_root, mirror_root
from gst.train.run import Problem

REAL = [info for info in datasets() if info.source.startswith("PyG")]
SLOW = {"Physics", "Squirrel"}  # ten seconds and more in PyG


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("root")


def load_real(name: str, root: Path, **options) -> Data:
    """Loads from the user's own data root if the raw files are there, else through the mirror into a fresh root."""
    source = ENTRIES[name].make.args[0]  # type: ignore[attr-defined]
    place, mirror = data_root(), mirror_root()
    if all(file.is_file() for file in source.raw_files(place)):
        return load(name, root=place, **options)
    if mirror is None or not all(file.is_file() for file in source.raw_files(mirror)):
        pytest.skip(f"no raw files of {name} in $GST_DATA or $GST_MIRROR")
    return load(name, root=root, **options)


@pytest.mark.real
@pytest.mark.parametrize(
    "info", [pytest.param(i, id=i.name, marks=[pytest.mark.slow] if i.name in SLOW else []) for i in REAL]
)
def test_published_counts_and_default_split(info, root):
    data = load_real(info.name, root)
    edges = EdgeSet.from_data(data)
    assert data.x.shape == (info.nodes, info.features)
    assert (edges.num_edges, edges.directed) == (info.edges, False)
    assert data.y.unique().tolist() == list(range(info.classes))
    assert not data.is_directed() and data.has_self_loops() == (info.source == "PyG Wikipedia")
    assert data.name == info.name and data.metric == info.metric
    assert data.x.dtype == torch.float32 and data.y.dtype == torch.int64
    sizes = [int(data[key].sum()) for key in ("train_mask", "val_mask", "test_mask")]
    if info.source == "PyG Planetoid":
        assert sizes == [20 * info.classes, 500, 1000]
    elif info.source in ("PyG Amazon", "PyG Coauthor"):
        assert sizes == [20 * info.classes, 30 * info.classes, info.nodes - 50 * info.classes]
    else:
        assert sum(sizes) == info.nodes
        assert not torch.equal(load_real(info.name, root, split=9).train_mask, data.train_mask)


@pytest.mark.real
@pytest.mark.parametrize(("name", "train"), [("Cora", 420), ("CiteSeer", 420), ("PubMed", 460)])
def test_the_split_of_the_paper(name, train, root):
    data = load_real(name, root, split="paper")
    assert [int(data[key].sum()) for key in ("train_mask", "val_mask", "test_mask")] == [train, 500, 500]
    a_class = torch.bincount(data.y[data.train_mask])
    assert int(a_class.max() - a_class.min()) <= 1


@pytest.mark.real
def test_numbered_planetoid_splits_keep_the_public_sizes(root):
    public, third, again = (load_real("Cora", root, split=split) for split in ("public", 3, "3"))
    assert torch.equal(third.train_mask, again.train_mask) and not torch.equal(third.train_mask, public.train_mask)
    assert torch.bincount(third.y[third.train_mask]).tolist() == [20] * 7
    assert int(third.val_mask.sum()) == 500 and int(third.test_mask.sum()) == 1000


@pytest.mark.real
def test_a_dense_model_is_near_the_published_one_after_half_of_its_epochs(root):
    data = load_real("Chameleon", root)
    found = Problem(data, cache=False, anchor_epochs=50, sparse_epochs=50).dense_scores()
    assert found["dense_test"] > 55  # 65 published; 40 with links one way and features divided by row sums
