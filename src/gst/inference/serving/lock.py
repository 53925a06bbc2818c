"""Many readers or one writer."""

import threading
from types import TracebackType


class Reading:
    """``with lock:`` to read; ``with lock.writing:`` to write, alone. A writer waits for readers, not for new ones."""

    def __init__(self) -> None:
        self.writing = _Writing(self)
        self._turn = threading.Lock()  # held by a writer from the time it waits
        self._count = threading.Lock()
        self._readers = 0
        self._idle = threading.Condition(self._count)

    def __enter__(self) -> None:
        with self._turn, self._count:
            self._readers += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._count:
            self._readers -= 1
            if not self._readers:
                self._idle.notify_all()


class _Writing:
    def __init__(self, lock: Reading) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock._turn.acquire()
        with self._lock._count:
            while self._lock._readers:
                self._lock._idle.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock._turn.release()
