"""Ctrl-C and SIGTERM: the first asks to stop at the end of the epoch, the second leaves at once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gst.base.errors import InterruptedRunError
from gst.storage.checkpoint import Checkpoint, NoCheckpoint

STOP = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def graceful(checkpoint: NoCheckpoint) -> Iterator[None]:
    """Inside, a signal makes ``checkpoint`` write the state at the end of the epoch and raise ``InterruptedRunError``.

    Without a folder there is nothing to wait for: it raises at once. For the main thread only.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise InterruptedRunError(number, "interrupted")
        if checkpoint.stop is not None:
            os._exit(128 + number)
        checkpoint.stop = number
        print("gst: stopping at the end of this epoch; once more to leave at once", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, handle) for number in STOP}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
