"""A package of somebody else adds a method, a backbone and a data set by entry points; nothing in gst names them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "example_package"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment of a process in which the example package is installed."""
    folder = tmp_path_factory.mktemp("example")
    source, site = folder / "source", folder / "site"
    shutil.copytree(EXAMPLE, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, str(source)], check=True, capture_output=True)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(environment, *command):
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_finds_all_three(environment):
    words = ["run", "--dataset", "ring:nodes=40", "--split", "random", "--method", "Shortest", "--power", "2"]
    words += ["--backbone", "plain-gcn", "--sparsity", "0.5", "--hidden", "4", "--anchor-epochs", "2"]
    words += ["--sparse-epochs", "2", "--json", "--quiet", "--no-cache"]
    result = json.loads(run(environment, "-m", "gst", *words))
    assert (result["method"], result["backbone"], result["edges_kept"]) == ("shortest", "plain-gcn", 20)
    assert result["options"] == {"power": 2.0}
    assert "shortest" in run(environment, "-m", "gst", "methods") and "ring" in run(
        environment, "-m", "gst", "datasets"
    )


def test_the_method_passes_the_exported_tester(environment):
    code = "from gst.testing import check_sparsifier; from gst_shortest import Shortest; check_sparsifier(Shortest)"
    run(environment, "-c", code)
