import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import gst
from graphs import random_graph
from gst.base import memory
from gst.base.errors import InputError
from gst.base.memory import available_memory, check_claim, check_memory
from gst.train.footprint import training_memory
from gst.train.settings import Training

GIB = 2**30


@pytest.mark.parametrize(
    ("nodes", "degree", "features", "hidden", "backbone", "measured"),  # MiB above the rest of the process
    [
        (20_000, 10, 64, 128, "gcn", 157),
        (20_000, 10, 64, 512, "gcn", 231),
        (20_000, 50, 64, 128, "gcn", 618),
        (100_000, 10, 64, 64, "gcn", 677),
        (20_000, 10, 64, 128, "gat", 219),
        (20_000, 50, 64, 128, "gat", 815),
        (20_000, 10, 64, 128, "gin", 161),
    ],
)
def test_estimates_are_within_a_factor_of_two_of_measured_peaks(nodes, degree, features, hidden, backbone, measured):
    estimate = training_memory(nodes, nodes * degree, features, 5, backbone, Training(hidden=hidden)) / 2**20
    assert measured / 2 < estimate < 2 * measured


@pytest.mark.parametrize(
    ("nodes", "edges", "features", "measured"),  # GiB above imports and data, by benchmarks/scale.py
    [(169_343, 1_166_243, 128, 1.05), (338_686, 2_332_486, 128, 1.9), (2_449_029, 61_859_140, 100, 9.9)],
)
def test_estimates_for_mini_batches(nodes, edges, features, measured):
    estimate = training_memory(nodes, 2 * edges, features, 40, "cluster-gcn", Training(hidden=128), "clusters") / GIB
    assert measured / 2 < estimate < 2 * measured


def test_a_wide_masker_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("gst.base.memory.available_memory", lambda: GIB)
    data, run = random_graph(nodes=2000, edges=4000), {"sparsity": 0.5, "hidden": 8, "cache": False}
    with pytest.raises(InputError, match="training on this graph needs about"):
        gst.sparsify(data, "gst", masker_hidden=2**20, anchor_epochs=1, sparse_epochs=1, **run)
    gst.sparsify(data, "gst", masker_hidden=128, anchor_epochs=1, sparse_epochs=1, **run)


def test_cora_is_small_and_a_billion_nodes_are_not():
    assert training_memory(2708, 10_556, 1433, 7, "gcn", Training()) < GIB / 4
    assert training_memory(10**9, 10**10, 100, 10, "gcn", Training()) > 1000 * GIB


def test_too_little_memory_is_refused_with_a_remedy_before_any_work(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: GIB)
    data = random_graph(nodes=40, edges=120)
    with pytest.raises(InputError, match=r"needs about .* GiB of memory, 1.0 GiB are free: a smaller hidden"):
        gst.sparsify(data, sparsity=0.5, hidden=10**7, cache=False)
    check_memory(GIB, "just enough", "nothing")
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    check_memory(10**15, "unknown", "nothing")


def test_claims_of_files(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(2**20))
    check_claim(path, 2**28)
    with pytest.raises(InputError, match="is small but would unfold to"):
        check_claim(path, GIB)


def test_available_memory_is_the_minimum_of_all_limits(monkeypatch):
    free = available_memory()
    assert free is None or free > 0
    for name, limit in (("_machine_memory", 3 * GIB), ("free_group_memory", 2 * GIB), ("_address_space", GIB)):
        monkeypatch.setattr(memory, name, lambda limit=limit: limit)
    assert available_memory() == GIB
    monkeypatch.setattr(memory, "_address_space", lambda: None)
    assert available_memory() == 2 * GIB


RESIDENT = """
import os
import numpy as np
from gst.base.memory import reuse_memory
def pages():
    return int(open("/proc/self/statm").read().split()[1])
{call}
array = np.ones(2**23)
before = pages()
del array
print((before - pages()) * os.sysconf("SC_PAGESIZE"))
"""


def test_freed_memory_is_kept_for_reuse():
    if platform.libc_ver()[0] != "glibc" or not Path("/proc/self/statm").exists():
        pytest.skip("needs glibc and /proc")
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    returned = [
        int(subprocess.check_output([sys.executable, "-c", RESIDENT.format(call=call)], env=quiet))
        for call in ("", "reuse_memory()")
    ]
    assert returned[0] >= 2**26 > 2**22 > returned[1]
