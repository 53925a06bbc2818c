"""One process a run folder: a lock that the kernel releases when its owner dies."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from gst.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows: runs work there, but are not kept apart
    fcntl = None  # type: ignore[assignment]


class Lock:
    """Holds ``folder/.lock`` from creation to ``release``; the file names its owner for whoever comes second."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._handle = self._acquire()
        except OSError as error:
            raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None

    def _acquire(self) -> int:
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.read(handle, 200).decode(errors="replace").strip()
                os.close(handle)
                raise InputError(
                    f"{self.path.parent} is in use by {owner or 'another process'}: wait or choose another folder"
                ) from None
            if self._is_there(handle):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
                return handle
            os.close(handle)  # its last owner removed the file between our opening and locking it

    def _is_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        if self._handle >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
