import json

import pytest
import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph, taken
from gst.base.errors import InputError
from gst.nn.backbones import BACKBONES
from gst.storage import files as storage_files

QUICK = {"hidden": 8, "heads": 2, "anchor_epochs": 3, "sparse_epochs": 4, "interval": 2, "cache": False}


def run(data=None, **kwargs):
    data = random_graph(nodes=40, edges=120, loops=True, weighted=True) if data is None else data
    return gst.sparsify(data, "gst", sparsity=0.5, **{**QUICK, **kwargs})


@pytest.mark.parametrize("backbone", BACKBONES)
def test_round_trip(tmp_path, backbone):
    data = random_graph(nodes=40, edges=120, loops=True, weighted=True)
    data.edge_attr = torch.rand(data.edge_index.shape[1], 2)
    data.name, data.metric = "mine", "accuracy"
    result = run(data, backbone=backbone, layers=3)
    result.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert sorted(again.graph.keys()) == sorted(result.graph.keys())
    for key, value in result.graph.to_dict().items():
        same = again.graph[key] == value
        assert bool(same.all()) if isinstance(same, torch.Tensor) else same
    assert torch.equal(again.edge_mask, result.edge_mask) and torch.equal(again.scores, result.scores)
    assert again.metrics == json.loads(json.dumps(result.metrics)) and again.settings == result.settings
    graph = again.graph
    result.model.eval()
    ours = result.model(graph.x, graph.edge_index, graph.edge_weight)
    assert torch.equal(again.model(graph.x, graph.edge_index, graph.edge_weight), ours)


def test_mostly_zero_features_are_stored_sparse_and_come_back(tmp_path):
    data = random_graph(nodes=40, edges=120, features=500)
    data.x = data.x * (torch.rand_like(data.x) < 0.01)
    run(data).save(tmp_path / "run")
    assert torch.equal(gst.Result.load(tmp_path / "run").graph.x, data.x)
    (path,) = (tmp_path / "run").glob("graph-*.safetensors")
    assert path.stat().st_size < data.x.numel() * 4 / 2


def test_own_model_comes_back_into_the_user_s_module(tmp_path):
    data = random_graph(nodes=40, edges=120)
    result = run(data, model=GCN(5, 8, 2, 3))
    result.save(tmp_path / "run")
    assert gst.Result.load(tmp_path / "run").model is None
    again = gst.Result.load(tmp_path / "run", model=GCN(5, 8, 2, 3))
    for a, b in zip(again.model.parameters(), result.model.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(InputError, match="does not fit the model"):
        gst.Result.load(tmp_path / "run", model=GCN(5, 9, 2, 3))


def test_saving_again_replaces(tmp_path):
    run().save(tmp_path / "run")
    second = run(seed=1)
    second.save(tmp_path / "run")
    assert gst.Result.load(tmp_path / "run").metrics["seed"] == 1
    names = sorted(p.name.split("-")[0] for p in (tmp_path / "run").iterdir())
    assert names == ["graph", "model", "run.json"]


def test_no_edges_left(tmp_path):
    data = random_graph(nodes=40, edges=120)
    gst.sparsify(data, "gst", keep=0, **QUICK).save(tmp_path / "run")
    assert gst.Result.load(tmp_path / "run").graph.num_edges == 0


@pytest.mark.parametrize("name", ["run", "graph", "model"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "empty", "rubbish"])
def test_damaged_runs_get_one_line(tmp_path, name, damage):
    folder = run().save(tmp_path / "run")
    (file,) = folder.glob(f"{name}*")
    if damage == "missing":
        file.unlink()
    else:
        content = file.read_bytes()
        file.write_bytes(
            {"truncated": content[: len(content) // 2], "empty": b"", "rubbish": b"\x80\x04rubbish" * 9}[damage]
        )
    with pytest.raises(InputError) as caught:
        gst.Result.load(folder)
    assert file.name in str(caught.value) and "\n" not in str(caught.value)


def test_foreign_content_gets_one_line(tmp_path):
    folder = run().save(tmp_path / "run")
    words = storage_files.read_json(folder / "run.json")
    storage_files.write_json(folder / "run.json", {"format": 99})
    with pytest.raises(InputError, match="format 99: this gst reads formats 1 to 3"):
        gst.Result.load(folder)
    storage_files.write_json(folder / "run.json", {**words, "metrics": 3})
    with pytest.raises(InputError, match="no metrics"):
        gst.Result.load(folder)
    for files in (3, {}, {"graph": "../../secret", "model": "0" * 32}):
        storage_files.write_json(folder / "run.json", {**words, "files": files})
        with pytest.raises(InputError, match="does not say which files"):
            gst.Result.load(folder)
    with pytest.raises(InputError, match="is not a run folder"):
        gst.Result.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a file, a folder is needed"):
        run().save(tmp_path / "file")


def test_no_pickle_is_ever_opened(tmp_path, monkeypatch):
    folder = run().save(tmp_path / "run")
    monkeypatch.setattr("pickle.load", None)
    monkeypatch.setattr("pickle.loads", None)
    monkeypatch.setattr(torch, "load", None)
    gst.Result.load(folder)


def test_metrics_hold_what_the_contract_names():
    metrics = run(dense=True, retrain=True).metrics
    names = "dataset method backbone seed sparsity edges_total edges_kept val test retrain_val retrain_test dense_val"
    assert set(names.split()) | {"dense_test", "metric", "seconds"} <= metrics.keys()
    assert metrics["seconds"].keys() == {"anchor", "topology", "sparse", "total"}
    assert metrics["sparsity"] == 1 - metrics["edges_kept"] / metrics["edges_total"]


def test_topology_method_in_the_same_protocol():
    data = random_graph(nodes=40, edges=120)
    result = gst.sparsify(data, "Random", sparsity=0.5, retrain=True, **taken("random", QUICK))
    assert result.metrics["test"] == result.metrics["retrain_test"]
    assert result.metrics["method"] == "random"
