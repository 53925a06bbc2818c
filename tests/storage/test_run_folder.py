"""Folders named by a user: foreign ones are refused untouched, and no foreign file is ever removed."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
import torch

import gst
from graphs import random_graph
from gst.after import curve, search
from gst.base.errors import InputError
from gst.lab.bench.store import Store
from gst.storage import files as storage_files
from gst.storage.checkpoint import Checkpoint, read_run
from gst.storage.lock import Lock
from reliability.saving import FIXTURES, killed_at, numbered

QUICK = {"hidden": 4, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}
OPTIONS = [word for name, value in QUICK.items() if name != "cache" for word in (f"--{name.replace('_', '-')}", value)]
FOREIGN = {  # files that a user may have in a folder
    "states": {"checkpoint/a.a.safetensors": b"mine", "checkpoint/best.safetensors": b"mine"},
    "a draft": {".draft.tmp": b"mine"},
    "a lock": {".lock": b"mine"},
    "a model": {"model.safetensors": b"weights", "graph.safetensors": b"arcs"},
    "a run": {"run.json": b'{"metrics": {}, "settings": {}, "format": 7}'},
    "words": {"run.json": b"not JSON"},
    "runs": {"runs.json": b"{}", "notes.txt": b"mine"},
    "notes": {"notes.txt": b"mine"},
    "folders": {"sub/notes.txt": b"mine"},
}


def sparsify(**kwargs):
    return gst.sparsify(random_graph(nodes=30, edges=60), **{"sparsity": 0.5, **QUICK, **kwargs})


def put(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def snapshot(folder):
    """Every name and every byte in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def own(tmp_path):
    torch.save(random_graph(nodes=30, edges=60), tmp_path / "own.pt")
    return tmp_path / "own.pt"


@pytest.fixture(scope="module")
def found():
    settings = {**QUICK, "seeds": 1, "step": 0.4, "precision": 0.4}
    return search.search(random_graph(nodes=30, edges=60), "scan", tolerance=99, **settings)


PYTHON = {
    "sparsify": lambda folder, found: sparsify(checkpoint=folder),
    "fit": lambda folder, found: gst.GST(sparsity=0.5, checkpoint=folder, **QUICK).fit(random_graph(30, 60)),
    "search": lambda folder, found: gst.search(random_graph(30, 60), "scan", checkpoint=folder, **QUICK),
    "checkpoint": lambda folder, found: Checkpoint(folder),
    "save": lambda folder, found: numbered(1).save(folder),
    "curve": lambda folder, found: curve.save(found, folder),
}


@pytest.mark.parametrize("files", FOREIGN)
@pytest.mark.parametrize("write", PYTHON)
def test_a_foreign_folder_is_refused_untouched(tmp_path, found, write, files):
    put(tmp_path, FOREIGN[files])
    before = snapshot(tmp_path)
    with pytest.raises(InputError) as caught:
        PYTHON[write](tmp_path, found)
    assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("command", ["run", "search"])
def test_the_command_line_refuses_a_foreign_folder_too(call, own, tmp_path, command):
    folder = tmp_path / "theirs"
    put(folder, {name: content for files in FOREIGN.values() for name, content in files.items()})
    before = snapshot(folder)
    amount = ["--sparsity", 0.5] if command == "run" else ["--seeds", 1]
    code, out, err = call(command, "--dataset", own, *amount, "--out", folder, "--quiet", *OPTIONS)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert snapshot(folder) == before


REFUSED = {
    "sparsity": ["--sparsity", 1.5],
    "keep": ["--keep", 10**6],
    "method": ["--sparsity", 0.5, "--method", "magic"],
    "option": ["--sparsity", 0.5, "--method", "ugs", "--option", "l1=-1"],
    "setting": ["--sparsity", 0.5, "--lr", -1],
    "data": ["--sparsity", 0.5, "--dataset", "nowhere.pt"],
    "topology": ["--sparsity", 1.5, "--method", "scan", "--no-cache"],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_run_leaves_everything_as_it_was(call, own, tmp_path, reason):
    run = numbered(1).save(tmp_path / "run")
    put(run, {"notes.txt": b"mine", ".draft.tmp": b"mine", ".gst-left.tmp": b"half"})
    (tmp_path / "empty").mkdir()
    before = snapshot(tmp_path)
    for folder in (run, tmp_path / "empty", tmp_path / "new" / "folder"):
        code, _, err = call("run", "--dataset", own, "--out", folder, "--quiet", *OPTIONS, *REFUSED[reason])
        assert code == 2 and err.count("\n") == 1
        assert snapshot(tmp_path) == before


def test_a_folder_in_use_and_an_unfinished_run_are_left_as_they_are(call, own, tmp_path):
    run = numbered(1).save(tmp_path / "run")
    begin(run)
    before = snapshot(run)
    code, _, err = call("run", "--dataset", own, "--out", run, "--sparsity", 0.5, "--quiet", *OPTIONS)
    assert code == 2 and "holds an unfinished run" in err and snapshot(run) == before
    with Lock(run):
        code, _, err = call("run", "--dataset", own, "--out", run, "--sparsity", 0.5, "--quiet", *OPTIONS)
    assert code == 2 and "in use by process" in err and snapshot(run) == before


def begin(folder, **identity):
    """Makes an unfinished run with one state, without training."""
    with Checkpoint(folder) as checkpoint:
        checkpoint.begin(identity)
        checkpoint.write(checkpoint.states / "anchor.a.safetensors", {"x": torch.ones(2)}, {"elapsed": 1.0})


def test_files_beside_a_run_stay(call, own, tmp_path):
    mine = {"notes.txt": b"mine", ".lock": b"mine", ".draft.tmp": b"mine", "model.safetensors": b"mine"}
    mine |= {"checkpoint/best.safetensors": b"mine", "sub/selection-1": b"mine", "shared/selection-1": b"mine"}
    for start in ("run-format-1", "run-format-2", "new"):
        folder = tmp_path / start
        if start == "new":
            numbered(1).save(folder)
        else:
            shutil.copytree(FIXTURES / start, folder)
        beside = {name: content for name, content in mine.items() if start == "new" or name != "model.safetensors"}
        put(folder, beside)
        code, _, err = call("run", "--dataset", own, "--out", folder, "--sparsity", 0.5, "--quiet", *OPTIONS)
        assert code == 0, err
        after = snapshot(folder)
        assert gst.Result.load(folder).metrics["dataset"] == "own"
        assert {name: after[name] for name in beside} == beside
        assert sum(name.endswith(".safetensors") for name in after) == (4 if start == "new" else 3)


def test_a_search_replaces_only_its_own_curve(tmp_path, found):
    folder = numbered(1).save(tmp_path / "run")
    put(folder, {"curve.csv": b"mine"})
    before = snapshot(folder)
    with pytest.raises(InputError, match=r"curve\.csv does not belong to a search"):
        curve.save(found, folder)
    assert snapshot(folder) == before
    (folder / "curve.csv").unlink()
    curve.save(found, folder)
    curve.save(found, folder)
    assert (folder / "curve.csv").read_text().startswith("sparsity")


@pytest.mark.parametrize("command", [["run", "--sparsity", 0.5, "--out", ""], ["search", "--out", ""]])
def test_an_empty_path_is_refused(call, own, tmp_path, monkeypatch, command):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, _, err = call(*command, "--dataset", own, "--quiet", *OPTIONS)
    assert code == 2 and "empty path" in err and err.count("\n") == 1
    for write in (Checkpoint, numbered(1).save, lambda name: sparsify(checkpoint=name)):
        with pytest.raises(InputError, match="empty path"):
            write("")
    assert list(Path.cwd().iterdir()) == []


def test_leftovers_of_a_killed_run_are_resumed(tmp_path):
    """Killed at every call to the disk from the lock to the first state, and during clear(): the same run resumes."""
    for work in (lambda folder: begin(folder, seed=1), clear):
        number = 0
        while True:
            number += 1
            folder = tmp_path / f"{number}"
            if work is clear:
                begin(folder, seed=1)
            if not killed_at(number, lambda folder=folder, work=work: work(folder)):
                break
            put(folder, {"checkpoint/notes.txt": b"mine"} if (folder / "checkpoint" / "run.json").exists() else {})
            begin(folder, seed=1)
            assert read_run(folder)["identity"]["seed"] == 1
            clear(folder)
            left = [name for name in snapshot(folder) if name not in ("checkpoint", "checkpoint/notes.txt")]
            assert left == []
            shutil.rmtree(folder)
        shutil.rmtree(folder)
        assert number > 8


def clear(folder):
    with Checkpoint(folder) as checkpoint:
        checkpoint.clear()


def test_a_manifest_cannot_name_files_elsewhere(tmp_path):
    begin(tmp_path / "run")
    (tmp_path / "mine.a.safetensors").write_text("mine")
    path = tmp_path / "run" / "checkpoint" / "run.json"
    manifest = storage_files.read_json(path)
    for name in ("../../mine.a.safetensors", str(tmp_path / "mine.a.safetensors"), "", 3):
        storage_files.write_json(path, {**manifest, "files": [name]})
        with pytest.raises(InputError, match="lists files that are not states"):
            clear(tmp_path / "run")
        (path.parent / "cleared.json").rename(path)
    assert (tmp_path / "mine.a.safetensors").read_text() == "mine"


def test_a_foreign_state_is_not_overwritten(tmp_path):
    begin(tmp_path)
    put(tmp_path, {"checkpoint/sparse.a.safetensors": b"mine"})
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.begin({})
        with pytest.raises(InputError, match="not as a state of this run"):
            checkpoint.write(checkpoint.states / "sparse.a.safetensors", {}, {})
    assert (tmp_path / "checkpoint" / "sparse.a.safetensors").read_bytes() == b"mine"


def test_foreign_databases_are_refused(call, tmp_path):
    path = tmp_path / "mine.db"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE mine (a TEXT)")
    base.commit()
    base.close()
    (tmp_path / "notes.txt").write_text("mine " * 300)
    os.mkfifo(tmp_path / "pipe")
    for name in ("mine.db", "notes.txt"):
        before = snapshot(tmp_path / name) or (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="cannot use"):
            Store(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    for name in ("pipe", "", "/dev/null"):
        code, _, err = call("bench", "rq1", "--profile", "smoke", "--db", name and tmp_path / name, "--limit", 0)
        assert code == 2 and err.count("\n") == 1
    code, _, _ = call("bench", "rq1", "--profile", "smoke", "--db", tmp_path / "new" / "a.db", "--from", "nowhere")
    assert code == 2 and not (tmp_path / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.db", "notes.txt", "pipe"]
