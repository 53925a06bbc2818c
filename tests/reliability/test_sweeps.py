"""Sweeps end with the same rows after a kill of the first process or of a worker."""

import pytest

from reliability.sweeps import ENGINES, kill_sweeps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_killed_sweeps_go_on_to_the_same_rows(engine, tmp_path):
    outcome = kill_sweeps(engine, 2, tmp_path)
    if "skipped" in outcome:
        pytest.skip(outcome["skipped"])
    assert outcome["kills"] == {"first": 1, "worker": 1}
    assert (outcome["details"], outcome["left_processes"]) == ([], 0)
