"""Output files named by -o: nothing is replaced without --force, and only regular files ever are."""

import os
import stat
from pathlib import Path

import pytest

import gst
from gst.base.errors import InputError
from gst.cli.main import load_commands
from gst.lab.bench.record import write_record
from gst.lab.bench.rows import Row, read_csv, write_csv
from gst.storage import files
from gst.storage.export import export
from gst.storage.lock import RECORD, Lock
from reliability.recording import record_together
from reliability.saving import FIXTURES, killed_at

ROW = Row("rq1", "quick", "Cora", "gcn", "scan", 0.1, 3, key="k", dense_test=1.0, test=1.0)
RUN = FIXTURES / "run-format-2"


@pytest.fixture(params=["graph", "compiled", "report"])
def command(request, tmp_path):
    """A command with -o, without the file name."""
    write_csv(tmp_path / "rows.csv", [ROW])
    return {
        "graph": ["export", RUN, "--to", "csv", "-o"],
        "compiled": ["export", RUN, "--layout", "natural", "-o"],
        "report": ["report", tmp_path / "rows.csv", "-o"],
    }[request.param]


def test_a_file_is_replaced_only_with_force(call, command, tmp_path):
    target = tmp_path / "new" / "file"
    assert call(*command, target)[0] == 0
    written = target.read_bytes()
    target.write_bytes(b"mine")
    code, out, err = call(*command, target)
    assert (code, out) == (2, "") and "--force" in err and err.count("\n") == 1
    assert target.read_bytes() == b"mine"
    assert call(*command, target, "--force")[0] == 0
    assert len(target.read_bytes()) == pytest.approx(len(written), rel=0.01)
    assert [path.name for path in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_links_devices_pipes_and_folders_are_never_replaced(call, command, tmp_path, force):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    kinds = {name: (tmp_path / name).lstat() for name in ("link", "nowhere", "folder", "pipe")}
    for name in (*kinds, "/dev/null", "/dev/stdout"):
        code, out, err = call(*command, tmp_path / name, *force)
        assert (code, out) == (2, "") and err.count("\n") == 1 and "cannot write" in err
    assert call(*command, "", *force)[0] == 2
    for name, before in kinds.items():
        after = (tmp_path / name).lstat()
        assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert (tmp_path / "file").read_text() == "mine" and not (tmp_path / "missing").exists()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_every_output_of_the_command_line_has_a_force():
    for name, command in load_commands().items():
        options = {option for parameter in command.params for option in parameter.opts}
        files = {option for parameter in command.params if parameter.metavar == "PATH" for option in parameter.opts}
        assert "--force" in options or not files & {"-o", "--output"}, name


def test_python_writes_through_no_link_either(tmp_path):
    result = gst.Result.load(RUN)
    (tmp_path / "link").symlink_to("file")
    compiled = result.compile("natural")
    for write in (
        lambda path: export(result.graph, "csv", path),
        compiled.save,
        lambda path: files.write_json(path, {}),
    ):
        with pytest.raises(InputError, match="symbolic link"):
            write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()


def test_a_failed_write_leaves_no_folder(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match="No space left"):
        files.write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_processes_that_record_together_lose_nothing(tmp_path):
    assert record_together(tmp_path / "results", 2, 15) == {"rows": 30, "lost": 0, "failed": 0, "left": 0}


def test_a_record_is_not_locked_by_a_dead_process(tmp_path):
    assert killed_at(2, lambda: Lock(tmp_path, RECORD))
    assert killed_at(9, lambda: write_record(tmp_path, [ROW]))
    write_record(tmp_path, [ROW])
    assert read_csv(tmp_path / "rq1.csv") == [ROW]


FOREIGN = {"is no record": "a,b\n1,2\n", "column 'mine'": None}


@pytest.mark.parametrize("line", FOREIGN)
def test_a_foreign_record_is_refused_before_any_work(call, tmp_path, line):
    path = tmp_path / "rq1.csv"
    write_csv(path, [ROW])
    first, *rest = path.read_text().splitlines()
    path.write_text(FOREIGN[line] or "\n".join([f"{first},mine", *(f"{row},words" for row in rest)]) + "\n")
    before = path.read_bytes()
    code, _, err = call("bench", "rq1", "--profile", "smoke", "--db", tmp_path / "a.db", "--record", tmp_path)
    assert code == 2 and line in err and err.count("\n") == 1
    with pytest.raises(InputError):
        write_record(tmp_path, [ROW])
    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == ["rq1.csv"]
