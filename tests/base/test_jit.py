"""The cache of compiled kernels: a damaged file counts as absent."""

import importlib.util
import os
import pkgutil
import random

import numba
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import gst
from gst.base import jit
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


def test_code_of_an_earlier_source_is_not_run(kernel, tmp_path):
    """A process killed between writing index and code leaves a new index that points to the old code."""
    assert kernel(2)(21) == 42
    (code,) = (path for path in files(tmp_path) if path.suffix == ".nbc")
    old = code.read_bytes()
    assert kernel(10)(21) == 210
    code.write_bytes(old)
    assert kernel(10)(21) == 210


def test_an_unwritable_cache_is_ignored(kernel, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(jit._Files, "_save_index", full)
    assert kernel()(21) == 42
    monkeypatch.setattr(jit.FunctionCache, "__init__", _nowhere)
    assert kernel()(21) == 42


def _nowhere(self, function):
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
