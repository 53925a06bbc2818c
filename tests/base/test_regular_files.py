"""Only regular files are opened, and holes do not count as content."""

import os
import signal
import socket
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

import gst
from gst.base import memory
from gst.base.errors import InputError
from gst.base.memory import check_claim, check_size
from gst.base.regular_files import held_bytes, open_regular, require_regular
from gst.cli.main import app
from gst.data.nodes import read_split
from gst.data.tables import read_array, read_npz, read_sparse, read_table
from gst.lab.bench.load import load_rows
from gst.lab.bench.record import write_record
from gst.lab.bench.rows import Row
from gst.lab.bench.store import Store
from gst.storage import files
from gst.storage.checkpoint import read_run
from gst.storage.lock import RUN, Lock

ROW = Row("rq1", "quick", "Cora", "gcn", "gst", 0.1, 3, key="k")


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def unix_socket(path):
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(f"/proc/self/fd/{folder}/{path.name}")  # the name of a socket must be short
    finally:
        os.close(folder)


KINDS = [(pipe, "is a named pipe"), (device, "is a device"), (unix_socket, "is a socket")]
KIND = pytest.mark.parametrize(("make", "message"), KINDS, ids=["pipe", "device", "socket"])


@contextmanager
def refused(message=""):
    """Expects an InputError of one line; fails instead of blocking for ever if a pipe is opened."""

    def stop(*_):
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    try:
        with pytest.raises(InputError, match=message) as error:
            yield
        assert "\n" not in str(error.value) and len(str(error.value)) <= 300
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@KIND
def test_only_regular_files_are_opened(tmp_path, make, message):
    make(tmp_path / "x")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    for path in (tmp_path / "x", tmp_path / "link"):
        for read in (require_regular, open_regular, held_bytes, files.read_bytes, check_size):
            with refused(message):
                read(path)


def test_folders_bad_names_and_broken_links(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "loop", "cannot read"),
        (tmp_path / "n\0l", "cannot read"),
    ):
        with refused(message):
            open_regular(path)
    (tmp_path / "real").write_bytes(b"abc")
    (tmp_path / "fine").symlink_to("real")
    with open_regular(tmp_path / "fine") as file:
        assert file.read() == b"abc"


@KIND
@pytest.mark.parametrize("name", ["x.pt", "x.npy", "x.npz", "x.csv", "x.csv.gz", "x.parquet", "x.safetensors"])
def test_every_reader_of_data(tmp_path, make, message, name):
    path = tmp_path / name
    make(path)
    readers = {
        ".pt": [gst.load],
        ".npy": [read_array],
        ".npz": [read_npz, read_sparse],
        ".safetensors": [files.read_tensors, files.read_json, gst.load_compiled],
    }
    for read in readers.get(path.suffix, [read_table, lambda path: read_split(path, 3)]):
        with refused(message):
            read(path)


@KIND
def test_folders_of_parts_runs_and_rows(tmp_path, make, message):
    data, run, rows = tmp_path / "data", tmp_path / "run", tmp_path / "rows"
    for folder in (data, run / "checkpoint", rows):
        folder.mkdir(parents=True)
    for part in ("edges.csv", "features.csv", "labels.csv"):
        (data / part).write_text("0,1\n1,0\n")
    (data / "features.csv").unlink()
    make(data / "features.csv")
    with refused(message):
        gst.load(data, split="random")
    make(run / "checkpoint" / "run.json")
    with refused(message):
        read_run(run)
    make(run / "run.json")
    with refused("run.json"):
        gst.Result.load(run)
    make(rows / "rq1.csv")
    with refused(message):
        load_rows(rows)
    with refused("cannot write"):
        write_record(rows, [ROW])


@KIND
@pytest.mark.parametrize("end", ["", "-wal", "-journal", "-shm"])
def test_stores_and_their_side_files(tmp_path, make, message, end):
    path = tmp_path / "a.db"
    if end:
        with Store(path) as store:
            store.add([ROW])
    make(tmp_path / f"a.db{end}")
    for read in (Store, load_rows):
        with refused(message):
            read(path)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--method", "random", "--sparsity", "0.5", "--dataset", "PATH.pt"],
        ["run", "--edges", "PATH.csv", "--features", "PATH.npy", "--labels", "PATH.csv", "--sparsity", "0.5"],
        ["report", "PATH.csv"],
        ["report", "--db", "PATH.db"],
        ["bench", "rq1", "--profile", "smoke", "--db", "PATH.db"],
        ["bench", "rq1", "--profile", "smoke", "--db", "new.db", "--from", "PATH.csv"],
    ],
    ids=" ".join,
)
def test_every_command(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    pipes = {name for name in command if name.startswith("PATH")}
    for name in pipes:
        pipe(tmp_path / name)
    with refused("a regular file is needed"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("new.db")} == pipes


@KIND
def test_locks(tmp_path, make, message):
    make(tmp_path / RUN)
    with refused("cannot write"):
        Lock(tmp_path)


def test_a_lock_never_writes_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / RUN).symlink_to("mine")
    with refused("cannot write"):
        Lock(tmp_path)
    assert (tmp_path / "mine").read_text() == "precious"


def test_holes_do_not_count(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"a" * 100)
    assert held_bytes(path) == 100 == check_size(path)
    os.truncate(path, 40 * 2**30)
    if held_bytes(path) == 40 * 2**30:
        pytest.skip("this file system fills holes")
    assert held_bytes(path) <= 2**20
    monkeypatch.setattr(memory, "available_memory", lambda: 2**50)
    with refused("small but would unfold to 40.0 GiB"):
        check_size(path)
    with path.open("r+b") as file:
        file.seek(2**30)
        file.write(b"b" * 2**20)
    assert 2**20 < held_bytes(path) < 2**22
    check_claim(path, 2**28)
    with refused("larger than 1 MiB"):
        check_size(path, 2**20)


def test_a_file_is_read_to_the_size_it_had(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"abcdef")
    monkeypatch.setattr(files, "check_size", lambda path, max_bytes: 3)  # it grows in the meantime
    assert files.read_bytes(path) == b"abc"
