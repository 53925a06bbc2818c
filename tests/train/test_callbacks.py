import logging
import subprocess
import sys

import pytest

import gst
from graphs import random_graph
from gst.storage.cache import Cache

FEW = {"hidden": 4, "anchor_epochs": 2, "sparse_epochs": 3, "cache": False}


class Events(gst.Callback):
    def __init__(self):
        self.seen = []

    def on_start(self, settings):
        self.seen.append(("start", settings["method"], settings["sparsity"], settings["hidden"]))

    def on_epoch(self, progress):
        self.seen.append((progress.phase, progress.epoch))

    def on_end(self, result):
        self.seen.append(("end", result.metrics["edges_kept"]))

    def on_error(self, error):
        self.seen.append(("error", type(error).__name__))


def fit(callbacks, **given):
    return gst.sparsify(random_graph(), "gst", sparsity=0.5, **{**FEW, **given}, callbacks=callbacks)


def test_a_callback_sees_start_epochs_and_end_in_order():
    events, epochs = Events(), []
    result = fit([events, epochs.append])
    assert events.seen[0] == ("start", "gst", 0.5, 4)
    assert events.seen[-1] == ("end", result.metrics["edges_kept"])
    assert events.seen[1:-1] == [(step.phase, step.epoch) for step in epochs]
    assert result.history == tuple(epochs)
    assert [step.epoch for step in result.history if step.phase == "anchor"] == [1, 2]


def test_an_error_is_told_and_raised():
    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    events = Events()
    with pytest.raises(KeyboardInterrupt):
        fit([events, stop])
    assert events.seen == [("start", "gst", 0.5, 4), ("anchor", 1), ("anchor", 2), ("error", "KeyboardInterrupt")]


@pytest.mark.parametrize("wrong", [3, [3], gst.Callback, "text"])
def test_what_is_no_callback_is_refused_before_any_work(wrong):
    with pytest.raises(gst.InputError, match="callbacks holds"):
        gst.GST(sparsity=0.5, callbacks=wrong)


def test_the_logger_tells_beginning_phases_and_end(caplog):
    with caplog.at_level("INFO", logger="gst"):
        result = fit(())
    texts = [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} == {"gst"} and {r.levelname for r in caplog.records} == {"INFO"}
    assert texts[0].startswith("fit gst: dataset ") and "sparsity 0.5" in texts[0] and texts[-1] == f"done: {result!r}"
    phases = list(dict.fromkeys(step.phase for step in result.history))
    assert [text.split()[1].rstrip(":") for text in texts[1:-1]] == phases and "anchor" in phases


def test_at_debug_the_logger_has_every_epoch_and_the_cache(caplog, tmp_path):
    def lines(start):
        caplog.clear()
        with caplog.at_level("DEBUG", logger="gst"):
            result = fit((), cache=Cache(tmp_path))
        found = [record.getMessage() for record in caplog.records]
        assert sum(text.startswith("anchor ") for text in found) == len(
            [s for s in result.history if s.phase == "anchor"]
        )
        return [text for text in found if text.startswith(start)]

    assert any(text.endswith("is not there yet") for text in lines("cache: anchor"))
    again = lines("cache: anchor")
    assert again and all(text.endswith(" read") for text in again)


def test_the_logger_has_an_error_that_ends_a_fit(caplog):
    def stop(progress):
        raise KeyboardInterrupt

    with caplog.at_level("INFO", logger="gst"), pytest.raises(KeyboardInterrupt):
        fit(stop)
    assert caplog.records[-1].getMessage().startswith("ended early: KeyboardInterrupt")


def test_a_fit_prints_nothing_unless_asked():
    code = """
import gst, logging
{setup}
data = gst.load("synthetic:nodes=60,classes=2", degree=4)
gst.sparsify(data, "random", keep=50, hidden=4, anchor_epochs=1, sparse_epochs=1, cache=False)
"""
    said = {}
    for setup in ("pass", "logging.basicConfig(level='INFO')"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(setup=setup)], capture_output=True, text=True, check=True
        )
        assert done.stdout == ""
        said[setup] = done.stderr
    silent, heard = said.values()
    assert silent == "" and "INFO:gst:fit random" in heard and "INFO:gst:done" in heard
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("gst").handlers)
