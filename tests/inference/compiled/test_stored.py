import pytest
import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.inference.compiled import compile_model
from gst.nn.backbones import BACKBONES
from gst.storage import files


def compiled_gcn(**kwargs):
    return compile_model(BACKBONES["gcn"](5, 8, 3), random_graph(nodes=40, edges=120), "rcm", **kwargs)


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("thin", [False, True])
def test_round_trip(tmp_path, name, precision, thin):
    data = random_graph(nodes=40, edges=120, features=100, weighted=True)
    data.x = data.x * (torch.rand_like(data.x) < (0.03 if thin else 1))
    model = BACKBONES[name](100, 8, 3, layers=3, **({"heads": 2} if name == "gat" else {}))
    compiled = compile_model(model, data, "auto", precision)
    again = gst.load_compiled(compiled.save(tmp_path / "model.safetensors"))
    assert torch.equal(again(), compiled()) and torch.equal(again.permutation, compiled.permutation)
    assert (again.layout, again.precision, again.trials) == (compiled.layout, precision, compiled.trials)


def test_values_that_layers_share_are_stored_once(tmp_path):
    compiled_gcn().save(tmp_path / "model")
    tensors, _ = files.read_tensors(tmp_path / "model")
    assert [name for name in tensors if name.startswith("values")] == ["values/0"]
    assert tensors["crow"].dtype == tensors["col"].dtype == torch.int32


def test_rounded_features_take_half_the_space(tmp_path):
    compiled_gcn(features="bfloat16").save(tmp_path / "model")
    assert files.read_tensors(tmp_path / "model")[0]["features"].dtype == torch.bfloat16


def test_own_models_need_their_code(tmp_path):
    data, model = random_graph(nodes=40, edges=120), GCN(5, 8, 2, 3)
    compiled = compile_model(model, data, "degree")
    path = compiled.save(tmp_path / "model")
    assert torch.equal(gst.load_compiled(path, model=GCN(5, 8, 2, 3))(), compiled())
    with pytest.raises(InputError, match="own model"):
        gst.load_compiled(path)
    with pytest.raises(InputError, match="does not fit the model"):
        gst.load_compiled(path, model=GCN(5, 9, 2, 3))
    with pytest.raises(InputError, match="without a model"):
        gst.load_compiled(compiled_gcn().save(tmp_path / "native"), model=model)


def damage(tensors, metadata, how):
    if how == "column":
        tensors["col"][3] = 40
    elif how == "negative column":
        tensors["col"][3] = -1
    elif how == "row pointers":
        tensors["crow"][5] = 10_000
    elif how == "end":
        tensors["crow"][-1] += 1
    elif how == "int64":
        tensors["col"] = tensors["col"].long()
    elif how == "values":
        tensors["values/0"] = tensors["values/0"][:-1].clone()
    elif how == "features":
        tensors["features"] = tensors["features"][:-1].clone()
    elif how == "permutation":
        tensors["permutation"][0] = tensors["permutation"][1]
    elif how == "weights":
        tensors["layers/1/weight"] = torch.zeros(7, 3)
    elif how == "bias":
        tensors["layers/0/bias"] = torch.zeros(7)
    elif how == "missing":
        del tensors["layers/1/bias"]
    elif how == "kind":
        metadata["layers"][0]["kind"] = "pickle"
    elif how == "flag":
        metadata["layers"][0]["relu"] = "yes"
    elif how == "layers":
        metadata["layers"] = 3
    elif how == "precision":
        metadata["precision"] = "float64"
    elif how == "narrow":
        metadata["layers"][0]["narrow"] = True


DAMAGES = [
    "column",
    "negative column",
    "row pointers",
    "end",
    "int64",
    "values",
    "features",
    "permutation",
    "weights",
    "bias",
    "missing",
    "kind",
    "flag",
    "layers",
    "precision",
    "narrow",
]


@pytest.mark.parametrize("how", DAMAGES)
def test_everything_that_a_kernel_relies_on_is_checked(tmp_path, how):
    path = compiled_gcn().save(tmp_path / "model")
    tensors, metadata = files.read_tensors(path)
    damage(tensors, metadata, how)
    files.write_tensors(path, tensors, metadata)  # sealed anew: the checksum is right
    with pytest.raises(InputError) as caught:
        gst.load_compiled(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_other_files_get_one_line(tmp_path):
    path = compiled_gcn().save(tmp_path / "model")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="damaged"):
        gst.load_compiled(path)
    files.write_tensors(path, {"a": torch.zeros(1)})
    with pytest.raises(InputError, match="is not a compiled model"):
        gst.load_compiled(path)
    with pytest.raises(InputError, match="no such file"):
        gst.load_compiled(tmp_path / "nowhere")
