"""Several processes under torchrun: one mask and one model, also after a worker was killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gst
from graphs import random_graph
from gst import InputError
from gst.base import distributed
from gst.graph import select
from gst.graph.shared_select import _keys, split_at

HERE = Path(__file__).parent.parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
numbers = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")]))


@given(st.lists(numbers, min_size=1, max_size=40), st.data())
def test_the_kth_highest_digit_by_digit(values, data):
    scores = torch.tensor(values)
    k = data.draw(st.integers(1, len(values)))
    above, ties = split_at(_keys(scores), k, lambda counts: counts)
    above[ties.nonzero().flatten()[: k - int(above.sum())]] = True
    assert torch.equal(above, select.top_k(scores, k))


def test_a_single_process():
    assert (distributed.size(), distributed.rank(), distributed.broadcast("x")) == (1, 0, "x")
    assert distributed.local_slice(7) == slice(0, 7)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    command = [*TORCHRUN, str(HERE / "together.py"), str(folder)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads((folder / "0.json").read_text()), json.loads((folder / "1.json").read_text())


def test_two_workers_end_with_one_mask_and_one_model(uninterrupted):
    first, second = uninterrupted
    assert first == second
    assert first["kept"] == first["total"] - round(0.5 * first["total"])


def test_a_killed_worker_costs_nothing(uninterrupted, tmp_path):
    command = [*TORCHRUN, "--max-restarts", "1", "--monitor-interval", "0.1", str(HERE / "together.py"), str(tmp_path)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        states = tmp_path / "state" / "checkpoint"
        while run.poll() is None and not list(states.glob("anchor.b.*")):  # the second epoch is done
            time.sleep(0.02)
        last = max(children(run.pid))
        os.kill(last, signal.SIGKILL)
        log = run.communicate()[1].decode()
    assert run.returncode == 0, log[-3000:]
    assert last not in children(run.pid)
    for number in range(2):
        assert json.loads((tmp_path / f"{number}.json").read_text()) == uninterrupted[number]


def children(parent: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listing.stdout.split()]


def test_full_batches_are_not_shared(monkeypatch):
    monkeypatch.setattr(distributed, "size", lambda: 2)
    with pytest.raises(InputError, match="2 processes share no full batch: take --batch clusters or neighbors"):
        gst.sparsify(random_graph(), sparsity=0.5, cache=False)
