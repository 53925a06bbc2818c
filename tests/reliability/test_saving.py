"""One result replaces another atomically."""

import pytest

import gst
from gst.base.errors import InputError
from gst.storage import files
from reliability.saving import kill_saves, killed_at, load_beside_a_writer, numbered, wrong_saves


@pytest.mark.parametrize("start", ["nothing", "format 2", "format 3"])
def test_a_kill_at_any_position_leaves_the_old_result_or_the_new_one(tmp_path, start):
    seen = kill_saves(tmp_path, start)
    assert wrong_saves(start, seen) == 0, seen
    assert seen["new"] > 3 and seen["nothing" if start == "nothing" else "old"] > 10


def test_readers_beside_a_writer_always_see_one_complete_result(tmp_path):
    seen = load_beside_a_writer(tmp_path / "run", 2000)
    assert seen == {"loads": 2000, "failed": 0, "mixed": 0, "results_seen": 3}


def test_a_missing_file_is_an_error_not_an_endless_loop(tmp_path):
    folder = numbered(1).save(tmp_path / "run")
    (path,) = folder.glob("model-*")
    path.unlink()
    with pytest.raises(InputError, match=r"no such file: .*model-"):
        gst.Result.load(folder)


def test_only_temporary_files_of_dead_writers_are_swept(tmp_path):
    with files._staged(tmp_path, b"alive") as temporary:
        files.sweep(tmp_path)
        assert temporary.read_bytes() == b"alive"
        assert killed_at(3, lambda: files.write_bytes(tmp_path / "file", b"dead"))
        assert len(list(tmp_path.iterdir())) == 2
        files.sweep(tmp_path)
        assert list(tmp_path.iterdir()) == [temporary]


def test_foreign_files_with_the_name_of_a_part_stay(tmp_path):
    folder = numbered(1).save(tmp_path / "run")
    mine = folder / f"model-{'0' * 32}.safetensors"
    mine.write_bytes(b"weights of mine")
    numbered(2).save(folder)
    assert mine.read_bytes() == b"weights of mine"
