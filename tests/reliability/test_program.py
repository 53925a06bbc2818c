"""The program of all trials: what it calls wrong."""

from reliability.__main__ import in_process, wrong


def test_a_trial_that_fails_itself_is_named_and_stops_no_other(capfd):
    def fails():
        raise FileNotFoundError("gone")

    summary = {"kills": in_process(fails), "record": in_process(lambda: {"lost": 1, "failed": 0})}
    assert "FileNotFoundError: gone" in capfd.readouterr().err
    assert wrong(summary) == ["kills itself", "record: lost"]
