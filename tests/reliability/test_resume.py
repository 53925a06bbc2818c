"""A run interrupted at any boundary and resumed equals an uninterrupted one, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph, taken
from gst.base.errors import InputError, InterruptedRunError
from gst.base.randomness import seeded
from gst.storage.checkpoint import Checkpoint, NoCheckpoint
from gst.storage.lock import RUN as LOCK
from gst.storage.lock import Lock
from gst.storage.signals import graceful

FEW = {"hidden": 8, "anchor_epochs": 5, "sparse_epochs": 9, "interval": 3, "cache": False}
HALF = {"sparsity": 0.5, "dense": True, "retrain": True}
BOUNDARIES = [("anchor", 1), ("anchor", 5), *(("sparse", epoch) for epoch in (1, 2, 3, 4, 5, 8, 9)), ("retrain", 7)]
FITS = {  # iterative methods with few epochs, and where they are interrupted
    "ugs": (lambda **given: gst.UGS(round_epochs=4, **given), [("prune", 2), ("prune", 4), ("sparse", 6)]),
    "wd-glt": (lambda **given: gst.WDGLT(round_epochs=3, **given), [("prune", 2), ("prune", 3), ("sparse", 13)]),
    "mgspar": (
        lambda **given: gst.MGSpar(inner_steps=3, meta_epochs=3, **given),
        [("anchor", 3), ("anchor", 5), ("prune", 2), ("prune", 3), ("sparse", 2)],
    ),
}


class CutError(Exception):
    pass


def cut_after(phase, epoch):
    """Interrupts a run after the epoch that follows this one, before that is saved."""
    passed = []

    def watch(progress):
        if passed:
            raise CutError
        if (progress.phase, progress.epoch) == (phase, epoch):
            passed.append(1)

    return watch


def run(method="gst", **kwargs):
    data = random_graph(nodes=40, edges=90, loops=True)
    return gst.sparsify(data, method, **{**HALF, **taken(method, FEW), **kwargs})


def assert_same(one, two):
    untimed = [{k: v for k, v in result.metrics.items() if k != "seconds"} for result in (one, two)]
    assert untimed[0] == untimed[1]
    assert torch.equal(one.edge_mask, two.edge_mask) and torch.equal(one.scores, two.scores)
    for a, b in zip(one.model.state_dict().values(), two.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("method", ["gst", "scan"])
def test_resumed_at_every_boundary(method, tmp_path):
    """At the end of the anchor, before, at and after an update, within an interval, at the last epoch."""
    expected = run(method)
    for number, cut in enumerate(BOUNDARIES if method == "gst" else [("retrain", 1), ("retrain", 14), ("dense", 3)]):
        folder, seen = tmp_path / str(number), []
        with pytest.raises(CutError), Checkpoint(folder, every=0) as checkpoint:
            run(method, callbacks=cut_after(*cut), checkpoint=checkpoint)
        assert_same(run(method, callbacks=seen.append, checkpoint=folder), expected)
        assert cut not in [(progress.phase, progress.epoch) for progress in seen], "an epoch was trained twice"


@pytest.mark.parametrize("batch", ["clusters", "neighbors"])
def test_mini_batches_are_resumed_with_the_same_draws(batch, tmp_path):
    given = {"batch": batch, "clusters": 5, "clusters_per_batch": 2, "batch_nodes": 4, "fanout": 3, "backbone": "sage"}
    expected = run(**given, inductive=True, dense=False)
    for number, cut in enumerate([("anchor", 2), ("sparse", 4), ("retrain", 7)]):
        with pytest.raises(CutError), Checkpoint(tmp_path / str(number), every=0) as checkpoint:
            run(**given, inductive=True, dense=False, callbacks=cut_after(*cut), checkpoint=checkpoint)
        assert_same(run(**given, inductive=True, dense=False, checkpoint=tmp_path / str(number)), expected)


@pytest.mark.parametrize("method", FITS)
def test_methods_of_many_rounds(method, tmp_path):
    make, cuts = FITS[method]
    data = random_graph(nodes=40, edges=90, loops=True)

    def fit(**kwargs):
        return make(sparsity=0.2, **taken(method, FEW), **kwargs).fit(data)

    expected, every = fit(), []
    for number, cut in enumerate(cuts):
        folder, seen = tmp_path / str(number), []
        with pytest.raises(CutError), Checkpoint(folder, every=0) as checkpoint:
            fit(callbacks=cut_after(*cut), checkpoint=checkpoint)
        found = fit(callbacks=seen.append, checkpoint=folder)
        for name in ("keep_mask", "scores", "logits"):
            assert torch.equal(getattr(found.found_, name), getattr(expected.found_, name))
        every.append(len(seen))
    assert every == sorted(every, reverse=True), "the later the interruption, the less is left to do"


@pytest.mark.parametrize("backbone", ["gin", "gat"])
def test_other_backbones(backbone, tmp_path):
    with pytest.raises(CutError), Checkpoint(tmp_path, every=0) as checkpoint:
        run(callbacks=cut_after("sparse", 4), backbone=backbone, checkpoint=checkpoint)
    assert_same(run(backbone=backbone, checkpoint=tmp_path), run(backbone=backbone))


@pytest.mark.parametrize(
    ("method", "cut"),
    [("deploy", (phase, epoch)) for phase, epoch in (("dense", 14), ("greedy", 1), ("greedy", 9), ("retrain", 2))]
    + [("retrain", cut) for cut in (("anchor", 5), ("turn", 3), ("sparse", 2))],
)
def test_methods(method, cut, tmp_path):
    with pytest.raises(CutError), Checkpoint(tmp_path, every=0) as checkpoint:
        run(callbacks=cut_after(*cut), method=method, checkpoint=checkpoint)
    assert_same(run(method=method, checkpoint=tmp_path), run(method=method))


def test_tickets_and_own_models(tmp_path):
    def fit(seed=0, **kwargs):
        data = random_graph(nodes=40, edges=90)
        options = {"round_epochs": 4, "weight_prune_ratio": 0.2, "sparsity": 0.2}
        torch.manual_seed(seed)
        model = GCN(5, 8, 2, 3, dropout=0.3, norm="batch_norm")
        return gst.UGS(model, **options, **taken("ugs", FEW), **kwargs).fit(data)

    def cut(progress):
        if progress.epoch == 3 and progress.sparsity > 0.1:
            raise CutError

    expected = fit()
    with pytest.raises(CutError), Checkpoint(tmp_path, every=0) as checkpoint:
        fit(checkpoint=checkpoint, callbacks=cut)
    seen = []
    found = fit(checkpoint=tmp_path, callbacks=seen.append)
    assert torch.equal(found.found_.keep_mask, expected.found_.keep_mask)
    assert torch.equal(found.found_.logits, expected.found_.logits)
    assert seen[0].epoch == 3 and seen[0].phase == "prune"
    with pytest.raises(InputError, match="unfinished run with model"):
        fit(seed=1, checkpoint=tmp_path)


def test_the_order_of_tensors_in_a_file_does_not_matter():
    """safetensors returns them in a different order each time."""
    data = random_graph(nodes=40, edges=90)
    method = gst.UGS(round_epochs=3, weight_prune_ratio=0.2, sparsity=0.2, **taken("ugs", FEW))
    run = method.run(data)
    with seeded(0):
        first, _ = method.stage(run, run.edges, 0, {})
    extra = {name: tensor for name, tensor in first.items() if name != "scores"}
    assert len(extra) == 2
    for given in (extra, dict(reversed(extra.items()))):
        with seeded(1):
            found, _ = method.stage(run, run.edges, 1, given)
        assert torch.equal(found["scores"], first.setdefault("second", found["scores"]))


def test_seconds_add_up_over_processes(tmp_path):
    def slow(progress):
        time.sleep(0.02)
        if (progress.phase, progress.epoch) == ("sparse", 8):
            raise CutError

    data = random_graph(nodes=40, edges=90)
    with pytest.raises(CutError), Checkpoint(tmp_path, every=0) as checkpoint:
        gst.sparsify(data, "gst", sparsity=0.5, callbacks=slow, checkpoint=checkpoint, **FEW)
    seconds = gst.sparsify(data, "gst", sparsity=0.5, checkpoint=tmp_path, **FEW).metrics["seconds"]
    assert seconds["sparse"] > 0.14 and seconds["anchor"] > 0.1 and seconds["total"] > 0.24


def test_another_run_in_the_folder_is_refused_in_one_line(tmp_path):
    with pytest.raises(CutError), Checkpoint(tmp_path, every=0) as checkpoint:
        run(callbacks=cut_after("anchor", 2), checkpoint=checkpoint)
    for change, words in (({"sparsity": 0.4}, "sparsity = 0.5, not 0.4"), ({"seed": 1}, "seed = 0, not 1")):
        with pytest.raises(InputError, match=f"unfinished run with {words}") as caught:
            run(checkpoint=tmp_path, **change)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="other data"):
        other = random_graph(nodes=40, edges=90, seed=3)
        gst.sparsify(other, "gst", sparsity=0.5, retrain=True, dense=True, checkpoint=tmp_path, **FEW)


def test_a_second_process_is_refused_and_the_lock_of_a_dead_one_is_released(tmp_path):
    with Lock(tmp_path), pytest.raises(InputError, match=f"in use by process {os.getpid()} on "):
        Lock(tmp_path)
    assert not (tmp_path / LOCK).exists()
    code = "import os, sys, pathlib; from gst.storage.lock import Lock; Lock(pathlib.Path(sys.argv[1])); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / LOCK).exists()
    Lock(tmp_path).release()


def test_a_signal_stops_at_the_end_of_the_epoch(tmp_path):
    def interrupt(progress):
        if (progress.phase, progress.epoch) == ("sparse", 4):
            os.kill(os.getpid(), signal.SIGTERM)

    data = random_graph(nodes=40, edges=90)
    stops = pytest.raises(InterruptedRunError, match="after epoch 4 of 9")
    with stops as caught, Checkpoint(tmp_path) as checkpoint, graceful(checkpoint):
        gst.sparsify(data, "gst", sparsity=0.5, callbacks=interrupt, checkpoint=checkpoint, **FEW)
    assert caught.value.code == 143
    seen = []
    gst.sparsify(data, "gst", sparsity=0.5, callbacks=seen.append, checkpoint=tmp_path, **FEW)
    assert [progress.epoch for progress in seen] == [5, 6, 7, 8, 9]


def test_a_second_signal_exits_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "_exit", sys.exit)
    with Checkpoint(tmp_path) as checkpoint, graceful(checkpoint):
        os.kill(os.getpid(), signal.SIGINT)
        assert checkpoint.stop == signal.SIGINT
        with pytest.raises(SystemExit) as caught:
            os.kill(os.getpid(), signal.SIGINT)
        assert caught.value.code == 130


def test_without_a_folder_a_signal_stops_at_once():
    with pytest.raises(InterruptedRunError) as caught, graceful(NoCheckpoint()):
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.code == 143


def test_clearing_removes_states_and_nothing_else(tmp_path):
    with pytest.raises(CutError), Checkpoint(tmp_path, every=0) as checkpoint:
        run("scan", callbacks=cut_after("retrain", 2), checkpoint=checkpoint)
    states = tmp_path / "checkpoint"
    (states / "notes.txt").write_text("mine")
    (states / "mine.safetensors").write_text("mine")
    (states / "run.json").rename(states / "cleared.json")  # leftovers of an interrupted clear()
    assert_same(run("scan", sparsity=0.3, checkpoint=tmp_path), run("scan", sparsity=0.3))
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.clear()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["mine.safetensors", "notes.txt"]
    with Checkpoint(tmp_path / "new" / "folder"):
        pass
    assert not (tmp_path / "new").exists()


def command(*words):
    return [sys.executable, "-m", "gst", *map(str, words)]


RUN = ["run", "--dataset", "synthetic:nodes=300", "--sparsity", 0.5, "--hidden", 16, "--no-dense", "--quiet", "--json"]
LONG = [
    *RUN,
    "--method",
    "gst",
    "--anchor-epochs",
    20,
    "--sparse-epochs",
    600,
    "--no-topology",
    "--interval",
    2000,
    "--no-cache",
]


def test_the_command_line_is_interrupted_and_resumed(tmp_path):
    """Real processes: SIGINT, the same command again, SIGTERM, SIGKILL, --resume to the end."""
    out = tmp_path / "run"
    states = out / "checkpoint"

    def begin(*words):
        before = newest(states)
        process = subprocess.Popen(command(*words), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while process.poll() is None and newest(states) <= before:
            time.sleep(0.02)
        return process

    first = begin(*LONG, "--out", out, "--checkpoint-every", 0.1)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate()
    assert first.returncode == 130 and f"gst run --resume {out}" in err and "Traceback" not in err
    with Lock(out):
        second = subprocess.run(command(*LONG, "--out", out), capture_output=True, text=True, check=False)
        assert second.returncode == 2 and f"in use by process {os.getpid()}" in second.stderr
    third = begin(*LONG, "--out", out, "--checkpoint-every", 0.1)
    third.send_signal(signal.SIGTERM)
    _, err = third.communicate()
    assert third.returncode == 143 and "resuming" in err
    fourth = begin("run", "--resume", out, "--checkpoint-every", 0.1)
    fourth.kill()
    fourth.communicate()
    done = subprocess.run(command("run", "--resume", out, "--json"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name.split("-")[0] for path in out.iterdir()) == ["graph", "model", "run.json"]
    again = subprocess.run(command(*LONG, "--out", tmp_path / "plain"), capture_output=True, text=True, check=False)
    assert_same(gst.Result.load(out), with_out(gst.Result.load(tmp_path / "plain"), json.loads(done.stdout)))
    shown = subprocess.run(command("run", "--resume", out, "--json"), capture_output=True, text=True, check=False)
    assert json.loads(shown.stdout)["test"] == json.loads(again.stdout)["test"]


def newest(folder: Path) -> float:
    return max((path.stat().st_mtime for path in folder.glob("*.safetensors")), default=0.0)


def with_out(result, shown):
    """The result with the metrics that differ between any two runs taken from the other run."""
    result.metrics |= {key: shown[key] for key in ("out", "inference")}
    return result


def test_resume_takes_no_other_options(tmp_path):
    def fails(*words):
        done = subprocess.run(command("run", *words), capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        return done.stderr

    assert "leave out --sparsity" in fails("--resume", tmp_path, "--sparsity", 0.4)
    assert "holds no run to resume" in fails("--resume", tmp_path)


def test_kills_at_random_instants(tmp_path):
    few = ["--kills", "1", "--jobs", "scan", "set", "wd-glt", "own-ugs", "search-paper"]
    words = [sys.executable, "-m", "reliability", "kills", *few, "--folder", str(tmp_path)]
    folder = Path(__file__).parent.parent
    paths = os.pathsep.join([str(folder), str(folder / "methods"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr + done.stdout
    for found in json.loads(done.stdout)["kills"].values():
        assert found["kills"] >= 1 and found["details"] == []
