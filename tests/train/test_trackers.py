"""Each tracker against the real package, offline; those that are not installed are left out."""

import os
from copy import deepcopy

import pytest

import gst
from graphs import random_graph

FEW = {"hidden": 4, "anchor_epochs": 2, "sparse_epochs": 3, "cache": False, "sparsity": 0.5}


def fit(tracker, **given):
    return gst.sparsify(random_graph(), "gst", **{**FEW, **given}, callbacks=tracker)


def failing(tracker):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit([tracker, stop])


def test_tensorboard_files_hold_every_epoch(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    result = fit(gst.TensorBoard(tmp_path))
    events = EventAccumulator(str(tmp_path)).Reload()
    values = [event.value for event in events.Scalars("anchor/val")]
    expected = [step.val for step in result.history if step.phase == "anchor"]
    assert values == pytest.approx(expected)
    assert [event.step for event in events.Scalars("sparse/best")] == [3, 4, 5]
    assert events.Scalars("result/test")[0].value == pytest.approx(result.metrics["test"])
    text = events.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| method | gst |" in text and "| hidden | 4 |" in text


def test_mlflow_runs_hold_settings_epochs_and_outcome(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    tracker = gst.MLflow("graphs")
    result = fit(tracker)
    failing(tracker)
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("graphs").experiment_id
    failed, done = client.search_runs([experiment], order_by=["start_time DESC"])
    assert done.info.status == "FINISHED" and failed.info.status == "KILLED"
    assert done.data.params["method"] == "gst" and done.data.params["hidden"] == "4"
    assert done.data.metrics["result/test"] == pytest.approx(result.metrics["test"])
    assert len(client.get_metric_history(done.info.run_id, "sparse/val")) == 3
    assert mlflow.active_run() is None


def test_wandb_runs_offline(tmp_path):
    wandb = pytest.importorskip("wandb")
    tracker = gst.WandB("graphs", mode="offline", folder=tmp_path)
    fit(tracker)
    files = list(tmp_path.rglob("*.wandb"))
    assert len(files) == 1 and files[0].stat().st_size > 0
    failing(tracker)
    assert wandb.run is None


def test_a_tracker_can_be_copied_with_its_estimator(tmp_path):
    pytest.importorskip("tensorboard")
    estimator = gst.GST(sparsity=0.5, callbacks=[gst.TensorBoard(tmp_path)])
    assert deepcopy(estimator).callbacks[0].folder == os.fspath(tmp_path)


def test_a_tracker_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(gst.InputError, match=r"graph-sparse-training\[wandb\]"):
        gst.WandB()
