import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from gst.cli import main as cli

collect_ignore = ["example_package"]  # to import it is to register what it adds

settings.register_profile("gst", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("gst")


@pytest.fixture(autouse=True)
def own_data_root(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's own cache; those of real data share one root."""
    monkeypatch.setenv("GST_DATA", os.environ.get("GST_TEST_DATA") or str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture
def call(monkeypatch, capsys):
    """Runs ``gst …`` in this process; gives exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["gst", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        streams = capsys.readouterr()
        return stopped.value.code, streams.out, streams.err

    return run
