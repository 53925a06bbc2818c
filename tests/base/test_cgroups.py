"""Control groups of both versions, nested and in containers, simulated by files in a folder."""

from pathlib import Path

import pytest

from gst.base import memory
from gst.base.cgroups import free_group_memory

GIB = 2**30


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def process(root: Path, groups: str, *mounts: str) -> Path:
    write(root / "proc", cgroup=groups, mountinfo="\n".join(mounts))
    return root / "proc"


def unified(folder: Path, root: str = "/") -> str:
    return f"42 31 0:38 {root} {folder / 'fs'} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"


def test_the_tightest_group_or_parent_counts(tmp_path):
    proc = process(
        tmp_path, "0::/user.slice/user-7.slice/job.scope", "1 0 0:1 / /proc rw - proc proc rw", unified(tmp_path)
    )
    top = tmp_path / "fs"
    write(top / "user.slice", memory__max="max", memory__current=9 * GIB)
    write(top / "user.slice/user-7.slice", memory__max=4 * GIB, memory__current=3 * GIB)
    write(top / "user.slice/user-7.slice/job.scope", memory__max=8 * GIB, memory__current=GIB)
    write(top / "other.slice", memory__max=1, memory__current=1)
    assert free_group_memory(proc) == GIB
    write(top / "user.slice/user-7.slice/job.scope", memory__high=int(1.5 * GIB))
    assert free_group_memory(proc) == GIB // 2


def test_reclaimable_file_pages_count_as_free(tmp_path):
    proc = process(tmp_path, "0::/a", unified(tmp_path))
    stat = f"anon {GIB}\nfile {2 * GIB}\ninactive_file {GIB}\nactive_file {GIB}"
    write(tmp_path / "fs/a", memory__max=4 * GIB, memory__current=3 * GIB, memory__stat=stat)
    assert free_group_memory(proc) == 2 * GIB
    write(tmp_path / "fs/a", memory__max=GIB)
    assert free_group_memory(proc) == 0


def test_version_one_with_an_invisible_limit_of_a_parent(tmp_path):
    mount = f"35 31 0:32 /docker/c {tmp_path}/mem\\040ory rw,relatime - cgroup cgroup rw,memory"
    proc = process(tmp_path, "5:cpu,cpuacct:/docker/c\n4:memory:/docker/c/slurm/job_5\n0::/", mount)
    folder = tmp_path / "mem ory"
    endless = 9223372036854771712
    stat = f"inactive_file 0\nhierarchical_memory_limit {2 * GIB}\ntotal_inactive_file {GIB // 2}"
    write(folder / "slurm/job_5", memory__limit_in_bytes=endless, memory__usage_in_bytes=GIB, memory__stat=stat)
    write(folder / "slurm", memory__limit_in_bytes=3 * GIB, memory__usage_in_bytes=GIB)
    assert free_group_memory(proc) == 2 * GIB - GIB // 2
    write(folder, memory__limit_in_bytes=GIB, memory__usage_in_bytes=GIB - 4096)
    assert free_group_memory(proc) == 4096


@pytest.mark.parametrize("group", ["/", "/../../elsewhere", "/system.slice/docker-1.scope"])
def test_inside_a_container_the_mount_point_is_the_group(tmp_path, group):
    proc = process(tmp_path, f"0::{group}", unified(tmp_path))
    write(tmp_path / "fs", memory__max=2 * GIB, memory__current=GIB)
    assert free_group_memory(proc) == GIB
    proc = process(tmp_path, "0::/docker/x", unified(tmp_path, root="/docker/x"))
    assert free_group_memory(proc) == GIB


def test_default_mount_points_without_mountinfo(tmp_path):
    write(tmp_path / "proc", cgroup="4:memory:/a/b\n0::/c")
    write(tmp_path / "sys/memory/a", memory__limit_in_bytes=3 * GIB, memory__usage_in_bytes=0)
    assert free_group_memory(tmp_path / "proc", tmp_path / "sys") == 3 * GIB
    write(tmp_path / "sys/c", memory__max=2 * GIB)
    assert free_group_memory(tmp_path / "proc", tmp_path / "sys") == 2 * GIB


def test_no_limit_or_no_groups_is_unknown(tmp_path):
    assert free_group_memory(tmp_path / "none", tmp_path) is None
    proc = process(tmp_path, "0::/a", unified(tmp_path), "a line cut sho", "")
    write(tmp_path / "fs/a", memory__max="max", memory__high="max", memory__current=GIB, memory__stat="cut")
    assert free_group_memory(proc) is None


def test_a_group_limit_applies_to_the_process(tmp_path, monkeypatch):
    proc = process(tmp_path, "0::/slice/job", unified(tmp_path))
    write(tmp_path / "fs/slice", memory__max=3 * GIB, memory__current=2 * GIB)
    monkeypatch.setattr("gst.base.cgroups._PROCESS", proc)
    monkeypatch.setattr(memory, "_machine_memory", lambda: 8 * GIB)
    monkeypatch.setattr(memory, "_address_space", lambda: None)
    assert memory.available_memory() == GIB
    write(tmp_path / "fs/slice", memory__max="max")
    assert memory.available_memory() == 8 * GIB
