"""An engine is one file, mapped or read, and whatever is wrong with it is found before a kernel reads it."""

import re

import pytest
import torch
from test_engine import assert_close, backbone
from torch_geometric.nn.models import GAT

import gst
from graphs import random_graph
from gst import DamagedError, InputError
from gst.inference.serving import make_engine
from gst.inference.serving.engine import NativeEngine
from gst.storage import files


@pytest.mark.parametrize("name", ["gcn", "gat", "sage"])
@pytest.mark.parametrize("kind", [{}, {"weighted": True, "loops": True}])
@pytest.mark.parametrize("features", [None, "mmap"])
@pytest.mark.parametrize("thin", [False, True])
def test_a_file_gives_the_same_answers(name, kind, features, thin, tmp_path):
    data = random_graph(nodes=40, edges=80, features=50, **kind)
    data.x = data.x * (torch.rand_like(data.x) < (0.03 if thin else 1))
    model = backbone(name, 50, residual=True, norm="layer")
    engine = make_engine(model, data, products=kind == {})
    path = engine.save(tmp_path / "engine.safetensors")
    again = gst.load_engine(path, features=features)
    assert isinstance(again, NativeEngine)
    assert torch.equal(again(range(40)), engine(range(40)))
    assert again.reads(3) == engine.reads(3)
    assert_close(again([7], x=torch.ones(1, 50)), engine([7], x=torch.ones(1, 50)))


def test_a_mapped_file_is_never_written(tmp_path):
    data = random_graph(nodes=40, edges=80)
    path = make_engine(backbone("gcn", 5), data).save(tmp_path / "engine.safetensors")
    before = path.read_bytes()
    engine = gst.load_engine(path, features="mmap")
    engine.state.graph.features.dense[:] = 0
    assert path.read_bytes() == before


def test_a_module_keeps_its_weights_but_not_its_code(tmp_path):
    data, model = random_graph(nodes=40, edges=80), GAT(5, 8, 2, 3).eval()
    path = make_engine(model, data).save(tmp_path / "engine.safetensors")
    again = gst.load_engine(path, GAT(5, 8, 2, 3))
    with torch.no_grad():
        assert_close(again(range(40)), model(data.x, data.edge_index))
    with pytest.raises(InputError, match=r"not its code: load_engine\(path, model=…\)"):
        gst.load_engine(path)
    with pytest.raises(InputError, match="does not fit the model"):
        gst.load_engine(path, GAT(5, 9, 2, 3))


@pytest.mark.parametrize("features", [None, "mmap"])
def test_damage_is_found(features, tmp_path):
    data = random_graph(nodes=40, edges=80)
    path = make_engine(backbone("gcn", 5), data).save(tmp_path / "engine.safetensors")
    content = path.read_bytes()
    for bad in (content[:-1], content[:100], b"", content[:-5] + b"\0" * 5 + b"x"):
        path.write_bytes(bad)
        with pytest.raises(InputError):
            gst.load_engine(path, features=features)
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds its whole network"):
        gst.load_engine(path, GAT(5, 8, 2, 3), features)
    (tmp_path / "no").write_bytes(files.pack({"a": torch.zeros(1)}))
    with pytest.raises(InputError, match="is not an engine of format 1"):
        gst.load_engine(tmp_path / "no", features=features)


def spoiled(name, change, metadata=None):
    return pytest.param(name, change, metadata or {}, id=f"{name} {metadata or ''}")


@pytest.mark.parametrize("features", [None, "mmap"])
@pytest.mark.parametrize(
    ("name", "change", "metadata"),
    [
        spoiled("arcs/source", lambda t: t + 40),
        spoiled("arcs/source", lambda t: t[:-1]),
        spoiled("arcs/source", lambda t: -t - 1),
        spoiled("arcs/start", lambda t: t.flip(0)),
        spoiled("arcs/start", lambda t: t[:-1]),
        spoiled("own", lambda t: t[:, :-1].clone()),
        spoiled("new_own", lambda t: t[:-1]),
        spoiled("network/width", lambda t: t + 1),
        spoiled("network/width", lambda t: t * 0),
        spoiled("network/weight_at", lambda t: t + 10**6),
        spoiled("network/weight_at", lambda t: t * 0 - 1),
        spoiled("network/norm", lambda t: t + 9),
        spoiled("network/heads", lambda t: t + 1),
        spoiled("network/heads", lambda t: t + 7),
        spoiled("features/dense", lambda t: t[:-1]),
        spoiled("features/dense", lambda t: t.double()),
        spoiled("own", lambda t: t, {"nodes": 41}),
        spoiled("own", lambda t: t, {"nodes": "40"}),
        spoiled("own", lambda t: t, {"floor": None}),
        spoiled("own", lambda t: t, {"version": -1}),
        spoiled("own", lambda t: t, {"kind": "pickle"}),
    ],
)
def test_what_a_kernel_could_not_follow_is_refused(name, change, metadata, features, tmp_path):
    """Sealed correctly, but wrong: as somebody with bad intentions would do it."""
    path = make_engine(backbone("gcn", 5), random_graph(nodes=40, edges=80)).save(tmp_path / "engine.safetensors")
    tensors, meta = files.read_tensors(path)
    tensors[name] = change(tensors[name]).contiguous()
    files.write_tensors(path, tensors, {**meta, **metadata})
    with pytest.raises(DamagedError, match="is not a complete engine"):
        gst.load_engine(path, features=features)


def test_offsets_outside_the_file_are_refused(tmp_path):
    path = make_engine(backbone("gcn", 5), random_graph(nodes=40, edges=80)).save(tmp_path / "engine.safetensors")
    content = path.read_bytes()
    first = content.index(b'"data_offsets":[') + 16
    digits = content.index(b",", first) - first
    blank = re.sub(rb'("blake2b":")[0-9a-f]{32}', rb"\g<1>" + b"0" * 32, content, count=1)
    path.write_bytes(files._seal(blank[:first] + b"9" * digits + blank[first + digits :]))
    with pytest.raises(DamagedError, match="not a whole safetensors file"):
        gst.load_engine(path, features="mmap")
