import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_random_calls_end_in_one_line_and_a_known_code():
    """In a process of its own: its forks must be of one that has trained nothing."""
    paths = os.pathsep.join([str(TESTS), str(TESTS / "methods"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "reliability", "calls", "--calls", "60", "--seed", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    found = json.loads(done.stdout)["calls"]
    slow = [seen for seen in found["wrong"] if seen["faults"] != ["hang"]]  # seconds are for make reliability
    assert not slow, json.dumps(slow, indent=2)
    assert found["codes"]["0"] and found["codes"]["2"]
