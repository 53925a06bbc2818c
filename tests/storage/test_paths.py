from pathlib import Path

import pytest

from gst.base.errors import InputError
from gst.storage.paths import data_root, mirror_root


def test_argument_then_variable_then_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("GST_MIRROR", raising=False)
    monkeypatch.setenv("GST_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root() == tmp_path / "variable"
    monkeypatch.setenv("GST_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root().name == "gst"
    assert data_root("~/graphs") == Path.home() / "graphs"


def test_the_mirror_is_never_the_root(monkeypatch, tmp_path):
    monkeypatch.setenv("GST_MIRROR", str(tmp_path))
    assert mirror_root() == tmp_path
    for root in (tmp_path, tmp_path / "below"):
        with pytest.raises(InputError, match=r"lies in .GST_MIRROR, which is only read"):
            data_root(root)


def test_circular_links_and_unknown_users(monkeypatch, tmp_path):
    monkeypatch.setenv("GST_MIRROR", str(tmp_path / "mirror"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert data_root(tmp_path / "loop") == tmp_path / "loop"
    with pytest.raises(InputError, match="there is no such user"):
        data_root("~no-such-user/x")
