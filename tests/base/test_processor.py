"""The command line gives the same digits whatever the processor: it asks all libraries for common instructions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gst.base import processor

COMMON = processor.common(Path("/proc/cpuinfo"))


def python(code, **environment):
    words = {name: value for name, value in os.environ.items() if name not in processor.PORTABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**words, **environment}
    )
    return done.stdout.split()


@pytest.mark.skipif(not COMMON, reason="this processor does not have the common instructions")
def test_the_libraries_are_told_before_they_are_loaded():
    code = "import gst; gst.portable(); import torch, numba; "
    code += "print(torch.backends.cpu.get_cpu_capability(), numba.config.CPU_NAME)"
    assert python(code) == ["AVX2", "haswell"]
    assert python(code, ATEN_CPU_CAPABILITY="default")[0] == "DEFAULT", "what the user has set stays"


@pytest.mark.skipif(not COMMON, reason="this processor does not have the common instructions")
def test_the_command_line_is_portable():
    code = "import sys; sys.argv = ['gst', 'methods', '--json']; from gst.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: pass\nimport torch; print(torch.backends.cpu.get_cpu_capability())"
    assert python(code)[-1] == "AVX2"


def test_import_gst_loads_no_torch_and_tells_when_it_is_too_late():
    code = "import gst, sys; print('torch' in sys.modules); import torch\n"
    code += "try: gst.portable()\nexcept gst.InputError as error: print(error)"
    found = python(code)
    assert found[0] == "False" and "late:" in found


@pytest.mark.parametrize("text", ["", "flags : sse2 fma\n", "flags : sse2 avx2\n"])
def test_other_processors_are_left_alone(text, tmp_path):
    (tmp_path / "cpuinfo").write_text(text)
    assert not processor.common(tmp_path / "cpuinfo")
    assert not processor.common(tmp_path / "missing")


def test_every_public_name_is_there():
    import gst  # noqa: PLC0415

    assert all(getattr(gst, name) is not None for name in gst.__all__)
    assert json.loads(json.dumps(sorted(gst.__dir__()))) == sorted(gst.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gst.nothing
