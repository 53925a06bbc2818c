"""The examples work as they are; those that need an extra are left out without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "needs"), [("own_model", None), ("lightning_model", "lightning")])
def test_example(name, needs, tmp_path):
    if needs is not None:
        pytest.importorskip(needs)
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert list(tmp_path.iterdir()) == []
