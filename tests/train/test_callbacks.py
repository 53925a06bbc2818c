import pytest

import gst
from graphs import random_graph

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
