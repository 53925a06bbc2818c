"""A killed writer loses nothing that was acknowledged."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_engine import backbone
from test_living import Mirror, assert_same, cut

import gst
from graphs import random_graph
from gst import InputError

WRITER = """
import random, sys
from test_durable import changes, make
engine = make().engine(updates=True)
engine.keep_journal(sys.argv[1])
for change in changes(10_000)[engine.version:]:
    engine.update(**change)
    print(engine.version, flush=True)
"""


def make():
    return cut(random_graph(nodes=40, edges=90), backbone("gcn", 5))


def changes(count):
    mirror, rng = Mirror(random_graph(nodes=40, edges=90), True), random.Random(7)
    return [mirror.random_change(rng, 5, 2) for _ in range(min(count, 400))]


def test_an_engine_goes_on_with_its_journal(tmp_path):
    path, steps = tmp_path / "journal", changes(30)
    engine = make().engine(updates=True)
    assert engine.keep_journal(path) == 0
    for change in steps[:20]:
        engine.update(**change)
    with pytest.raises(InputError, match="add has node 1000"):
        engine.update(add=[(0, 1000)])  # what is refused is not in the journal
    saved = engine.save(tmp_path / "engine.safetensors")
    before = engine.version
    for change in steps[20:]:
        engine.update(**change)
    with pytest.raises(InputError, match="in use"):
        make().engine(updates=True).keep_journal(path)
    engine.close()
    again = make().engine(updates=True)
    assert again.keep_journal(path) == engine.version == before + 10
    assert_same(engine, again)
    again.close()
    later = gst.load_engine(saved)
    assert later.keep_journal(path) == 10  # the others are in the file
    assert_same(engine, later)
    later.close()
    with pytest.raises(InputError, match="belongs to another run"):
        cut(random_graph(nodes=40, edges=90), backbone("sage", 5)).engine(updates=True).keep_journal(path)
    with pytest.raises(InputError, match="updates=True"):
        make().engine().keep_journal(path)


def test_a_killed_process_loses_nothing_acknowledged(tmp_path):
    path, here = tmp_path / "journal", Path(__file__).parent
    paths = [str(here), str(here.parents[1]), str(here.parents[1] / "methods")]
    code = f"import sys; sys.path[:0] = {paths!r}" + WRITER
    acknowledged = 0
    for count in (40, 25):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
            for _ in range(count):
                acknowledged = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        engine = make().engine(updates=True)
        made = engine.keep_journal(path)
        engine.close()
        assert made in (acknowledged, acknowledged + 1)  # one may have been on disk but not yet acknowledged
        direct = make().engine(updates=True)
        for change in changes(made)[:made]:
            direct.update(**change)
        assert_same(engine, direct)
