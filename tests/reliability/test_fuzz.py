from hypothesis import given

from reliability import fuzz


def test_any_graph_and_budget_through_the_topology_methods():
    seen = fuzz.fuzz(300, "topology")
    assert seen["accepted"] > 100 and seen["refused"] > 10


def test_any_graph_and_budget_through_the_learned_methods():
    seen = fuzz.fuzz(25, "learned")
    assert seen["accepted"] and seen["refused"]


@given(fuzz.CONFIGURATIONS)
def test_any_settings_are_accepted_or_refused_in_one_line(values):
    fuzz.check_settings(values)
