"""Ctrl-C and SIGTERM: the first requests a stop at the end of the epoch, the second exits at once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gst.storage.checkpoint import BaseCheckpoint

STOP = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def graceful(checkpoint: BaseCheckpoint) -> Iterator[None]:
    """Inside, a signal makes ``checkpoint`` save its state at the end of the epoch and raise ``InterruptedRunError``.

    Without a run folder there is nothing to save: it raises at once. For the main thread only.

    >>> import gst, tempfile
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> with gst.Checkpoint(tempfile.mkdtemp()) as checkpoint, graceful(checkpoint):  # Ctrl-C loses nothing
    ...     result = gst.sparsify(data, "gst", sparsity=0.5, checkpoint=checkpoint, **few)
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if not checkpoint.request_stop(number):
            os._exit(128 + number)
        print("gst: stopping at the end of this epoch; once more to leave at once", file=sys.stderr, flush=True)

    previous = {number: signal.signal(number, handle) for number in STOP}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
