"""The registry of data sets, and the published graphs themselves, skipped where their raw files are missing."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gst import EdgeSet
from gst.base import registry
from gst.base.errors import InputError
from gst.data import datasets, load
from gst.data.registry import DATASETS, Dataset, DatasetInfo, published_name
from gst.data.splits import Sizes
from gst.storage.paths import data_root, mirror_root
from gst.train.presets import preset
from gst.train.run import Run
from gst.train.settings import Training, make_config

REAL = [info for info in datasets() if info.source.startswith("PyG")]
SLOW = {"Physics", "Squirrel"}  # ten seconds and more in PyG


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("root")


def load_real(name: str, root: Path, **options) -> Data:
    """Loads from the user's data root if the raw files are there, else through the mirror into a fresh root."""
    source = DATASETS[name].make.args[0]  # type: ignore[attr-defined]
    user_root, mirror = data_root(), mirror_root()
    if all(file.is_file() for file in source.raw_files(user_root)):
        return load(name, root=user_root, **options)
    if mirror is None or not all(file.is_file() for file in source.raw_files(mirror)):
        pytest.skip(f"no raw files of {name} in $GST_DATA or $GST_MIRROR")
    return load(name, root=root, **options)


def ring(root: Path, nodes: int = 60, weight: float = 1.0) -> Data:
    """A ring of nodes in two classes: what a package outside gst might register."""
    u = torch.arange(nodes)
    v = (u + 1) % nodes
    arcs = torch.stack([torch.cat([u, v]), torch.cat([v, u])])
    return Data(x=torch.full((nodes, 3), weight), y=u % 2, edge_index=arcs, loaded_from=str(root))


INFO = DatasetInfo("my-ring", 60, 60, 3, 2, "accuracy", False, "random", "test")
RING = Dataset(INFO, ring, Sizes(train=4, val=10))


def test_every_data_set_is_registered_under_the_name_in_its_info():
    assert [info.name for info in datasets()] == list(DATASETS)


def test_a_registered_data_set_is_listed_and_loaded_with_options(tmp_path, monkeypatch):
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS))
    assert DATASETS.register("my-ring")(RING) is RING
    assert datasets()[-1] == INFO
    data = load("My_Ring:nodes=90", weight=2, root=tmp_path, split=3)
    assert data.name == "my-ring:nodes=90,weight=2" and data.x.unique().tolist() == [2.0]
    assert data.loaded_from == str(tmp_path)
    assert [int(data[key].sum()) for key in ("train_mask", "val_mask", "test_mask")] == [8, 10, 72]
    assert published_name(data) == data.name
    data.x = torch.zeros(90, 7)
    assert published_name(data) is None
    with pytest.raises(InputError, match="unknown option of my-ring 'width': choose from nodes, weight"):
        load("my-ring", width=3)
    with pytest.raises(InputError, match="a data set named 'my-ring' is registered already"):
        DATASETS.register("MyRing")(Dataset(INFO, ring))


def test_an_entry_point_of_another_package_adds_a_data_set(monkeypatch):
    point = EntryPoint("my-ring", f"{__name__}:RING", "gst.datasets")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS))
    monkeypatch.setattr(DATASETS, "_complete", False)
    assert load("my-ring").num_nodes == 60 and datasets()[-1] == INFO


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
    per_class = torch.bincount(data.y[data.train_mask])
    assert int(per_class.max() - per_class.min()) <= 1


@pytest.mark.real
def test_numbered_planetoid_splits_keep_the_public_sizes(root):
    public, third, again = (load_real("Cora", root, split=split) for split in ("public", 3, "3"))
    assert torch.equal(third.train_mask, again.train_mask) and not torch.equal(third.train_mask, public.train_mask)
    assert torch.bincount(third.y[third.train_mask]).tolist() == [20] * 7
    assert int(third.val_mask.sum()) == 500 and int(third.test_mask.sum()) == 1000


@pytest.mark.real
def test_a_dense_model_is_near_the_published_one_after_half_of_its_epochs(root):
    data = load_real("Chameleon", root)
    training = make_config(Training, preset("Chameleon", "gcn"), {"anchor_epochs": 50, "sparse_epochs": 50})
    dense = Run(data, training=training, cache=False).dense
    assert dense.test > 55  # 65 published; 40 with directed links and features divided by row sums
