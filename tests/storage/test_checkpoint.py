"""A checkpoint and its absence, a cache and its absence: siblings that answer the same calls."""

import pytest
import torch

from gst.storage.cache import BaseCache, Cache, NoCache, as_cache
from gst.storage.checkpoint import BaseCheckpoint, Checkpoint, NoCheckpoint, opened


def content(number):
    return {"x": torch.tensor([number])}, {}


@pytest.fixture(params=["folder", "none"])
def checkpoint(request, tmp_path):
    with Checkpoint(tmp_path / "run") if request.param == "folder" else NoCheckpoint() as new:
        yield new


def test_neither_sibling_is_the_other(tmp_path):
    assert not issubclass(Checkpoint, NoCheckpoint) and not issubclass(NoCheckpoint, Checkpoint)
    assert not issubclass(Cache, NoCache) and not issubclass(NoCache, Cache)
    assert issubclass(NoCheckpoint, BaseCheckpoint) and issubclass(NoCache, BaseCache)
    assert Cache(tmp_path) and not NoCache()


def test_every_call_has_an_answer(checkpoint):
    checkpoint.begin({"seed": 1})
    assert checkpoint.unfinished() is None and checkpoint.before == 0
    assert checkpoint.clock() <= checkpoint.clock()
    assert (checkpoint.folder is None) == (not checkpoint.store) == isinstance(checkpoint, NoCheckpoint)
    checkpoint.store.drop("kind")
    checkpoint.clear()


def test_a_shared_store_survives_clear_and_is_put_away_again(checkpoint):
    before = checkpoint.store
    with checkpoint.shared_store():
        assert checkpoint.store
        checkpoint.store.get("kind", {}, lambda: content(1))
        checkpoint.clear()
        assert checkpoint.store.get("kind", {}, lambda: content(2))[0]["x"].item() == 1
        checkpoint.store.drop("kind")
        assert checkpoint.store.get("kind", {}, lambda: content(2))[0]["x"].item() == 2
    assert checkpoint.store is before


def test_what_cache_and_checkpoint_arguments_mean(tmp_path, monkeypatch):
    monkeypatch.setenv("GST_DATA", str(tmp_path))
    cache = NoCache()
    assert as_cache(cache) is cache and isinstance(as_cache(False), NoCache)
    assert as_cache(True).folder == tmp_path / "anchors"
    with opened(None) as none, opened(none) as same, opened(tmp_path / "run") as new:
        assert isinstance(none, NoCheckpoint) and same is none and new.folder == tmp_path / "run"
