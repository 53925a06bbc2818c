import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.data import from_files, load
from gst.data.files import add_reverse

N = 30


@pytest.fixture
def folder(tmp_path):
    """A graph of two classes on 30 nodes, as three files without a split."""
    path = tmp_path / "mine"
    path.mkdir()
    rng = np.random.default_rng(0)
    np.save(path / "features.npy", rng.random((N, 4)))
    np.save(path / "labels.npy", np.arange(N) % 2)
    (path / "edges.csv").write_text("source,target,weight\n" + "".join(f"{i},{i + 1},{i}\n" for i in range(N - 1)))
    return path


def parts(folder):
    return folder / "edges.csv", folder / "features.npy", folder / "labels.npy"


def test_from_files_returns_a_complete_graph(folder):
    data = from_files(*map(str, parts(folder)), split="random")
    assert data.x.dtype == torch.float32 and data.y.dtype == torch.int64 and data.edge_index.dtype == torch.int64
    assert data.edge_index.shape == (2, N - 1) and data.edge_weight.tolist() == list(range(N - 1))
    assert [int(data[key].sum()) for key in ("train_mask", "val_mask", "test_mask")] == [10, 10, 10]
    assert data.name == "edges" and data.metric == "accuracy"
    assert data.validate()


def test_undirected_adds_missing_arcs(folder):
    data = from_files(*parts(folder), split=3, undirected=True, metric="rocauc")
    assert data.is_undirected() and data.num_edges == 2 * (N - 1) and data.metric == "rocauc"
    assert data.edge_weight.tolist() == list(range(N - 1)) * 2


def test_folder(folder):
    data = load(f"{folder}/", split="random", undirected=True)
    assert data.name == "mine" and data.num_edges == 2 * (N - 1)
    np.save(folder / "split.npy", np.arange(N) % 3)
    data = load(folder)
    assert data.test_mask.nonzero().flatten().tolist() == list(range(2, N, 3))
    assert torch.equal(load(folder, split=folder / "split.npy").test_mask, data.test_mask)
    assert not torch.equal(load(folder, split="random").test_mask, data.test_mask)
    assert torch.equal(load(folder, split="1").test_mask, load(folder, split=1).test_mask)


def test_missing_parts_say_what_would_be_right(folder):
    with pytest.raises(InputError, match=r"mine: there is no split: give split='random'"):
        load(folder)
    (folder / "labels.csv").write_text("0\n" * N)
    with pytest.raises(
        InputError, match=r"mine has labels\.csv, labels\.npy: a folder needs exactly one file labels\.\*"
    ):
        load(folder, split="random")
    (folder / "labels.csv").unlink()
    (folder / "labels.npy").unlink()
    with pytest.raises(InputError, match=r"mine has no labels\.\*: a folder needs exactly one file labels\.\*"):
        load(folder, split="random")


def test_a_split_must_make_sense(folder):
    np.savez(folder / "split.npz", train=[0, 1], val=[1, 2], test=[3])
    with pytest.raises(InputError, match="node 1 is in more than one of training, validation and test"):
        load(folder)
    np.savez(folder / "split.npz", train=[0, 1], val=np.zeros(0, dtype=int), test=[3])
    with pytest.raises(InputError, match="the split has no validation node"):
        load(folder)
    labels = np.arange(N) % 2
    labels[7] = -1
    np.save(folder / "labels.npy", labels)
    np.savez(folder / "split.npz", train=[0, 1], val=[4], test=[7])
    with pytest.raises(InputError, match="node 7 is a test node but has no label"):
        load(folder)
    with pytest.raises(InputError, match=r"no such file: .*gone\.npy"):
        load(folder, split=str(folder / "gone.npy"))
    with pytest.raises(InputError, match="unknown split 'bset'"):
        load(folder, split="bset")


def test_options_are_checked(folder):
    with pytest.raises(InputError, match="own data takes no option 'nodes'"):
        load(folder, split=0, nodes=3)
    with pytest.raises(InputError, match="unknown metric 'f1': choose from accuracy, rocauc"):
        load(folder, split=0, metric="f1")
    np.save(folder / "labels.npy", np.arange(N) % 3)
    with pytest.raises(InputError, match="'rocauc' needs two classes, the labels have 3"):
        load(folder, split=0, metric="rocauc")


def test_saved_graphs(folder, tmp_path):
    masks = torch.eye(3, dtype=torch.bool).repeat(N // 3, 1)
    data = from_files(*parts(folder), split=0)
    data.train_mask, data.val_mask, data.test_mask = masks, masks.roll(1, 1), masks.roll(2, 1)
    data.metric = "rocauc"
    torch.save(data, tmp_path / "graph.pt")
    back = load(tmp_path / "graph.pt")
    assert back.name == "graph" and back.metric == "rocauc" and torch.equal(back.x, data.x)
    assert torch.equal(back.train_mask, masks[:, 0])
    assert torch.equal(load(str(tmp_path / "graph.pt"), split=2).train_mask, masks[:, 2])
    assert load(tmp_path / "graph.pt", undirected=True).is_undirected()
    bare = Data(x=data.x, y=data.y, edge_index=data.edge_index)
    torch.save(bare, tmp_path / "bare.pt")
    with pytest.raises(InputError, match="bare: there is no split: give split='random'"):
        load(tmp_path / "bare.pt")
    assert load(tmp_path / "bare.pt", split="random").train_mask.any()


def test_a_name_wins_over_a_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.rename(folder.parent / "digits").parent)
    assert load("digits").num_nodes == 1797 and load("./digits", split=0).num_nodes == N


def test_other_paths(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        load(tmp_path / "gone")
    (tmp_path / "edges.csv").write_text("0,1\n")
    with pytest.raises(InputError, match=r"single files go to gst\.data\.from_files"):
        load(tmp_path / "edges.csv")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), min_size=1, max_size=60))
def test_round_trip_of_an_undirected_graph(folder, arcs):
    (folder / "edges.csv").write_text("".join(f"{u},{v}\n" for u, v in arcs))
    data = from_files(*parts(folder), split="random", undirected=True)
    both = arcs | {(v, u) for u, v in arcs}
    assert data.num_edges == len(both)
    assert {tuple(pair) for pair in data.edge_index.T.tolist()} == both


def test_add_reverse_copies_every_edge_attribute():
    data = Data(
        x=torch.rand(4, 1),
        edge_index=torch.tensor([[0, 1, 2, 2], [1, 0, 3, 2]]),
        edge_attr=torch.arange(4).view(4, 1),
        edge_kind=torch.arange(4),
    )
    out = add_reverse(data)
    assert out.edge_index.tolist() == [[0, 1, 2, 2, 3], [1, 0, 3, 2, 2]]
    assert out.edge_attr.flatten().tolist() == out.edge_kind.tolist() == [0, 1, 2, 3, 2]
    assert data.num_edges == 4
