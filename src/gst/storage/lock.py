"""Locks that the kernel releases when their owner dies, so that no crash leaves a stale one."""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from gst.base.errors import InputError
from gst.base.user_paths import make_folders, remove_folders

try:
    import fcntl
except ImportError:  # on Windows there are no locks: everything works, but processes are not kept apart
    fcntl = None  # type: ignore[assignment]

RUN, SAVE, RECORD = ".gst-lock", ".gst-save-lock", ".gst-record-lock"


class Lock:
    """Locks a folder from construction to ``release``, by a file that names the owner for error messages.

    Args:
        folder: created if missing, and then removed again if it is empty in the end.
        name: of the lock file, which is removed with the lock.
        wait: wait for the owner to finish instead of refusing.
    """

    def __init__(self, folder: Path, name: str = RUN, *, wait: bool = False) -> None:
        self.path = folder / name
        self._wait = wait
        self._created: list[Path] = []
        try:
            self._handle = self._acquire()
        except OSError as error:
            remove_folders(self._created)
            raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None

    def _acquire(self) -> int:
        while True:
            self._created += make_folders(self.path.parent)
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            except FileNotFoundError:
                if self.path.parent.is_dir():
                    raise
                continue  # the last owner removed the folder that it had created
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | (0 if self._wait else fcntl.LOCK_NB))
            except BlockingIOError:
                owner = os.read(handle, 200).decode(errors="replace").strip()
                os.close(handle)
                raise InputError(
                    f"{self.path.parent} is in use by {owner or 'another process'}: wait or choose another folder"
                ) from None
            except OSError:
                os.close(handle)
                raise
            if self._is_current(handle):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
                return handle
            os.close(handle)  # the last owner removed the file before we had locked it

    def _is_current(self, handle: int) -> bool:
        """Whether the open file is still the one at the path."""
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        if self._handle >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1
            remove_folders(self._created)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def mark_alive(handle: int) -> None:
    """Locks an open file until it is closed or this process ends."""
    with suppress(OSError):  # a file system without locks
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)


def is_left_behind(handle: int) -> bool:
    """Whether no living process has marked this file; False if that cannot be known."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return fcntl is not None


def take(handle: int) -> bool:
    """Locks an open file until it is closed or this process ends; False if another one has locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
