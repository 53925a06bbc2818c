"""The cache of compiled kernels: a damaged file counts as absent."""

import importlib.util
import os
import pkgutil
import random
import sys
from functools import partial
from pathlib import Path

import numba
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import gst
from gst.base import jit
from gst.graph import select
from gst.methods.greedy import answers, arrays, attention, kernels, norms, refresh, walk
from reliability.kernels import HARM, files, start

SOURCE = """
from gst.base.jit import njit

@njit(cache=True)
def twice(x):
    return {factor} * x
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Each call loads the same function anew, as a fresh process would."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would not see a change within one second
    path = tmp_path / "small.py"

    def begin(factor=2):
        path.write_text(SOURCE.format(factor=factor))
        spec = importlib.util.spec_from_file_location("small", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    return begin


def hits(function):
    return sum(function.stats.cache_hits.values())


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_file_counts_as_absent_and_is_written_anew(kernel, tmp_path, harm, suffix):
    assert kernel()(21) == 42
    (path,) = (path for path in files(tmp_path) if path.suffix == suffix)
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(4 if harm.__name__ in ("cut", "flipped") else 1):
        harm(path, rng)
        damaged = kernel()
        assert damaged(21) == 42 and hits(damaged) == 0
        again = kernel()
        assert again(21) == 42 and hits(again) == 1
        assert len(path.read_bytes()) == len(whole)


def test_the_contents_of_the_source_count_and_not_its_time(kernel, tmp_path):
    assert kernel()(21) == 42
    os.utime(tmp_path / "small.py", (0, 0))
    touched = kernel()
    os.utime(tmp_path / "small.py", (0, 0))
    assert touched(21) == 42 and hits(touched) == 1
    other = kernel(10)
    assert other(21) == 210 and hits(other) == 0
    back = kernel(2)  # two versions side by side do not disturb each other
    assert back(21) == 42 and hits(back) == 1


def test_code_of_another_source_is_not_run(kernel, tmp_path):
    """Even if a file was renamed or restored by hand: code says which source it was compiled from."""
    assert kernel(2)(21) == 42
    (code,) = (path for path in files(tmp_path) if path.suffix == ".nbc")
    assert kernel(10)(21) == 210
    (other,) = (path for path in files(tmp_path) if path.suffix == ".nbc" and path != code)
    other.write_bytes(code.read_bytes())
    assert kernel(10)(21) == 210


def test_the_stamp_of_a_kernel_covers_all_that_it_is_compiled_from(monkeypatch, tmp_path):
    stamp = partial(jit.source_stamp, walk.walk.py_func)
    before = stamp()
    assert stamp() == before and stamp({"fastmath": True}) != before
    for module in (answers, arrays, attention, kernels, norms, refresh, walk):
        changed = tmp_path / "changed.py"
        changed.write_bytes(Path(module.__file__).read_bytes() + b"#")
        with monkeypatch.context() as patched:
            patched.setattr(module, "__file__", str(changed))
            assert stamp() != before, module.__name__
    with monkeypatch.context() as patched:  # a constant, wherever it was imported from
        patched.setattr(kernels, "SYMMETRIC", 3)
        assert stamp() != before
    assert stamp() == before
    assert jit.source_stamp(select._key.py_func) == jit.source_stamp(select._mask.py_func)
    monkeypatch.setattr(select, "__file__", str(changed))
    assert stamp() == before  # of no concern to this kernel


def test_code_lies_in_the_users_cache_folder_or_beside_the_source(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(jit, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "source" / "jit.py"))
    assert jit.folder() == str(tmp_path / "gst" / "kernels")
    (tmp_path / "gst" / "kernels").mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)  # somebody else's folder
    assert jit.folder() == str(tmp_path / "source" / "__pycache__")


def test_old_code_of_other_versions_is_removed(kernel, tmp_path):
    assert kernel(2)(21) == 42
    old = files(tmp_path)
    assert kernel(3)(21) == 63 and set(old) < set(files(tmp_path))
    for path in old:
        os.utime(path, (0, 0))
    (tmp_path / "cache" / "mine.nbi").write_text("")
    assert kernel(4)(21) == 84 and not set(old) & set(files(tmp_path))
    assert (tmp_path / "cache" / "mine.nbi").exists() and len(files(tmp_path)) == 5


def test_listeners_hear_of_every_compilation_and_of_nothing_else(kernel, monkeypatch):
    heard = []
    monkeypatch.setattr(jit, "listeners", [heard.append])
    assert kernel()(21) == 42 and heard == ["twice"]
    assert kernel()(21) == 42 and heard == ["twice"]


def test_an_unwritable_cache_is_ignored(kernel, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(jit._Files, "_save_index", full)
    assert kernel()(21) == 42
    monkeypatch.setattr(jit.FunctionCache, "__init__", _nowhere)
    assert kernel()(21) == 42


def _nowhere(self, function, *args):
    raise RuntimeError("cannot cache function: no locator available")


def test_every_kernel_has_this_cache():
    for module in pkgutil.walk_packages(gst.__path__, "gst."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher) and not isinstance(value._cache, NullCache):
                assert isinstance(value._cache, jit._Cache), f"{module.name}.{name}"


def test_a_process_starts_with_a_truncated_cache(tmp_path):
    expected = start(tmp_path)
    assert expected.returncode == 0, expected.stderr
    for number, path in enumerate(files(tmp_path)):
        HARM[number % 2](path, random.Random(number))
    again = start(tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == expected.stdout
