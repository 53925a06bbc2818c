"""gst serve in a process of its own: answers, ends in peace, and survives being killed."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
import torch

import gst
from graphs import random_graph

QUICK = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}


@pytest.fixture
def folder(tmp_path):
    result = gst.sparsify(random_graph(nodes=40, edges=120), sparsity=0.5, **QUICK)
    result.save(tmp_path / "run")
    return tmp_path / "run"


@contextmanager
def serving(folder, *options):
    """A running ``gst serve``, and a function that asks it."""
    words = [sys.executable, "-m", "gst", "serve", folder, "--port", "0", *options]
    with subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True) as process:
        line = process.stderr.readline()
        place = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert place, line

        def ask(path, content):
            request = urllib.request.Request(place[0] + path, json.dumps(content).encode())
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)

        try:
            yield process, ask, line
        finally:
            process.kill()


def test_it_answers_survives_a_kill_and_ends_in_peace(folder):
    engine = gst.Result.load(folder).engine(updates=True)
    with serving(folder) as (process, ask, _):
        assert torch.allclose(torch.tensor(ask("/predict", {"nodes": [3]})["outputs"]), engine(3), atol=1e-6)
        for node in range(5):
            change = {"x": {str(node): [float(node)] * 5}, "new_nodes": [[1.0] * 5], "add": [[node, 40 + node]]}
            assert ask("/update", change)["version"] == node + 1
            engine.update(x={node: [float(node)] * 5}, new_nodes=[[1.0] * 5], add=[(node, 40 + node)])
        process.send_signal(signal.SIGKILL)
        process.wait()
    with serving(folder) as (process, ask, line):
        assert "5 changes made again" in line
        found = ask("/predict", {"nodes": list(range(45))})
        assert found["version"] == 5
        assert torch.allclose(torch.tensor(found["outputs"]), engine(range(45)), atol=1e-6)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0 and "ended" in process.stderr.read()
    with serving(folder, "--no-updates", "--products") as (_, ask, _):
        fixed = torch.tensor(ask("/predict", {"nodes": [3]})["outputs"])
        assert torch.allclose(fixed, gst.Result.load(folder).engine()(3), atol=1e-5)


def test_what_cannot_be_served_gets_one_line(folder, call, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, error = call("serve", folder, "--port", taken.getsockname()[1])
    assert code == 2 and error.count("\n") == 1 and "cannot listen on 127.0.0.1" in error
    code, _, error = call("serve", folder, "--no-updates", "--journal", "j")
    assert code == 2 and "--journal would have no effect" in error
    code, _, error = call("serve", folder.parent / "none")
    assert code == 2 and "not a run folder" in error
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, error = call("serve", folder)
    assert code == 2 and error.count("\n") == 1 and "pip install 'graph-sparse-training[serve]'" in error
