"""What a journal has acknowledged is there after any kill; a torn end is cut off, other damage is named."""

import pytest

from gst import DamagedError, InputError
from gst.storage import journal as journals
from gst.storage.journal import Journal


def written(path, count=3):
    journal = Journal(path, "run")
    for version in range(1, count + 1):
        journal.append(version, {"add": [[version, version + 1]], "x": {"3": [0.1, 1e-40]}})
    changes = journal.changes
    journal.close()
    return changes


def read(path, identity="run"):
    journal = Journal(path, identity)
    journal.close()
    return journal.changes


def test_changes_come_back_in_order(tmp_path):
    assert written(tmp_path / "j") == []
    changes = read(tmp_path / "j")
    assert [version for version, _ in changes] == [1, 2, 3]
    assert changes[1][1] == {"add": [[2, 3]], "x": {"3": [0.1, 1e-40]}}


def test_a_file_cut_anywhere_keeps_all_whole_changes(tmp_path):
    path = tmp_path / "j"
    written(path)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for size in range(ends[0], len(content) + 1):
        path.write_bytes(content[:size])
        assert len(read(path)) == sum(end <= size for end in ends) - 1
        assert path.read_bytes() == content[: max(end for end in ends if end <= size)]  # the torn end is gone
    path.write_bytes(content[: ends[1]] + b"\0" * 50)
    assert len(read(path)) == 1


def test_damage_before_the_end_is_named(tmp_path):
    path = tmp_path / "j"
    written(path)
    content = bytearray(path.read_bytes())
    content[content.index(b"add") + 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="damaged at byte"):
        read(path)
    assert path.read_bytes() == content


def test_a_journal_of_another_run_or_another_file_is_left_alone(tmp_path):
    path = tmp_path / "j"
    written(path)
    with pytest.raises(InputError, match="belongs to another run"):
        read(path, "other")
    for text in ("", "not a journal\n", "a\nb\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"journal|damaged"):
            read(path)
        assert path.read_text() == text


def test_one_writer_at_a_time(tmp_path):
    first = Journal(tmp_path / "j", "run")
    with pytest.raises(InputError, match="in use by another process"):
        Journal(tmp_path / "j", "run")
    first.close()
    read(tmp_path / "j")


def test_a_change_that_cannot_be_written_leaves_no_trace(tmp_path, monkeypatch):
    path = tmp_path / "j"
    journal = Journal(path, "run")
    journal.append(1, {})
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journals.os, "fsync", full)
        with pytest.raises(InputError, match="No space left"):
            journal.append(2, {"add": [[0, 1]]})
    assert path.read_bytes() == before
    journal.append(2, {})
    journal.close()
    assert [version for version, _ in read(path)] == [1, 2]
