"""The comparison used by all trials sees a single bit, and says where."""

import torch

from reliability.alike import differences, untimed


def test_differences_are_named():
    expected = {"metrics": {"test": 81.5, "val": 80.0}, "mask": torch.tensor([True, False]), "rounds": [1, 2]}
    assert differences(expected, expected) == []
    actual = {"metrics": {"test": 81.0, "more": 1}, "mask": torch.tensor([True, True]), "rounds": [1, 3]}
    assert sorted(differences(actual, expected)) == [
        "mask: 1 of 2 values differ, the first at 1: True, not False",
        "metrics.more is unexpected",
        "metrics.test: 81.0, not 81.5",
        "metrics.val is missing",
        "rounds.1: 3, not 2",
    ]


def test_one_bit_is_seen_and_nan_equals_itself():
    one = torch.tensor([0.0, float("nan"), 1.0])
    assert differences(one, one.clone()) == [] and differences(float("nan"), float("nan")) == []
    assert differences(one * torch.tensor([-1.0, 1.0, 1.0]), one)
    assert differences(torch.nextafter(one, one + 1), one)
    assert differences(one.double(), one) == [": [3] torch.float64, not [3] torch.float32"]
    assert differences(1, 1.0) and differences([1], [1, 1]) and differences(None, 0)


def test_clocks_are_left_out_everywhere():
    assert untimed({"a": [{"seconds": 1, "b": 2}], "dense_ms": 3}) == {"a": [{"b": 2}]}
