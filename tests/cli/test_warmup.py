"""``gst warmup`` leaves no kernel uncompiled."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import gst
from gst.base import jit

FOLDERS = [
    str(Path(gst.__file__).parents[1]),
    str(Path(__file__).parents[1]),
]  # the gst that is tested, and these tests
PROGRAM = """
import sys
from gst.__main__ import main
from cli.test_warmup import unused
try:
    main()
except SystemExit as stopped:
    print(stopped.code, unused(), file=sys.stderr)
"""


def unused():
    """Kernels that were neither called nor compiled for others in this process."""
    names = []
    for module in pkgutil.walk_packages(gst.__path__, "gst."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                ours = isinstance(value, Dispatcher) and value.__module__ == module.name
                ours = ours and value.targetoptions.get("inline") != "always"  # such are compiled in their callers only
                if ours and isinstance(value._cache, jit._Cache) and not value.signatures:
                    names.append(f"{module.name}.{name}")
    return names


@pytest.mark.slow
def test_warmup_compiles_every_kernel(tmp_path):
    """With an empty cache; a second time it finds all there."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(FOLDERS)}
    for again in (False, True):
        command = [sys.executable, "-c", PROGRAM, "warmup", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
        facts = json.loads(done.stdout)
        code, _, left = done.stderr.splitlines()[-1].partition(" ")
        assert code == "0" and (again or left == "[]"), done.stderr  # helpers are only seen when callers are compiled
        assert (facts["compiled"] == 0) is again and facts["folder"] == str(tmp_path)
