import pytest

from reliability import hostile


@pytest.mark.parametrize("make", hostile.ALL, ids=lambda make: make.__name__)
def test_hostile_files_are_refused_before_they_cost_anything(make, tmp_path):
    _, mebibytes = hostile.refusal(make, tmp_path)  # only make reliability checks times
    assert mebibytes < 500, f"{mebibytes:.0f} MiB"
