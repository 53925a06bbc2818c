"""Files of ``torch.save``: everything that a graph may hold is read, everything else is refused, nothing is called."""

import struct
import zipfile
from collections import OrderedDict

import pytest
import torch

from gst.data.pickles import MAX_STEPS
from gst.data.torch_file import _DTYPES, _UNTYPED, read_torch
from reliability.unfolding import LAUGHS, field, number, tensor, text, torch_archive


def back(tmp_path, content):
    torch.save(content, tmp_path / "g.pt")
    return read_torch(tmp_path / "g.pt")


@pytest.mark.parametrize("dtype", sorted({*_DTYPES.values(), *_UNTYPED.values()}, key=str), ids=str)
def test_tensors_of_every_kind(tmp_path, dtype):
    plain = torch.arange(24).reshape(2, 3, 4).to(dtype)
    views = [plain, plain.mT, plain[1], plain[:, ::2, 1:3], plain[0, 0, 0], plain[:0], plain[:1].expand(5, 3, 4)]
    for old, new in zip(views, back(tmp_path, {"a": views})["a"], strict=True):
        assert new.dtype == old.dtype and new.shape == old.shape and torch.equal(new, old)


def test_tensors_that_share_memory_still_do(tmp_path):
    x = torch.zeros(6)
    loaded = back(tmp_path, {"a": x, "b": x[3:]})
    loaded["a"][4] = 7
    assert loaded["b"].tolist() == [0, 7, 0]


def test_plain_values(tmp_path):
    content = {
        "t": ["a", "ü" * 300, 1.5, 10**12, -(2**62), None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
    }
    content |= {"d": {"a": {"b": [1]}}, "e": [], "o": OrderedDict(a=1, b=2), 3: "number"}
    assert back(tmp_path, content) == content
    assert torch.equal(back(tmp_path, {"p": torch.nn.Parameter(torch.ones(2))})["p"], torch.ones(2))
    assert back(tmp_path, torch.ones(2)).tolist() == [1, 1] and back(tmp_path, 5) == 5
    texts = [str(i) for i in range(150_000)]
    assert back(tmp_path, {"raw_texts": texts})["raw_texts"] == texts


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc], ids=str)
def test_sparse_tensors(tmp_path, layout):
    dense = torch.tensor([[0, 2.0, 0], [3, 0, 4]])
    loaded = back(tmp_path, {"x": dense.to_sparse(layout=layout)})["x"]
    assert loaded.layout == layout and torch.equal(loaded.to_dense(), dense)


def test_sparse_indices_outside_are_refused(tmp_path):
    x = torch.sparse_coo_tensor(torch.tensor([[0, 9], [0, 1]]), torch.ones(2), (2, 2), check_invariants=False)
    torch.save({"x": x}, tmp_path / "g.pt")
    with pytest.raises((RuntimeError, ValueError), match="size"):
        read_torch(tmp_path / "g.pt")


BYTES = {"0": struct.pack("<4f", 1, 2, 3, 4)}


def test_the_pickles_of_these_tests_are_what_torch_writes(tmp_path):
    path = torch_archive(tmp_path / "g.pt", field(tensor(4, 1, 4)), BYTES)
    assert torch.equal(read_torch(path)["x"], torch.load(path)["x"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (field(b"cbuiltins\nbytearray\n" + number(10) + b"\x85R"), "it names builtins.bytearray"),
        (field(b"ctorch\nzeros\n" + number(10) + b"\x85R"), "it names torch.zeros"),
        (field(b"ccollections\nCounter\n" + text("aa") + b"\x85R"), "it names collections.Counter"),
        (field(b"ctorch\nFloatStorage\n" + number(10**10) + b"\x85R"), "it calls torch.FloatStorage"),
        (field(b"ctorch\nFloatStorage\n)\x81"), "it creates a torch.FloatStorage"),
        (field(tensor(4, 1, 5)), "another size than its 16 bytes"),
        (field(tensor(4, 1, -4)), "another size"),
        (field(tensor(5, 1, 4)), "reaches beyond its bytes"),
        (field(tensor(2, 4, 4)), "reaches beyond its bytes"),
        (field(tensor(2, 2**62, 4)), "reaches beyond its bytes"),
        (field(tensor(-1, 1, 4)), "a tensor has an invalid shape"),
        (field(tensor(2, -1, 4)), "a tensor has an invalid shape"),
        (field(b"ctorch\nSize\n" + b"]\x85R"), "a tensor has an invalid shape"),
        (field(b"ctorch_geometric.data.graph_store\nEdgeLayout\n" + number(1) + b"\x85R"), "not a member"),
        (field(b"ctorch.serialization\n_get_layout\n)\x85R"), "unknown layout"),
        (field(b"ctorch\nint64\n"), "a field holds torch.int64"),
        (field(b"ctorch_geometric.data.data\nData\n)\x81"), "a field holds torch_geometric.data.data.Data"),
        (b"\x80\x02ctorch_geometric.data.data\nData\n)\x81.", "holds no complete Data"),
        (b"\x80\x02}" + number(1) + b"\x85Ns.", "a key is a tuple"),
        (b"\x80\x02}Ns.", "a step"),
        (b"\x80\x02t.", "lacks its mark"),
        (b"\x80\x02NNb.", "no dict"),
        (b"\x80\x02N}b.", "expects Instance"),
        (b"\x80\x02Na.", "a step"),
        (b"\x80\x02NR.", "a step"),
        (b"\x80\x04\x95" + bytes(8) + b"N.", "the step FRAME"),
        (b"\x80\x02N", "pickle exhausted"),
        (field(b"]q\x00h\x00a"), "nests the same lists|lists nested"),
        (field(LAUGHS), "nests the same lists|lists nested"),
        (field(b"](" + b"N" * MAX_STEPS + b"e"), "more than 400000 steps"),
    ],
)
def test_what_no_graph_needs_is_refused(tmp_path, content, reason):
    path = torch_archive(tmp_path / "g.pt", content, BYTES)
    with pytest.raises(ValueError, match=reason):
        read_torch(path)


def test_archives_that_torch_does_not_write(tmp_path):
    path = torch_archive(tmp_path / "g.pt", field(b"N"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/data.pkl", b"\x80\x02N.")
    with pytest.raises(ValueError, match="no archive of torch"):
        read_torch(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/byteorder", b"big")
        archive.writestr("a/data.pkl", b"\x80\x02N.")
    with pytest.raises(ValueError, match="big-endian"):
        read_torch(path)


def test_a_flipped_bit_of_the_numbers_is_seen(tmp_path):
    path = torch_archive(tmp_path / "g.pt", field(tensor(4, 1, 4)), BYTES)
    path.write_bytes(path.read_bytes().replace(BYTES["0"], struct.pack("<4f", 1, 2, 3, 5)))
    with pytest.raises(zipfile.BadZipFile, match="CRC"):
        read_torch(path)
