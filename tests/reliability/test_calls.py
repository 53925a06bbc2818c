import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_random_calls_end_in_one_line_and_a_known_code():
    """In a separate process: it must not have trained before it forks."""
    paths = os.pathsep.join([str(TESTS), str(TESTS / "methods"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "reliability", "calls", "--calls", "60", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    summary = json.loads(done.stdout)["calls"]
    wrong = [seen for seen in summary["wrong"] if seen["faults"] != ["hang"]]  # only make reliability checks times
    assert not wrong, json.dumps(wrong, indent=2)
    assert summary["codes"]["0"] and summary["codes"]["2"]
