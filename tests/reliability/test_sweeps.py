"""Sweeps whose first process and one of whose workers is killed end with the same rows."""

import pytest

from reliability.sweeps import ENGINES, kill_sweeps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_killed_sweeps_go_on_to_the_same_rows(engine, tmp_path):
    found = kill_sweeps(engine, 2, tmp_path)
    if "skipped" in found:
        pytest.skip(found["skipped"])
    assert found["kills"] == {"first": 1, "worker": 1}
    assert (found["told"], found["left_processes"]) == ([], 0)
