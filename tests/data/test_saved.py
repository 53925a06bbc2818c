import os
import pickle

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.graph_store import EdgeLayout

from gst.base.errors import InputError
from gst.data.saved import read_saved


def graph(**changes) -> Data:
    fields = {
        "x": torch.rand(6, 2, dtype=torch.float64),
        "y": torch.tensor([0, 1, 2, 0, 1, -1], dtype=torch.int32),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 5]], dtype=torch.int32),
        "edge_attr": torch.rand(3, 4),
        "train_mask": torch.tensor([1, 1, 0, 0, 0, 0], dtype=torch.uint8),
        "val_mask": torch.tensor([0, 0, 1, 0, 0, 0], dtype=torch.bool),
        "test_mask": torch.tensor([0, 0, 0, 1, 1, 0], dtype=torch.bool),
    }
    return Data(**{**fields, **changes})


def save(tmp_path, content):
    torch.save(content, tmp_path / "g.pt")
    return tmp_path / "g.pt"


@pytest.mark.parametrize("shape", [lambda data: data, lambda data: data.to_dict()], ids=["Data", "dict"])
def test_data_and_dict_come_back(tmp_path, shape):
    data = graph(edge_weight=torch.rand(3), name="mine", pos=torch.rand(6, 3), num_nodes=6)
    data.is_undirected()
    data.put_edge_index(data.edge_index, layout="coo", size=(6, 6))
    back = read_saved(save(tmp_path, shape(data)))
    for key in ("edge_index", "edge_attr", "edge_weight", "val_mask", "pos", "y"):
        assert torch.equal(back[key], data[key].to(back[key].dtype))
    assert back.x.dtype == torch.float32 and back.y.dtype == torch.int64 and back.edge_index.dtype == torch.int64
    assert back.train_mask.dtype == torch.bool and back.num_nodes == 6


def test_a_used_data_is_refused_with_the_remedy(tmp_path):
    data = graph()
    data.is_node_attr("x")  # PyG remembers the answer, in a class that the safe reader does not know
    with pytest.raises(InputError, match=r"save data.to_dict\(\) instead"):
        read_saved(save(tmp_path, data))
    assert torch.equal(read_saved(save(tmp_path, data.to_dict())).x, data.x.float())


def test_private_names_cannot_reach_the_storage(tmp_path):
    back = read_saved(save(tmp_path, {**graph().to_dict(), "_mapping": {}, "_store": 1, "edge_attr": None}))
    assert back.num_edges == 3 and "edge_attr" not in back


def test_edge_index_class_becomes_a_plain_tensor(tmp_path):
    index = EdgeIndex([[0, 1], [1, 2]], sparse_size=(6, 6))
    back = read_saved(save(tmp_path, graph(edge_index=index, edge_attr=None)))
    assert type(back.edge_index) is torch.Tensor and back.edge_index.tolist() == [[0, 1], [1, 2]]


class OldLayout:
    """Pickled as Python 3.11.0 to 3.11.3 pickle the members of an enumeration."""

    def __reduce__(self):
        return getattr, (EdgeLayout, "COO")


class Reaching:
    """The same call, for an attribute that is not a member."""

    def __reduce__(self):
        return getattr, (EdgeLayout, "__init__")


def test_members_of_enumerations_as_some_pythons_pickle_them(tmp_path):
    data = graph()
    data.layout = OldLayout()
    assert read_saved(save(tmp_path, data)).num_edges == 3
    data.layout = Reaching()
    with pytest.raises(InputError, match="not a member of an enumeration"):
        read_saved(save(tmp_path, data))


class Hostile:
    def __reduce__(self):
        return os.system, ("echo owned",)


@pytest.mark.parametrize("protocol", [2, 5])
def test_code_in_the_file_never_runs(tmp_path, capfd, protocol):
    for content in (Hostile(), graph(extra=Hostile()), {"x": Hostile()}):
        with pytest.raises(InputError, match=r"g\.pt does not load safely") as error:
            read_saved(save(tmp_path, content))
        assert "\n" not in str(error.value) and "system" in str(error.value)
        (tmp_path / "raw.pt").write_bytes(pickle.dumps(content, protocol=protocol))
        with pytest.raises(InputError, match=r"raw\.pt does not load safely"):
            read_saved(tmp_path / "raw.pt")
    assert "owned" not in capfd.readouterr().out


def test_broken_files(tmp_path):
    path = save(tmp_path, graph())
    content = path.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"not a pickle at all"):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"g\.pt does not load safely") as error:
            read_saved(path)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="no such file"):
        read_saved(tmp_path / "gone.pt")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HeteroData(), "has no dense tensor 'x': x, y and edge_index are needed"),
        (torch.zeros(3), "holds a Tensor: it should hold a torch_geometric Data"),
        ({"x": torch.zeros(3, 2)}, "has no dense tensor 'y': x, y and edge_index are needed"),
        (graph(y=torch.eye(6).to_sparse()), "has no dense tensor 'y'"),
        (graph(x=torch.zeros(6)), r"x has shape \(6,\)"),
        (graph(y=torch.zeros(5)), "one for each of the 6 nodes"),
        (graph(y=torch.full((6,), 0.5)), "y should be labels"),
        (graph(y=torch.full((6,), 99)), "y should be labels"),
        (graph(y=torch.zeros(5, 3)), "y should be labels"),
        (graph(y=torch.zeros(6, 3, 2)), "y should be labels"),
        (graph(y=torch.full((6, 3), 2)), "y has 3 labels per node: they should be 0 or 1"),
        (graph(edge_index=torch.zeros(3, 3, dtype=torch.long)), r"edge_index has shape \(3, 3\)"),
        (graph(edge_index=torch.tensor([[0, 1, 2], [1, 6, 0]])), r"column 1 of edge_index is \[1, 6\]: .* 0 to 5"),
        (graph(edge_index=torch.tensor([[0, 1, -2], [1, 5, 0]])), "column 2 of edge_index"),
        (graph(edge_index=torch.ones(2, 3, dtype=torch.bool)), "edge_index .* should be whole numbers"),
        (graph(edge_attr=torch.rand(4, 2)), "edge_attr should be a tensor with one row for each of the 3 columns"),
        (graph(val_mask=torch.ones(7, dtype=torch.bool)), "val_mask should be a bool tensor"),
    ],
)
def test_shapes_must_agree(tmp_path, content, reason):
    with pytest.raises(InputError, match=reason):
        read_saved(save(tmp_path, content))
