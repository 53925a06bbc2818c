"""The command line limits all libraries to common instructions, for the same digits on every processor."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gst.base import processor

COMMON = processor.has_features(Path("/proc/cpuinfo"))


def python(code, **environment):
    inherited = {name: value for name, value in os.environ.items() if name not in processor.PORTABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**inherited, **environment}
    )
    return done.stdout.split()


@pytest.mark.skipif(not COMMON, reason="this processor does not have the common instructions")
def test_the_libraries_are_limited_before_they_are_loaded():
    code = "import gst; gst.portable(); import torch, numba; "
    code += "print(torch.backends.cpu.get_cpu_capability(), numba.config.CPU_NAME)"
    assert python(code) == ["AVX2", "haswell"]
    assert python(code, ATEN_CPU_CAPABILITY="default")[0] == "DEFAULT", "what the user has set stays"


@pytest.mark.skipif(not COMMON, reason="this processor does not have the common instructions")
def test_the_command_line_is_portable():
    code = "import sys; sys.argv = ['gst', 'methods', '--json']; from gst.__main__ import main\n"
    code += "try: main()\nexcept SystemExit: pass\nimport torch; print(torch.backends.cpu.get_cpu_capability())"
    assert python(code)[-1] == "AVX2"


def test_import_gst_loads_no_torch_and_a_late_call_is_refused():
    code = "import gst, sys; print('torch' in sys.modules); import torch\n"
    code += "try: gst.portable()\nexcept gst.InputError as error: print(error)"
    output = python(code)
    assert output[0] == "False" and "late:" in output


@pytest.mark.parametrize("text", ["", "flags : sse2 fma\n", "flags : sse2 avx2\n"])
def test_other_processors_are_left_alone(text, tmp_path):
    (tmp_path / "cpuinfo").write_text(text)
    assert not processor.has_features(tmp_path / "cpuinfo")
    assert not processor.has_features(tmp_path / "missing")


def test_every_public_name_exists():
    import gst  # noqa: PLC0415

    assert all(getattr(gst, name) is not None for name in gst.__all__)
    assert json.loads(json.dumps(sorted(gst.__dir__()))) == sorted(gst.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gst.nothing
