import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gst.base import memory
from gst.base.errors import InputError
from gst.data.nodes import read_features, read_labels, read_split

X = np.arange(12).reshape(4, 3) / 2


def test_features_from_every_format(tmp_path):
    np.save(tmp_path / "f.npy", X)
    np.savez(tmp_path / "f.npz", X, np.zeros(3))
    sp.save_npz(tmp_path / "s.npz", sp.csr_array(X))
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "f.parquet")
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "f.csv", index=False)
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "index.csv")
    pd.DataFrame(X, columns=list("abc")).iloc[[2, 0, 3, 1]].rename_axis("node").to_csv(tmp_path / "mixed.csv.gz")
    np.savetxt(tmp_path / "f.txt", X)
    sparse = read_features(tmp_path / "s.npz")
    assert isinstance(sparse, sp.csr_array) and sparse.dtype == np.float32 and np.array_equal(sparse.toarray(), X)
    for name in ("f.npy", "f.npz", "f.parquet", "f.csv", "index.csv", "mixed.csv.gz", "f.txt"):
        features = read_features(tmp_path / name)
        assert features.dtype == np.float32 and features.flags.writeable
        assert np.array_equal(features, X)


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((0, 3)), np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros((2, 0))]
)
def test_features_are_a_matrix_of_numbers(tmp_path, array):
    np.save(tmp_path / "f.npy", array)
    with pytest.raises(InputError, match=r"features are numbers, \[nodes, features\]"):
        read_features(tmp_path / "f.npy")


def test_feature_tables_hold_numbers(tmp_path):
    (tmp_path / "f.csv").write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(InputError, match="the column 'b' holds text"):
        read_features(tmp_path / "f.csv")
    (tmp_path / "same.csv").write_text("a,A,node,Node\n1,2,0,9\n3,4,1,9\n")
    assert read_features(tmp_path / "same.csv").tolist() == [[1, 2, 9], [3, 4, 9]]
    (tmp_path / "g.csv").write_text("node,a\n0,1\n0,2\n")
    with pytest.raises(InputError, match="row 2 repeats node 0"):
        read_features(tmp_path / "g.csv")


def test_giant_sparse_shapes_are_refused_before_they_are_filled(tmp_path):
    for shape in ((10**5, 10**7), (4, 10**9), (10**9, 4)):  # a column is a row of a model's weights
        sp.save_npz(tmp_path / "s.npz", sp.coo_array(([1.0], ([0], [0])), shape=shape))
        with pytest.raises(InputError, match="is small but would unfold to"):
            read_features(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1\n0\n-1\n2\n", [1, 0, -1, 2]),
        ('label\n1\n0\n""\n2\n', [1, 0, -1, 2]),
        ("dog\ncat\nNaN\ndog\n", [1, 0, -1, 1]),
        ("class\ndog\ncat\ncow\ndog\n", [2, 0, 1, 2]),
        ("node,label\n3,dog\n0,cat\n", [0, -1, -1, 1]),
        ("0,1\n1,0\n3,1\n", [1, 0, -1, 1]),
        ("label,id\n1,2\n0,0\n", [0, -1, 1, -1]),
    ],
)
def test_label_tables(tmp_path, text, labels):
    (tmp_path / "l.csv").write_text(text)
    assert read_labels(tmp_path / "l.csv", 4).tolist() == labels


@pytest.mark.parametrize(
    ("array", "labels"),
    [
        (np.array([0, 1, 2, -1]), [0, 1, 2, -1]),
        (np.array([[0], [1], [2], [1]], dtype=np.uint8), [0, 1, 2, 1]),
        (np.array([0.0, np.nan, 1.0, 1.0]), [0, -1, 1, 1]),
        (np.array(["b", "a", "", "b"]), [1, 0, -1, 1]),
        (np.array([True, False, True, True]), [1, 0, 1, 1]),
    ],
)
def test_label_arrays(tmp_path, array, labels):
    np.save(tmp_path / "l.npy", array)
    np.savez(tmp_path / "l.npz", array)
    for name in ("l.npy", "l.npz"):
        assert read_labels(tmp_path / name, 4).tolist() == labels


def test_labels_from_parquet_with_categories(tmp_path):
    table = pd.DataFrame({"y": pd.Categorical(["b", "a", None, "b"])})
    table.to_parquet(tmp_path / "l.parquet")
    assert read_labels(tmp_path / "l.parquet", 4).tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\n1\n1\n", "labels for 3 nodes, but the features have 4 rows"),
        ("0\n1\n-2\n0\n", "node 2 has label -2: labels are 0, 1, … below 4, −1 for none"),
        ("0\n1\n1.5\n0\n", "node 2 has label 1.5"),
        ("0\n1\n1000000\n0\n", r"node 2 has label 1e\+06"),
        ("a,b,c\n0,1,0\n", "has 3 columns: labels are one column, or two"),
        ("node,label\n0,1\n7,1\n", "row 2 names node 7"),
        ("node,label\n0,1\n0,1\n", "row 2 repeats node 0"),
    ],
)
def test_bad_labels(tmp_path, text, reason):
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(InputError, match=reason):
        read_labels(tmp_path / "l.csv", 4)


def test_one_hot_labels_are_refused(tmp_path):
    np.save(tmp_path / "l.npy", np.eye(4))
    with pytest.raises(InputError, match=r"labels are one value per node, \[4\]"):
        read_labels(tmp_path / "l.npy", 4)


TRAIN, VAL, TEST = [True, False, False, False], [False, False, True, False], [False, False, False, True]


@pytest.mark.parametrize(
    "text",
    [
        "train\nnone\nval\ntest\n",
        "split\nTrain\n-1\nvalid\ntest\n",
        "0\n-1\n1\n2\n",
        "node,part\n3,test\n0,train\n2,validation\n",
    ],
)
def test_split_tables(tmp_path, text):
    (tmp_path / "s.csv").write_text(text)
    assert [mask.tolist() for mask in read_split(tmp_path / "s.csv", 4)] == [TRAIN, VAL, TEST]


@pytest.mark.parametrize(
    "arrays",
    [
        {"train": [0], "val": [2], "test": [3]},
        {"train_idx": [0], "valid_idx": [2], "test_idx": [3]},
        {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST},
        {"train_mask": [1, 0, 0, 0], "val_mask": [0, 0, 1, 0], "test_mask": [0, 0, 0, 1]},
    ],
)
def test_split_archives(tmp_path, arrays):
    np.savez(tmp_path / "s.npz", **{key: np.array(value) for key, value in arrays.items()})
    assert [mask.tolist() for mask in read_split(tmp_path / "s.npz", 4)] == [TRAIN, VAL, TEST]


def test_bad_splits(tmp_path):
    (tmp_path / "s.csv").write_text("train\nval\nexam\ntest\n")
    with pytest.raises(InputError, match="node 2 is in part exam: write train, val or test, or 0, 1 or 2"):
        read_split(tmp_path / "s.csv", 4)
    np.savez(tmp_path / "a.npz", train=[0], test=[9])
    with pytest.raises(InputError, match="has arrays train, test: a split needs train, val and test"):
        read_split(tmp_path / "a.npz", 4)
    np.savez(tmp_path / "b.npz", train=[0], val=[1], test=[9])
    with pytest.raises(InputError, match="names node 9"):
        read_split(tmp_path / "b.npz", 4)
    np.savez(tmp_path / "c.npz", train=np.ones(5, dtype=bool), val=[1], test=[2])
    with pytest.raises(InputError, match="train is a mask for 5 nodes, but the features have 4 rows"):
        read_split(tmp_path / "c.npz", 4)


def test_one_long_text_among_many_short_ones_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**50)
    (tmp_path / "y.csv").write_text("label\n" + "a\n" * 9_999 + "b" * 20_000 + "\n")
    with pytest.raises(InputError, match=r"would unfold to 0\.7 GiB"):
        read_labels(tmp_path / "y.csv", 10_000)
