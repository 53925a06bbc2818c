"""Runs in threads give the bits of one alone: beside the same, beside others, beside a neighbour, and resumed."""

import random

import pytest
import torch

from reliability.alike import differences
from reliability.threads import CALLS, MODEL, resumed, run, together


@pytest.mark.parametrize("name", CALLS)
def test_two_at_once_beside_a_neighbour_that_draws(name):
    torch.manual_seed(0)
    wanted, weights = run(name), {name: value.clone() for name, value in MODEL.state_dict().items()}
    for found in together([name, name], 2):
        assert differences(found, wanted) == []
    assert differences(dict(MODEL.state_dict()), weights) == []


def test_unlike_runs_at_once():
    names = random.Random(0).sample(list(CALLS), len(CALLS))
    wanted = {name: run(name) for name in names}
    for name, found in zip(names, together(names, 4), strict=True):
        assert differences(found, wanted[name], name) == []


@pytest.mark.parametrize("name", CALLS)
def test_resumed_beside_a_neighbour_that_draws(name, tmp_path):
    assert differences(resumed(name, tmp_path, 7), run(name)) == []
