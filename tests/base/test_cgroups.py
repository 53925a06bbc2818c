"""Control groups of both versions, nested in each other and in containers, as files in a folder."""

from pathlib import Path

import pytest

from gst.base import memory
from gst.base.cgroups import group_room

GIB = 2**30


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def process(place: Path, groups: str, *mounts: str) -> Path:
    write(place / "proc", cgroup=groups, mountinfo="\n".join(mounts))
    return place / "proc"


def unified(place: Path, root: str = "/") -> str:
    return f"42 31 0:38 {root} {place / 'fs'} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"


def test_the_tightest_of_all_groups_above_counts(tmp_path):
    proc = process(
        tmp_path, "0::/user.slice/user-7.slice/job.scope", "1 0 0:1 / /proc rw - proc proc rw", unified(tmp_path)
    )
    top = tmp_path / "fs"
    write(top / "user.slice", memory__max="max", memory__current=9 * GIB)
    write(top / "user.slice/user-7.slice", memory__max=4 * GIB, memory__current=3 * GIB)
    write(top / "user.slice/user-7.slice/job.scope", memory__max=8 * GIB, memory__current=GIB)
    write(top / "other.slice", memory__max=1, memory__current=1)
    assert group_room(proc) == GIB
    write(top / "user.slice/user-7.slice/job.scope", memory__high=int(1.5 * GIB))
    assert group_room(proc) == GIB // 2


def test_pages_of_files_that_can_be_had_back_are_free(tmp_path):
    proc = process(tmp_path, "0::/a", unified(tmp_path))
    stat = f"anon {GIB}\nfile {2 * GIB}\ninactive_file {GIB}\nactive_file {GIB}"
    write(tmp_path / "fs/a", memory__max=4 * GIB, memory__current=3 * GIB, memory__stat=stat)
    assert group_room(proc) == 2 * GIB
    write(tmp_path / "fs/a", memory__max=GIB)
    assert group_room(proc) == 0


def test_version_one_with_a_limit_above_that_cannot_be_seen(tmp_path):
    mount = f"35 31 0:32 /docker/c {tmp_path}/mem\\040ory rw,relatime - cgroup cgroup rw,memory"
    proc = process(tmp_path, "5:cpu,cpuacct:/docker/c\n4:memory:/docker/c/slurm/job_5\n0::/", mount)
    folder = tmp_path / "mem ory"
    endless = 9223372036854771712
    stat = f"inactive_file 0\nhierarchical_memory_limit {2 * GIB}\ntotal_inactive_file {GIB // 2}"
    write(folder / "slurm/job_5", memory__limit_in_bytes=endless, memory__usage_in_bytes=GIB, memory__stat=stat)
    write(folder / "slurm", memory__limit_in_bytes=3 * GIB, memory__usage_in_bytes=GIB)
    assert group_room(proc) == 2 * GIB - GIB // 2
    write(folder, memory__limit_in_bytes=GIB, memory__usage_in_bytes=GIB - 4096)
    assert group_room(proc) == 4096


@pytest.mark.parametrize("group", ["/", "/../../elsewhere", "/system.slice/docker-1.scope"])
def test_inside_a_container_the_mount_point_is_the_group(tmp_path, group):
    proc = process(tmp_path, f"0::{group}", unified(tmp_path))
    write(tmp_path / "fs", memory__max=2 * GIB, memory__current=GIB)
    assert group_room(proc) == GIB
    proc = process(tmp_path, "0::/docker/x", unified(tmp_path, root="/docker/x"))
    assert group_room(proc) == GIB


def test_the_usual_places_where_mounts_are_not_told(tmp_path):
    write(tmp_path / "proc", cgroup="4:memory:/a/b\n0::/c")
    write(tmp_path / "sys/memory/a", memory__limit_in_bytes=3 * GIB, memory__usage_in_bytes=0)
    assert group_room(tmp_path / "proc", tmp_path / "sys") == 3 * GIB
    write(tmp_path / "sys/c", memory__max=2 * GIB)
    assert group_room(tmp_path / "proc", tmp_path / "sys") == 2 * GIB


def test_no_limit_and_no_groups_are_unknown(tmp_path):
    assert group_room(tmp_path / "none", tmp_path) is None
    proc = process(tmp_path, "0::/a", unified(tmp_path), "a line cut sho", "")
    write(tmp_path / "fs/a", memory__max="max", memory__high="max", memory__current=GIB, memory__stat="cut")
    assert group_room(proc) is None


def test_the_limit_of_a_group_is_a_limit_of_the_process(tmp_path, monkeypatch):
    proc = process(tmp_path, "0::/slice/job", unified(tmp_path))
    write(tmp_path / "fs/slice", memory__max=3 * GIB, memory__current=2 * GIB)
    monkeypatch.setattr("gst.base.cgroups._PROCESS", proc)
    monkeypatch.setattr(memory, "_free", lambda: 8 * GIB)
    monkeypatch.setattr(memory, "_address_space", lambda: None)
    assert memory.available_memory() == GIB
    write(tmp_path / "fs/slice", memory__max="max")
    assert memory.available_memory() == 8 * GIB
