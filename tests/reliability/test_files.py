"""Damaged files, failing disks and old formats."""

import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.storage import files
from gst.storage.cache import Cache
from gst.storage.checkpoint import Checkpoint
from reliability.damage import read_damaged
from reliability.faults import CALLS, ERRORS, failing
from reliability.fuzz import parse

FIXTURES = Path(__file__).parent.parent / "fixtures"
QUICK = {"hidden": 4, "anchor_epochs": 3, "sparse_epochs": 4, "interval": 2, "cache": False}


def quick(**kwargs):
    return gst.sparsify(random_graph(nodes=30, edges=60), "gst", sparsity=0.5, **{**QUICK, **kwargs})


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("version", [1, 2])
def test_every_released_format_still_reads(version):
    result = gst.Result.load(FIXTURES / f"run-format-{version}")
    assert result.metrics["edges_kept"] == 90 == int(result.edge_mask.sum()) // 2
    graph = result.graph
    logits = result.model(graph.x, graph.edge_index)
    correct = (logits.argmax(-1) == graph.y)[graph.test_mask].float().mean()
    assert 100 * float(correct) == pytest.approx(result.metrics["test"])


@pytest.mark.parametrize("name", ["run.json", "graph.safetensors", "model.safetensors"])
def test_a_damaged_result_is_refused(tmp_path, name):
    folder = shutil.copytree(FIXTURES / "run-format-2", tmp_path / "run")
    assert read_damaged(folder / name, lambda: gst.Result.load(folder)) == {"refused": 220}


def test_files_of_two_results_do_not_mix(tmp_path):
    first, second = quick().save(tmp_path / "a"), quick(seed=1).save(tmp_path / "b")
    (mine,), (other,) = (folder.glob("model-*") for folder in (first, second))
    shutil.copy(other, mine)
    with pytest.raises(InputError, match="damaged or of another run"):
        gst.Result.load(first)


def test_a_damaged_cache_entry_counts_as_absent(tmp_path):
    calls = []

    def make():
        calls.append(1)
        return {"scores": torch.arange(5.0)}, {"seconds": 1.0}

    store = Cache(tmp_path)
    store.get("kind", {}, make)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()

    def read():
        assert store.get("kind", {}, make)[0]["scores"].tolist() == [0, 1, 2, 3, 4]
        assert path.read_bytes()[:8] == whole[:8]
        files.read_tensors(path)

    assert read_damaged(path, read, cuts=5, flips=20) == {"accepted": 25}  # computed anew each time
    assert len(calls) == 26


class StopHereError(Exception):
    pass


def stopped(folder, epoch, phase="sparse"):
    """Leaves the states of a run that stopped in the middle of an epoch."""

    def watch(progress):
        if (progress.phase, progress.epoch) == (phase, epoch):
            raise StopHereError

    with pytest.raises(StopHereError), Checkpoint(folder, every=0) as checkpoint:
        quick(callbacks=watch, checkpoint=checkpoint)


def test_a_damaged_state_falls_back_to_the_one_before(tmp_path):
    expected = quick()
    stopped(tmp_path / "run", 4)
    states = {path: files.read_tensors(path)[1]["epoch"] for path in tmp_path.rglob("sparse.*")}
    assert sorted(states.values()) == [2, 3]
    newest = max(states, key=states.get)
    assert read_damaged(newest, lambda: files.read_tensors(newest)) == {"refused": 220}
    newest.write_bytes(newest.read_bytes()[:-1])
    seen = []
    result = quick(
        checkpoint=tmp_path / "run", callbacks=lambda progress: seen.append((progress.phase, progress.epoch))
    )
    assert seen == [("sparse", 3), ("sparse", 4)]
    assert torch.equal(result.edge_mask, expected.edge_mask) and torch.equal(result.scores, expected.scores)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", CALLS)
def test_a_failing_disk_leaves_the_old_result_or_the_new_one(tmp_path, call, error):
    old, new = quick(), quick(seed=1)
    folder = old.save(tmp_path / "run")
    for number in range(1, 20):
        with failing(call, error, number) as calls:
            try:
                new.save(folder)
                saved = True
            except InputError as line:
                saved = False
                assert "cannot write" in str(line) and "\n" not in str(line)
        loaded = gst.Result.load(folder)
        assert loaded.metrics["seed"] in ((1,) if saved else (0, 1))
        assert [name.split("-")[0] for name in names(folder)] == ["graph", "model", "run.json"]
        if len(calls) < number:
            break
        old.save(folder)
    assert number > 3 and saved


@pytest.mark.parametrize("call", CALLS)
def test_a_failing_disk_in_a_fresh_folder_leaves_nothing_that_loads(tmp_path, call):
    new = quick()
    for number in range(1, 4):
        folder = tmp_path / f"{call}{number}"
        with failing(call, ERRORS[0], number), pytest.raises(InputError, match="No space left"):
            new.save(folder)
        assert not folder.exists()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", CALLS)
def test_a_failing_disk_during_training_costs_no_state(tmp_path, call, error):
    expected = quick()
    for number in (1, 2, 6, 9):
        folder = tmp_path / str(number)
        with (
            pytest.raises(InputError, match="cannot write"),
            failing(call, error, number),
            Checkpoint(folder, every=0) as checkpoint,
        ):
            quick(checkpoint=checkpoint)
        assert not [name for name in names(folder) if name.endswith(".tmp")]
        assert torch.equal(quick(checkpoint=folder).scores, expected.scores)


def test_stale_temporaries_are_swept(tmp_path):
    stopped(tmp_path, 2)
    for folder in (tmp_path, tmp_path / "checkpoint"):
        (folder / ".gst-abc.tmp").write_bytes(b"half")
        (folder / ".draft.tmp").write_bytes(b"mine")
    quick(checkpoint=tmp_path).save(tmp_path)
    assert [name for name in names(tmp_path) if name.endswith(".tmp")] == [".draft.tmp"] * 2


@given(st.binary(max_size=200))
@example(b"{}" + b" " * 6 + b"{}")
def test_any_bytes_are_refused_as_an_artefact(tmp_path_factory, content):
    parse(content, tmp_path_factory.getbasetemp() / "bytes")
